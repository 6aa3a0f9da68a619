// SPDX-License-Identifier: Apache-2.0
namespace SparseKit {

/// <summary>What an operation did; counts are of blocks, over the whole call.</summary>
public struct Report {
  internal Report(long[] counts) {
    Total = counts[0];
    Requested = counts[1];
    Achieved = counts[2];
    Ties = counts[3];
    NotConverged = counts[4];
  }

  /// <summary>Blocks that the call looked at.</summary>
  public long Total { get; }

  /// <summary>Blocks it was asked to keep; -1 where thresholds decide.</summary>
  public long Requested { get; }

  /// <summary>Blocks it kept.</summary>
  public long Achieved { get; }

  /// <summary>Blocks whose score equals the last kept and the first pruned score of their scope.
  /// </summary>
  public long Ties { get; }

  /// <summary>Of conditioned soft thresholding: blocks that ran out of steps, and hold their best
  /// iterate.</summary>
  public long NotConverged { get; }

  /// <summary>All five.</summary>
  public override string ToString() {
    return "total " + Total + ", requested " + Requested + ", achieved " + Achieved + ", ties " +
           Ties + ", not converged " + NotConverged;
  }
}

}
