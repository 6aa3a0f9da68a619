// SPDX-License-Identifier: Apache-2.0
using System;

namespace SparseKit {

/// <summary>Which share of the weights an update removes: a rate that changes with a position, a
/// number of steps. It changes as it is used: one call at a time.</summary>
public sealed class Schedule : IDisposable {
  internal readonly ScheduleHandle Handle;

  Schedule(ScheduleHandle handle) {
    Handle = handle;
  }

  /// <summary>From a rate down to another along half a cosine.</summary>
  /// <param name="pruneRate">at position 0; in [0, 1]</param>
  /// <param name="tMax">where it ends</param>
  /// <param name="etaMin">the rate from tMax on; in [0, 1]</param>
  /// <param name="lastEpoch">the position starts at lastEpoch + 1</param>
  public static Schedule Cosine(double pruneRate, long tMax, double etaMin = 0,
                                long lastEpoch = -1) {
    return new Schedule(Flat.schedule_create_cosine(pruneRate, tMax, etaMin, lastEpoch));
  }

  /// <summary>pruneRate (1 - t / tMax), never below 0.</summary>
  public static Schedule Linear(double pruneRate, long tMax) {
    return new Schedule(Flat.schedule_create_linear(pruneRate, tMax));
  }

  /// <summary>Gradual magnitude pruning, from one sparsity to another between positions tStart and
  /// tMax, with so many steps from one update to the next.</summary>
  public static Schedule Magnitude(double initial, double last, long tMax, long tStart,
                                   long interval) {
    return new Schedule(Flat.schedule_create_magnitude(initial, last, tMax, tStart, interval));
  }

  /// <summary>Your own function from a position to a rate in [0, 1].</summary>
  public static Schedule Custom(Func<long, double> rate) {
    rate.Given("rate");
    var callback = new Callback(n => rate((long)n[0]));
    var schedule = new Schedule(Flat.schedule_create_custom(callback));
    schedule.Handle.Borrowed = callback;
    return schedule;
  }

  /// <summary>Moves the position on by one.</summary>
  public void Step() {
    Flat.schedule_step(Handle);
  }

  /// <summary>Moves the position.</summary>
  public void StepTo(long t) {
    Flat.schedule_step_to(Handle, t);
  }

  /// <summary>The position.</summary>
  public long Position {
    get { return Flat.schedule_position(Handle); }
  }

  /// <summary>The rate at the position.</summary>
  public double Rate() {
    return Flat.schedule_rate(Handle);
  }

  /// <summary>Magnitude only: the rate if the sparsity is `current`.</summary>
  public double RateFrom(double current) {
    return Flat.schedule_rate_from(Handle, current);
  }

  /// <summary>Magnitude only: the sparsity to have reached at t.</summary>
  public double CumulativeSparsity(long t) {
    return Flat.schedule_cumulative_sparsity(Handle, t);
  }

  /// <summary>Ends the schedule; maskings that have it go on.</summary>
  public void Dispose() {
    Handle.Dispose();
  }
}

}
