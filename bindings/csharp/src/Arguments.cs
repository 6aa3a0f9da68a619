// SPDX-License-Identifier: Apache-2.0
using System;

namespace SparseKit {

/// <summary>What is looked at before a call reaches C.</summary>
internal static class Arguments {
  /// <summary>The argument, which may not be null.</summary>
  internal static T Given<T>(this T argument, string name) where T : class {
    if (argument == null) throw new ArgumentNullException(name);
    return argument;
  }
}

}
