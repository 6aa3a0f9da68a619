# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # What an update did, all layers together, in elements.
  UpdateReport = Struct.new(:rate, :requested_removed, :removed, :requested_grown, :grown,
                            :nonzeros, :residual)

  # Of one layer or of all, at the last initialisation, update or restoring.
  LayerStats = Struct.new(:numel, :nonzeros, :zeros, :density, :requested_density, :statistic,
                          :rate, :requested_removed, :removed, :requested_grown, :grown)

  # Keeps named layers sparse while somebody else trains them: `step` after every step of the
  # optimiser, `update` now and then. Keeps the layers' arrays alive.
  class Masking < Handle
    # schedule:: which the masking moves on in every step
    # prune, redistribute, grow:: modes by the names of training.h, such as :global_magnitude,
    #                             :momentum, :struct_gradient_mean
    # dense_gradients:: leaves gradients, momentum and moments alone; else they are masked too
    # The functions are Procs that belong to the modes that name them. They may read the masking,
    # but not change it; they end an update by STOP, or by an exception. Masks and weights that are
    # Strings are written by SparseKit.write.
    # prune_fn:: (layer, rate, requested), clears bytes of one layer's mask (prune: :callback)
    # prune_criterion:: (weights of a kernel) -> number (prune: :struct_criterion)
    # statistic_fn:: (layer) -> number >= 0 (redistribute: :callback)
    # grow_fn:: (layer, requested), sets bytes of one layer's mask, and may set the weights there
    #           (grow: :callback)
    # grow_criterion:: (gradients of a kernel) -> number (grow: :struct_criterion)
    def initialize(schedule, seed: 0, prune: :magnitude, redistribute: :none, grow: :none,
                   dense_gradients: false, prune_fn: nil, prune_criterion: nil, statistic_fn: nil,
                   grow_fn: nil, grow_criterion: nil)
      @functions = [
        prune_fn && Handle.ignoring do |layer, rate, requested|
          prune_fn.call(layer.to_i, rate, requested.to_i)
        end,
        prune_criterion && Handle.function(&prune_criterion),
        statistic_fn && Handle.function { |numbers| statistic_fn.call(numbers.first.to_i) },
        grow_fn && Handle.ignoring { |layer, requested| grow_fn.call(layer.to_i, requested.to_i) },
        grow_criterion && Handle.function(&grow_criterion)
      ]
      @handle = Flat.masking_create(Schedule.of(schedule), seed, Handle.mode("PRUNE", prune),
                                    Handle.mode("REDISTRIBUTE", redistribute),
                                    Handle.mode("GROW", grow), dense_gradients ? 1 : 0, *@functions)
      @functions << schedule.function
      @layers = []
    end

    # Adds a layer, before initialisation: a name that was never added before, and the view of its
    # weights. Returns its id, 0, 1, 2, ...
    # mask:: keep mask, u8, contiguous in the shape of the view
    # gradient, momentum, adam_m1, adam_m2:: of any float dtype (as Strings: the view's), laid out
    #                                        as the view says; what no mode reads may be left out
    def add(name, view, mask:, gradient: nil, momentum: nil, adam_m1: nil, adam_m2: nil)
      handle = View.of(view)
      rest = [gradient, momentum, adam_m1, adam_m2].map do |array|
        array && Arrays.entry(array, view.leaf.dtype)
      end
      layer = [view.leaf.entry, Arrays.entry(mask, :u8), *rest]
      Flat.masking_add(@handle, name, handle).tap { @layers << layer }
    end

    # Removes the layer of this name. Its mask is left alone.
    def remove(name)
      Flat.masking_remove(@handle, name)
    end

    # Removes all layers whose names contain `part`, and returns how many; none is an error.
    def remove_matching(part)
      Flat.masking_remove_matching(@handle, part)
    end

    # How many layers were ever added.
    def layer_count
      Flat.masking_layer_count(@handle)
    end

    # The id of the layer of this name; nil if there is none.
    def find(name)
      id = Flat.masking_find(@handle, name)
      id unless id.negative?
    end

    # The name of a layer.
    def layer_name(layer)
      Flat.masking_layer_name(@handle, layer)
    end

    # Whether a layer belongs to the masking, and has not left it.
    def layer?(layer)
      Flat.masking_has_layer(@handle, layer) == 1
    end

    # Writes the first masks, and applies them to the weights.
    # density:: in [0, 1]; not read by :resume and the lottery tickets
    # mode:: :random, :erdos_renyi, :erdos_renyi_kernel, the same with struct_, :resume,
    #        :lottery_ticket, or :lottery_ticket_dist with `counts`, ones per layer
    # draw:: :exact, or :bernoulli
    def initialise(density = 0.0, mode: :random, draw: :exact, counts: nil, context: nil)
      Flat.masking_initialise(Context.optional(context), @handle, *lists.first(2), density,
                              Handle.mode("INIT", mode), Handle.mode("DRAW", draw), counts)
    end

    # The densities that initialise would give each layer, without masks.
    def densities(density, mode: :random)
      out = Arrays.make(nil, :f64, [@layers.size])
      Flat.masking_densities(@handle, density, Handle.mode("INIT", mode), [Arrays.entry(out, :f64)])
      out.unpack("d*")
    end

    # Zeroes what the masks forbid, in :weights, :momentum (and moments), :gradients.
    def apply(*what, context: nil)
      parts = what.map { |part| Handle.mode("APPLY", part) }.inject(0, :|)
      Flat.masking_apply(Context.optional(context), @handle, *lists, parts)
    end

    # Follows a step of the optimiser: applies the masks, and moves the schedule on.
    def step(context: nil)
      Flat.masking_step(Context.optional(context), @handle, *lists)
    end

    # Prunes and grows. Returns an UpdateReport.
    def update(context: nil)
      numbers = Flat.masking_update(Context.optional(context), @handle, *lists)
      UpdateReport.new(*counts(numbers, 1..6))
    end

    # Of one layer, or the sums over all that belong, with means of densities and rate: LayerStats.
    def stats(layer = nil)
      raise Error.of(Flat::OUT_OF_BOUNDS, "layer: got #{layer}, expected an id") if layer&.negative?
      LayerStats.new(*counts(Flat.masking_stats(@handle, layer || ALL_LAYERS), [*0..2, *7..10]))
    end

    # The nonzeros that growth aims for: those of initialisation.
    def baseline
      Flat.masking_baseline(@handle)
    end

    # What the next update adds to the places that it hands out.
    def adjusted_growth
      Flat.masking_adjusted_growth(@handle)
    end

    # The whole state, a String: the same bytes on every machine. Masks and weights are yours to
    # save.
    def save
      blob = Arrays.make(nil, :u8, [Flat.masking_save_size(@handle)])
      Flat.masking_save(@handle, [Arrays.entry(blob, :u8)])
      blob
    end

    # Takes up a saved state, so that training goes on bit for bit, given the same arrays. The
    # masking has the same modes, kind of schedule and layers; a blob that does not fit is refused,
    # and nothing changed.
    def restore(blob)
      Flat.masking_restore(@handle, [Arrays.entry(blob, :u8)])
    end

    # The layer that means all of them.
    ALL_LAYERS = -1
    private_constant :ALL_LAYERS

    private

    # Weights, masks, gradients, momenta and moments: a list of each, nil if no layer has one.
    def lists
      Array.new(6) do |part|
        list = @layers.map { |layer| layer[part] }
        list if list.any?
      end
    end

    # Those numbers that are counts, as integers.
    def counts(numbers, places)
      places.each { |place| numbers[place] = numbers[place].to_i }
      numbers
    end
  end
end
