// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

import java.util.Objects;
import java.util.function.LongToDoubleFunction;

/**
 * Which share of the weights an update removes: a rate that changes with a position, a number of
 * steps. It changes as it is used: one call at a time.
 */
public final class Schedule implements AutoCloseable {
  final ScheduleHandle handle;

  private Schedule(ScheduleHandle handle) {
    this.handle = handle;
  }

  /**
   * From a rate down to another along half a cosine.
   *
   * @param pruneRate at position 0, in [0, 1], and so is etaMin, the rate from tMax on
   */
  public static Schedule cosine(double pruneRate, long tMax, double etaMin) {
    return cosine(pruneRate, tMax, etaMin, -1);
  }

  /** The same from position lastEpoch + 1 on. */
  public static Schedule cosine(double pruneRate, long tMax, double etaMin, long lastEpoch) {
    return new Schedule(Flat.schedule_create_cosine(pruneRate, tMax, etaMin, lastEpoch));
  }

  /** pruneRate (1 - t / tMax), never below 0. */
  public static Schedule linear(double pruneRate, long tMax) {
    return new Schedule(Flat.schedule_create_linear(pruneRate, tMax));
  }

  /**
   * Gradual magnitude pruning, from one sparsity to another between positions tStart and tMax.
   *
   * @param interval steps from one update to the next
   */
  public static Schedule magnitude(
      double initial, double last, long tMax, long tStart, long interval) {
    return new Schedule(Flat.schedule_create_magnitude(initial, last, tMax, tStart, interval));
  }

  /** Your own function from a position to a rate in [0, 1]. */
  public static Schedule custom(LongToDoubleFunction rate) {
    Objects.requireNonNull(rate, "rate");
    final Callback callback = new Callback(n -> rate.applyAsDouble((long) n[0]));
    final Schedule schedule = new Schedule(Flat.schedule_create_custom(callback));
    schedule.handle.borrowed = callback;
    return schedule;
  }

  /** Moves the position on by one. */
  public void step() {
    Flat.schedule_step(handle);
  }

  /** Moves the position. */
  public void stepTo(long t) {
    Flat.schedule_step_to(handle, t);
  }

  /** The position. */
  public long position() {
    return Flat.schedule_position(handle);
  }

  /** The rate at the position. */
  public double rate() {
    return Flat.schedule_rate(handle);
  }

  /** Magnitude only: the rate if the sparsity is {@code current}. */
  public double rateFrom(double current) {
    return Flat.schedule_rate_from(handle, current);
  }

  /** Magnitude only: the sparsity to have reached at t. */
  public double cumulativeSparsity(long t) {
    return Flat.schedule_cumulative_sparsity(handle, t);
  }

  /** Ends the schedule; maskings that have it go on. */
  @Override
  public void close() {
    handle.close();
  }
}
