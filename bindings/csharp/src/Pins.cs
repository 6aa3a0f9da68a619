// SPDX-License-Identifier: Apache-2.0
using System;
using System.Buffers;

namespace SparseKit {

/// <summary>Keeps a list of arrays where it is, from when its words are asked for until it is
/// disposed.</summary>
internal struct Pins : IDisposable {
  const int Fields = 3;

  readonly Elements[] list;
  readonly MemoryHandle[] handles;

  internal Pins(Elements[] list) {
    this.list = list;
    handles = new MemoryHandle[list == null ? 0 : list.Length];
  }

  /// <summary>Pins the arrays. How many there are, then address, length and dtype of each; null if
  /// not given. An array that is missing has address 0.</summary>
  internal unsafe long[] Words() {
    if (list == null) return null;
    var words = new long[1 + Fields * list.Length];
    words[0] = list.Length;
    for (int i = 0; i < list.Length; ++i) {
      var elements = list[i];
      if (elements == null) continue;
      handles[i] = elements.Pin();
      words[1 + Fields * i] = (long)handles[i].Pointer;
      words[2 + Fields * i] = elements.Length;
      words[3 + Fields * i] = (long)elements.Dtype;
    }
    return words;
  }

  public void Dispose() {
    for (int i = 0; i < handles.Length; ++i) handles[i].Dispose();
  }
}

}
