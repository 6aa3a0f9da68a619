// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/**
 * How calls run: executor, threads, progress. Optional everywhere; without one, calls use the
 * process default. A context may be used from several threads at once.
 */
public final class Context implements AutoCloseable {
  /** What runs the tasks of a call. */
  public enum Executor {
    /** The best that is built in. */
    DEFAULT(FlatConstants.EXECUTOR_DEFAULT),
    /** The calling thread. */
    SERIAL(FlatConstants.EXECUTOR_SERIAL),
    /** Threading Building Blocks. */
    TBB(FlatConstants.EXECUTOR_TBB),
    /** OpenMP. */
    OPENMP(FlatConstants.EXECUTOR_OPENMP);

    final int code;

    Executor(int code) {
      this.code = code;
    }

    /** Whether the library has it. */
    public boolean available() {
      return Flat.executor_available(code) != 0;
    }
  }

  private final ContextHandle handle;
  private volatile boolean closed;

  /** The default executor with as many threads as the process may use. */
  public Context() {
    this(Executor.DEFAULT, 0);
  }

  /** An executor and a number of threads, 0 for as many as the process may use. */
  public Context(Executor executor, int threads) {
    this(executor, threads, null);
  }

  /**
   * The same with a function that follows progress, or null.
   *
   * @throws SparseKitException.Unavailable if the executor is not built in
   */
  public Context(Executor executor, int threads, Progress progress) {
    final Callback callback =
        progress == null
            ? null
            : new Callback(n -> progress.cancel((long) n[0], (long) n[1]) ? 1 : 0);
    handle = Flat.context_create(executor.code, threads, callback);
    handle.borrowed = callback;
  }

  /** The executor that calls with this context use. */
  public Executor executor() {
    final int code = Flat.context_executor(handle(this));
    for (Executor executor : Executor.values()) {
      if (executor.code == code) return executor;
    }
    throw new IllegalStateException("unknown executor " + code);
  }

  /** The number of threads that calls with this context use. */
  public int threads() {
    return Flat.context_threads(handle(this));
  }

  /** Frees the scratch memory that idle calls left for reuse. */
  public void trim() {
    Flat.context_trim(handle(this));
  }

  /** Ends the context; calls that are given it afterwards fail. */
  @Override
  public void close() {
    closed = true;
    handle.close();
  }

  /** In C a context that is NULL is the process default, which a closed one must not become. */
  static ContextHandle handle(Context context) {
    if (context == null) return null;
    if (context.closed) {
      throw new SparseKitException.InvalidArgument(
          "context: got a closed one, expected an open one");
    }
    return context.handle;
  }
}
