// SPDX-License-Identifier: Apache-2.0

package sparsekit

import "github.com/sparsekit/sparsekit/bindings/go/internal/flat"

// Schedule is a prune rate that changes with its position, a number of steps. One call at a time.
type Schedule struct {
	handle *handle
	custom *function
}

// NewCosineSchedule makes a schedule that falls from pruneRate to etaMin along half a cosine, until
// tMax. lastEpoch is -1 to start at position 0.
func NewCosineSchedule(pruneRate float64, tMax int64, etaMin float64, lastEpoch int64) (*Schedule, error) {
	return newSchedule(nil, func() uintptr {
		return flat.Schedule_create_cosine(pruneRate, tMax, etaMin, lastEpoch)
	})
}

// NewLinearSchedule makes a schedule that falls from pruneRate to 0, until tMax.
func NewLinearSchedule(pruneRate float64, tMax int64) (*Schedule, error) {
	return newSchedule(nil, func() uintptr { return flat.Schedule_create_linear(pruneRate, tMax) })
}

// NewMagnitudeSchedule makes the schedule of gradual magnitude pruning, which goes with GrowNone:
// the sparsity goes from initial to final between tStart and tMax, by updates every `interval`
// steps.
func NewMagnitudeSchedule(initial, final float64, tMax, tStart, interval int64) (*Schedule, error) {
	return newSchedule(nil, func() uintptr {
		return flat.Schedule_create_magnitude(initial, final, tMax, tStart, interval)
	})
}

// NewCustomSchedule makes a schedule of a function, which returns the rate at a position, in [0,
// 1]. An error ends the call that asked, which returns it; Stop gives ErrCancelled.
func NewCustomSchedule(rate func(t int64) (float64, error)) (*Schedule, error) {
	custom, err := newFunction(rate != nil, func(numbers []float64) (float64, error) {
		return rate(int64(numbers[0]))
	})
	if err != nil {
		return nil, err
	}
	return newSchedule(custom, func() uintptr { return flat.Schedule_create_custom(custom.callback()) })
}

func newSchedule(custom *function, make func() uintptr) (*Schedule, error) {
	c := &call{}
	c.with(custom)
	h, err := create(c, make, releaseSchedule)
	if err != nil {
		return nil, err
	}
	return &Schedule{h, custom}, nil
}

// scheduleFact is fact for calls that may call the schedule's function.
func scheduleFact[T any](s *Schedule, get func(uintptr) T) (T, error) {
	c := &call{}
	c.with(s.custom)
	return ask(c, c.use(s.handle), get)
}

// Close releases the schedule. Maskings that were made with it stay as they are.
func (s *Schedule) Close() error {
	s.handle.close()
	return nil
}

// Step moves the position on by one.
func (s *Schedule) Step() error { return s.move(flat.Schedule_step) }

// StepTo moves the position to t >= 0.
func (s *Schedule) StepTo(t int64) error {
	return s.move(func(number uintptr) { flat.Schedule_step_to(number, t) })
}

func (s *Schedule) move(step func(uintptr)) error {
	_, err := scheduleFact(s, nothing(step))
	return err
}

// Position returns the position.
func (s *Schedule) Position() (int64, error) { return scheduleFact(s, flat.Schedule_position) }

// Rate returns the rate at the position.
func (s *Schedule) Rate() (float64, error) { return scheduleFact(s, flat.Schedule_rate) }

// RateFrom returns the rate of a magnitude schedule if the sparsity is now `current`.
func (s *Schedule) RateFrom(current float64) (float64, error) {
	return scheduleFact(s, func(number uintptr) float64 {
		return flat.Schedule_rate_from(number, current)
	})
}

// CumulativeSparsity returns the sparsity that a magnitude schedule has reached at t.
func (s *Schedule) CumulativeSparsity(t int64) (float64, error) {
	return scheduleFact(s, func(number uintptr) float64 {
		return flat.Schedule_cumulative_sparsity(number, t)
	})
}
