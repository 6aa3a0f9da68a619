// SPDX-License-Identifier: Apache-2.0

package sparsekit

import (
	"strings"

	"github.com/sparsekit/sparsekit/bindings/go/internal/flat"
)

// Option is an argument that may be left out. The documentation of a call says which it takes;
// another is refused with ErrInvalidArgument. Every call that works on data takes In.
type Option struct {
	name  string
	apply func(*options)
}

type options struct {
	context            *Context
	name               string
	into               []Array
	values             []Array
	conditioners       []Array
	scores, blockMask  *Array
	ties, draw         int
	epsilon, tolerance float64
	maxSteps           int
	scale              int
	counts             []int64
}

// In runs the call in a context.
func In(context *Context) Option {
	return Option{"In", func(o *options) { o.context = context }}
}

// Named gives an object a name, used in messages.
func Named(name string) Option { return Option{"Named", func(o *options) { o.name = name }} }

// Into writes the result to other arrays, one per leaf, of the leaves' dtypes, and leaves the
// view's own alone. Elements that the view does not reach are not touched.
func Into(arrays ...Array) Option {
	return Option{"Into", func(o *options) { o.into = arrays }}
}

// Values scores blocks by the norms of these arrays, one per leaf, of any float dtype, instead of
// the leaves' own.
func Values(arrays ...Array) Option {
	return Option{"Values", func(o *options) { o.values = arrays }}
}

// Scores gives the scores themselves: (scopes..., blocks per scope), of the score dtype.
func Scores(scores Array) Option {
	return Option{"Scores", func(o *options) { o.scores = &scores }}
}

// BlockMask gives a keep mask of blocks, U8, of the shape of scores.
func BlockMask(mask Array) Option {
	return Option{"BlockMask", func(o *options) { o.blockMask = &mask }}
}

// KeepTies keeps every block that is tied with the last kept one, instead of exactly the count.
func KeepTies() Option {
	return Option{"KeepTies", func(o *options) { o.ties = flat.TIES_KEEP_ALL }}
}

// Conditioners are the diagonal metric of a soft threshold, such as Adam's sqrt(v) + eps: one array
// per leaf, of any float dtype, positive and finite.
func Conditioners(arrays ...Array) Option {
	return Option{"Conditioners", func(o *options) { o.conditioners = arrays }}
}

// Epsilon is added to norms by a Euclidean soft threshold; default: the score dtype's machine
// epsilon.
func Epsilon(epsilon float64) Option {
	return Option{"Epsilon", func(o *options) { o.epsilon = epsilon }}
}

// Tolerance is the relative tolerance of a conditioned soft threshold; default 1e-8.
func Tolerance(tolerance float64) Option {
	return Option{"Tolerance", func(o *options) { o.tolerance = tolerance }}
}

// MaxSteps bounds the steps of a conditioned soft threshold, 1 to 64; default 20. Blocks that run
// out of them are counted by the report.
func MaxSteps(steps int) Option {
	return Option{"MaxSteps", func(o *options) { o.maxSteps = steps }}
}

// ScaleThresholds multiplies each threshold by the square root of the number of elements in a
// block.
func ScaleThresholds() Option {
	return Option{"ScaleThresholds", func(o *options) { o.scale = 1 }}
}

// Bernoulli draws each place of a first mask with the density as its probability, instead of
// exactly as many as the density says.
func Bernoulli() Option {
	return Option{"Bernoulli", func(o *options) { o.draw = flat.DRAW_BERNOULLI }}
}

// Counts are the ones of each layer's first mask, for InitLotteryTicketDist.
func Counts(counts ...int64) Option {
	return Option{"Counts", func(o *options) { o.counts = counts }}
}

// begin starts a call with those options that it takes, a list of names.
func begin(given []Option, takes string) (*call, *options, uintptr) {
	c := &call{}
	o := &options{epsilon: -1, tolerance: -1}
	for _, option := range given {
		if option.apply == nil || !strings.Contains(" "+takes+" ", " "+option.name+" ") {
			c.refuse(ErrInvalidArgument, "option: got "+option.name+", expected one of: "+takes)
			continue
		}
		option.apply(o)
	}
	return c, o, c.in(o.context)
}

// Report is what a thresholding or selecting call did. It counts blocks.
type Report struct {
	Total        int64 // blocks that the call looked at
	Requested    int64 // blocks it was asked to keep; -1 where thresholds decide
	Achieved     int64 // blocks it kept
	Ties         int64 // blocks about which position, or KeepTies, decided
	NotConverged int64 // conditioned soft thresholds: blocks that ran out of steps
}

// report makes a call that gives a report.
func (c *call) report(do func() []int64) (Report, error) {
	var values []int64
	if err := c.run(func() { values = do() }); err != nil {
		return Report{}, err
	}
	return Report{values[0], values[1], values[2], values[3], values[4]}, nil
}

// fill makes a call that writes a new array.
func (c *call) fill(dtype DType, length int64, do func(out []flat.Buffer)) (Array, error) {
	out := NewArray(dtype, length)
	buffers := c.buffers(out)
	if err := c.run(func() { do(buffers) }); err != nil {
		return Array{}, err
	}
	return out, nil
}
