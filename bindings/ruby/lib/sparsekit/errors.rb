# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # The failure of a call: `status` is its number, `status_name` such as "SPK_OVERLAP", the message
  # names the argument, what was given and what was expected.
  class Error < StandardError
    attr_reader :status

    def initialize(message, status)
      super(message)
      @status = status
    end

    def status_name
      Flat.status_string(status)
    end

    # The exception of a status.
    def self.of(status, message)
      KINDS.fetch(status, Internal).new(message, status)
    end
  end

  # A value outside its range, an array that cannot be used, a closed object.
  class InvalidArgument < Error; end
  # Shapes, lengths or counts that do not fit each other.
  class ShapeMismatch < Error; end
  # Members whose grids do not agree.
  class CouplingError < Error; end
  # One element reached twice, or arrays that share memory.
  class Overlap < Error; end
  # A view or an index that reaches outside.
  class OutOfBounds < Error; end
  # A dtype that this argument cannot have.
  class UnsupportedDType < Error; end
  # No memory for scratch or an object.
  class OutOfMemory < Error; end
  # A block returned STOP.
  class Cancelled < Error; end
  # Not in this build of the library.
  class Unavailable < Error; end
  # A defect of the library.
  class Internal < Error; end

  class Error
    KINDS = {
      Flat::INVALID_ARGUMENT => InvalidArgument, Flat::SHAPE_MISMATCH => ShapeMismatch,
      Flat::COUPLING => CouplingError, Flat::OVERLAP => Overlap, Flat::OUT_OF_BOUNDS => OutOfBounds,
      Flat::UNSUPPORTED_DTYPE => UnsupportedDType, Flat::OUT_OF_MEMORY => OutOfMemory,
      Flat::CANCELLED => Cancelled, Flat::UNAVAILABLE => Unavailable, Flat::INTERNAL => Internal
    }.freeze
    private_constant :KINDS
  end
end
