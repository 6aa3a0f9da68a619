// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace SparseKit {

/// <summary>Exceptions that wait, per thread, for C code to return.</summary>
internal static class Errors {
  internal delegate void RaiseFunction(int status, IntPtr message);
  internal static readonly RaiseFunction RaiseDelegate = Raise;

  [ThreadStatic] static Exception thrown;   // by a function that C has called
  [ThreadStatic] static Exception pending;  // by the call that is about to return

  /// <summary>Keeps what a function has thrown.</summary>
  internal static void Stash(Exception exception) {
    thrown = exception;
  }

  // Called by C. What a function threw goes before the status that its end of the call has.
  static void Raise(int status, IntPtr message) {
    pending = thrown ?? SparseKitException.Of(status, Marshal.PtrToStringAnsi(message));
    thrown = null;
  }

  /// <summary>Throws what the call has left; a function's exception keeps its stack.</summary>
  internal static void Check() {
    var exception = pending;
    if (exception == null) return;
    pending = null;
    ExceptionDispatchInfo.Capture(exception).Throw();
  }
}

}
