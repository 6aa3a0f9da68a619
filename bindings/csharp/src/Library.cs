// SPDX-License-Identifier: Apache-2.0
namespace SparseKit {

/// <summary>Facts about the library that is loaded.</summary>
public static class Library {
  /// <summary>The version: major * 10000 + minor * 100 + patch.</summary>
  public static int Version {
    get { return Flat.version(); }
  }

  /// <summary>One line for a bug report: version, executors and SIMD targets.</summary>
  public static string BuildInfo {
    get { return Flat.build_info(); }
  }

  /// <summary>How many objects of the C library are alive in the process.</summary>
  public static long LiveHandles {
    get { return Flat.live_handles(); }
  }
}

}
