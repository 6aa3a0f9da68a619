# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # How a call runs: executor, threads, progress. Every call on data takes `context:`, and needs
  # none.
  class Context < Handle
    # executor:: :default, :serial, :tbb or :openmp; Unavailable if it is not built in
    # threads:: how many a call may use; 0: as many as the process may
    # The block is called now and then with the share of work done (done, total), on the thread that
    # made the call. It cancels the call by returning STOP, or by an exception, which comes out of
    # the call; every block is then either untouched or finished. It may not make calls with this
    # context.
    def initialize(executor: :default, threads: 0, &progress)
      @progress = Handle.ignoring { |done, total| progress.call(done.to_i, total.to_i) } if progress
      @handle = Flat.context_create(Handle.mode("EXECUTOR", executor), threads, @progress)
    end

    # The handle for a call: nil, if none is given, is the process default, which a closed one is
    # not.
    def self.optional(context) # :nodoc:
      return nil if context.nil?
      of(context) || raise(Arrays.refusal(Flat::INVALID_ARGUMENT, "context", "a closed one",
                                          "an open handle"))
    end

    # The executor that calls with this context use.
    def executor
      number = Flat.context_executor(Context.optional(self))
      %i[default serial tbb openmp].find { |name| Handle.mode("EXECUTOR", name) == number }
    end

    # How many threads calls with this context use.
    def threads
      Flat.context_threads(Context.optional(self))
    end

    # Frees the scratch memory that idle calls left in the context for reuse.
    def trim
      Flat.context_trim(Context.optional(self))
    end
  end
end
