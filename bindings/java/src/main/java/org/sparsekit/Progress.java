// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/** A function that a {@link Context} calls now and then, on the thread that made the call. */
@FunctionalInterface
public interface Progress {
  /**
   * Tells how far the call is, and whether to end it. A cancelled call leaves every block either
   * untouched or finished.
   *
   * @param done the share of work done, 0 to total
   * @return true to cancel, which makes the call fail with {@link SparseKitException.Cancelled}
   */
  boolean cancel(long done, long total);
}
