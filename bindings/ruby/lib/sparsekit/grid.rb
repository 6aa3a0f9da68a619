# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # What blocks and scopes have in common. Calls that write take `into:`, other arrays that receive
  # the result, one per leaf, of the leaves' dtypes; a single leaf's may be given without a list.
  module Grid
    # The name, used in messages.
    def name
      flat(:name)
    end

    # How many blocks, or scopes, there are along each axis.
    def grid_shape
      flat(:grid_shape)
    end

    # :f64 if a leaf is, else :f32.
    def score_dtype
      Arrays::NAMES[flat(:score_dtype)]
    end

    # The number of views that it has elements in.
    def leaf_count
      flat(:leaf_count)
    end

    # The view of one leaf.
    def leaf_view(index)
      handle = flat(:leaf_view, index)
      View.wrap(handle, leaves[index].entry)
    end

    # Zeroes the blocks with norm < threshold; `values` are arrays whose norms decide instead.
    # Thresholds are numbers, or an array of :f32 (as a String: of the score dtype) or :f64: one for
    # all, or one per block, or scope. Returns a Report.
    def hard_threshold(thresholds, values: nil, into: nil, context: nil)
      Report.new(*operate(:hard_threshold, context, leaf_entries, entries(into),
                          Arrays.numbers(thresholds, @score_dtype), entries(values)))
    end

    # Shrinks the norm of each block by its threshold, a block of at most that norm to zero: the
    # proximal operator of a group lasso, in the metric of `conditioners` (one array per leaf) if
    # given. Thresholds as above. Returns a Report.
    # eps:: added to Euclidean norms; default: the score dtype's machine epsilon
    # atol, max_iter:: conditioned: relative tolerance (1e-8) and steps (20, at most 64)
    # scale:: multiplies thresholds by the square root of the elements in a block
    def soft_threshold(thresholds, conditioners: nil, eps: -1.0, atol: -1.0, max_iter: 0,
                       scale: false, into: nil, context: nil)
      Report.new(*operate(:soft_threshold, context, leaf_entries, entries(into),
                          Arrays.numbers(thresholds, @score_dtype), entries(conditioners), eps,
                          atol, max_iter, scale ? 1 : 0))
    end

    attr_reader :leaves # :nodoc:

    private

    # Calls the function of Flat for this class.
    def flat(function, *arguments)
      Flat.send("#{self.class::FLAT}_#{function}", @handle, *arguments)
    end

    def operate(function, context, *arguments)
      Flat.send("#{self.class::FLAT}_#{function}", Context.optional(context), @handle, *arguments)
    end

    def leaf_entries
      @leaves.map(&:entry)
    end

    # Arrays as a call takes them, one per leaf, by default of their dtypes.
    def entries(arrays)
      Arrays.entries(arrays, @leaves.map(&:dtype))
    end

    # Makes a call that fills a new array, its last argument, and returns that.
    def fill(function, context, dtype, shape, *arguments)
      out = Arrays.make(@leaves.first.array, dtype, shape)
      operate(function, context, *arguments, [Arrays.entry(out, dtype)])
      out
    end

    # The same with several arrays.
    def fill_each(function, context, dtype, shapes, *arguments)
      outs = shapes.map { |shape| Arrays.make(@leaves.first.array, dtype, shape) }
      operate(function, context, *arguments, outs.map { |out| Arrays.entry(out, dtype) })
      outs
    end
  end
end
