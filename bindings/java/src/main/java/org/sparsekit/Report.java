// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/**
 * What an operation did; counts are of blocks, over the whole call.
 *
 * @param total blocks that the call looked at
 * @param requested blocks it was asked to keep; -1 where thresholds decide
 * @param achieved blocks it kept
 * @param ties blocks whose score equals the last kept and the first pruned score of their scope
 * @param notConverged of conditioned soft thresholding: blocks that ran out of steps, and hold
 *     their best iterate
 */
public record Report(long total, long requested, long achieved, long ties, long notConverged) {
  static Report of(long[] counts) {
    return new Report(counts[0], counts[1], counts[2], counts[3], counts[4]);
  }
}
