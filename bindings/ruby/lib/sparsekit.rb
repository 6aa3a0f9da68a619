# SPDX-License-Identifier: Apache-2.0

# Structured sparsity on arrays that you own: pruning units of any shape, exact selection, group
# soft thresholding, N:M patterns and dynamic sparse training. See README.md; the words, and what
# each operation does exactly, are those of the C headers sparsekit.h and training.h.
#
# An array is an NArray, or a String of packed numbers. Where its dtype is not known it is said:
# `dtype: :f16`, or in lists [array, :f16]. [array, dtype, :contiguous] is one that lies row-major
# and contiguous in the shape of the view, not as the view says. Nothing is copied: the library
# reads and writes the array's own memory, which the objects here keep alive. Results are new
# arrays: of NArray, with dimensions in its order (the last one first), if the first array of the
# block or view is one, else Strings.
module SparseKit
  # What a block of yours returns to end a call with Cancelled.
  STOP = Object.new.freeze
end

require "sparsekit/flat"
require "sparsekit/errors"
require "sparsekit/arrays"
require "sparsekit/handle"
require "sparsekit/context"
require "sparsekit/view"
require "sparsekit/grid"
require "sparsekit/block"
require "sparsekit/scope"
require "sparsekit/schedule"
require "sparsekit/masking"

module SparseKit
  # What a thresholding or selecting call did, in blocks: how many it looked at; was asked to keep
  # (-1 where thresholds decide); kept; how many ties position decided; how many ran out of steps.
  Report = Struct.new(:total, :requested, :achieved, :ties, :not_converged)

  class << self
    # The version of the loaded library: 10000 major + 100 minor + patch.
    def version
      Flat.version
    end

    # A line for bug reports: version, executors and instruction sets.
    def build_info
      Flat.build_info
    end

    # How many objects of the library are alive in the process.
    def live_handles
      Flat.live_handles
    end

    # Whether contexts with this executor, such as :tbb, can be created.
    def executor_available?(executor)
      Flat.executor_available(Handle.mode("EXECUTOR", executor)) == 1
    end

    # Writes a String of bytes over those of a String from `at` on, and returns the latter. Its
    # length stays. A block of yours can write so what the call that it runs in uses, for which
    # Ruby's own methods raise RuntimeError.
    def write(string, at, bytes)
      Flat.write(string, at, bytes)
    end

    # Where the library finds the first element of an array.
    def address(array, dtype: nil)
      Flat.address([Arrays.entry(Arrays.said(array, dtype))])
    end
  end
end
