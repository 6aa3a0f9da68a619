// SPDX-License-Identifier: Apache-2.0
using System;

namespace SparseKit {

/// <summary>What runs the tasks of a call.</summary>
public enum Executor {
  /// <summary>The best that is built in.</summary>
  Default = Flat.EXECUTOR_DEFAULT,
  /// <summary>The calling thread.</summary>
  Serial = Flat.EXECUTOR_SERIAL,
  /// <summary>Threading Building Blocks.</summary>
  Tbb = Flat.EXECUTOR_TBB,
  /// <summary>OpenMP.</summary>
  OpenMP = Flat.EXECUTOR_OPENMP
}

/// <summary>How calls run: executor, threads, progress. Optional everywhere; without one, calls use
/// the process default. A context may be used from several threads at once.</summary>
public sealed class Context : IDisposable {
  readonly ContextHandle handle;
  volatile bool closed;

  /// <summary>Creates a context.</summary>
  /// <param name="executor">what runs calls</param>
  /// <param name="threads">how many threads; 0 for as many as the process may use</param>
  /// <param name="progress">called now and then, on the thread that made the call, with the work
  /// done and the total; true cancels, which leaves every block either untouched or
  /// finished</param>
  /// <exception cref="UnavailableException">if the executor is not built in</exception>
  public Context(Executor executor = Executor.Default, int threads = 0,
                 Func<long, long, bool> progress = null) {
    var callback = progress == null
        ? null
        : new Callback(n => progress((long)n[0], (long)n[1]) ? 1 : 0);
    handle = Flat.context_create((int)executor, threads, callback);
    handle.Borrowed = callback;
  }

  /// <summary>Whether the library has an executor.</summary>
  public static bool Available(Executor executor) {
    return Flat.executor_available((int)executor) != 0;
  }

  /// <summary>The executor that calls with this context use.</summary>
  public Executor Executor {
    get { return (Executor)Flat.context_executor(Handle(this)); }
  }

  /// <summary>The number of threads that calls with this context use.</summary>
  public int Threads {
    get { return Flat.context_threads(Handle(this)); }
  }

  /// <summary>Frees the scratch memory that idle calls left for reuse.</summary>
  public void Trim() {
    Flat.context_trim(Handle(this));
  }

  /// <summary>Ends the context; calls that are given it afterwards fail.</summary>
  public void Dispose() {
    closed = true;
    handle.Dispose();
  }

  /// <summary>In C a context that is NULL is the process default, which a closed one must not
  /// become.</summary>
  internal static ContextHandle Handle(Context context) {
    if (context == null) return null;
    if (!context.closed) return context.handle;
    throw new InvalidArgumentException("context: got a closed one, expected an open one");
  }
}

}
