// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/** Facts about the library that is loaded. */
public final class SparseKit {
  private SparseKit() {}

  /** The version: major * 10000 + minor * 100 + patch. */
  public static int version() {
    return Flat.version();
  }

  /** One line for a bug report: version, executors and SIMD targets. */
  public static String buildInfo() {
    return Flat.build_info();
  }

  /** How many objects of the C library are alive in the process. */
  public static long liveHandles() {
    return Flat.live_handles();
  }
}
