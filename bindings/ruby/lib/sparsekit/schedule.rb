# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # A prune rate that changes with its position, a number of steps.
  class Schedule < Handle
    private_class_method :new, :open

    # Falls from prune_rate to eta_min along half a cosine, until t_max. The position starts at
    # last_epoch + 1.
    def self.cosine(prune_rate:, t_max:, eta_min: 0.0, last_epoch: -1)
      wrap(Flat.schedule_create_cosine(prune_rate, t_max, eta_min, last_epoch))
    end

    # Falls from prune_rate to 0, until t_max.
    def self.linear(prune_rate:, t_max:)
      wrap(Flat.schedule_create_linear(prune_rate, t_max))
    end

    # Gradual magnitude pruning, which goes with grow: :none. The sparsity goes from initial to
    # final between t_start and t_max, by updates every `interval` steps.
    def self.magnitude(final:, t_max:, initial: 0.0, t_start: 0, interval: 1)
      wrap(Flat.schedule_create_magnitude(initial, final, t_max, t_start, interval))
    end

    # The block's: it gives the rate at a position, in [0, 1].
    def self.custom
      raise ArgumentError, "no block given" unless block_given?
      rate = function { |numbers| yield numbers.first.to_i }
      wrap(Flat.schedule_create_custom(rate), rate)
    end

    # Moves the position on by one, or to t >= 0.
    def step(t = nil)
      t.nil? ? Flat.schedule_step(@handle) : Flat.schedule_step_to(@handle, t)
    end

    # The position.
    def position
      Flat.schedule_position(@handle)
    end

    # The rate at the position; of a magnitude schedule, also the rate if the sparsity is `current`.
    def rate(current: nil)
      current.nil? ? Flat.schedule_rate(@handle) : Flat.schedule_rate_from(@handle, current)
    end

    # The sparsity that a magnitude schedule has reached at t.
    def cumulative_sparsity(t)
      Flat.schedule_cumulative_sparsity(@handle, t)
    end

    attr_reader :function # :nodoc:

    private

    def setup(handle, function = nil)
      @handle = handle
      @function = function
    end
  end
end
