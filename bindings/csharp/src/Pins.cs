// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;

namespace SparseKit {

/// <summary>Keeps a list of arrays where it is, during a call.</summary>
internal struct Pins : IDisposable {
  const int Fields = 3;

  readonly GCHandle[] handles;

  /// <summary>How many arrays, then address, length and dtype of each; null if not given. An array
  /// that is missing has address 0.</summary>
  internal readonly long[] Words;

  internal Pins(Elements[] list) {
    handles = null;
    Words = null;
    if (list == null) return;
    handles = new GCHandle[list.Length];
    Words = new long[1 + Fields * list.Length];
    Words[0] = list.Length;
    for (int i = 0; i < list.Length; ++i) {
      var elements = list[i];
      if (elements == null) continue;
      handles[i] = GCHandle.Alloc(elements.Array, GCHandleType.Pinned);
      var start = (long)elements.Offset * elements.Dtype.Bytes();
      Words[1 + Fields * i] = (long)handles[i].AddrOfPinnedObject() + start;
      Words[2 + Fields * i] = elements.Length;
      Words[3 + Fields * i] = (long)elements.Dtype;
    }
  }

  public void Dispose() {
    if (handles == null) return;
    foreach (var handle in handles) {
      if (handle.IsAllocated) handle.Free();
    }
  }
}

}
