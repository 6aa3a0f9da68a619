// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sparsekit/sparsekit/bindings/go/sparsekit"
)

// arguments are those of a step: positional ones, then key=value.
type arguments struct {
	command    string
	positional []string
	keyed      map[string]string
	err        error // the first one that could not be read
}

func newArguments(command string, fields []string) *arguments {
	a := &arguments{command: command, keyed: map[string]string{}}
	for _, field := range fields {
		if key, value, isKeyed := strings.Cut(field, "="); isKeyed {
			a.keyed[key] = value
		} else {
			a.positional = append(a.positional, field)
		}
	}
	return a
}

// at returns a positional argument.
func (a *arguments) at(position int) string {
	if position < len(a.positional) {
		return a.positional[position]
	}
	return ""
}

func (a *arguments) has(key string) bool {
	_, has := a.keyed[key]
	return has
}

func (a *arguments) failed(err error) {
	if a.err == nil && err != nil {
		a.err = err
	}
}

func (a *arguments) toInt(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	a.failed(err)
	return value
}

func (a *arguments) toFloat(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	a.failed(err)
	return value
}

func (a *arguments) integer(key string, absent int64) int64 {
	if !a.has(key) {
		return absent
	}
	return a.toInt(a.keyed[key])
}

func (a *arguments) number(key string, absent float64) float64 {
	if !a.has(key) {
		return absent
	}
	return a.toFloat(a.keyed[key])
}

// words returns a comma-separated list.
func (a *arguments) words(key string) []string {
	if a.keyed[key] == "" {
		return nil
	}
	return strings.Split(a.keyed[key], ",")
}

func (a *arguments) integers(key string) []int64 { return a.toIntegers(a.keyed[key]) }

func (a *arguments) toIntegers(list string) []int64 {
	if list == "" {
		return nil
	}
	var values []int64
	for _, word := range strings.Split(list, ",") {
		values = append(values, a.toInt(word))
	}
	return values
}

// lists returns lists of integers, separated by semicolons.
func (a *arguments) lists(key string) [][]int64 {
	if !a.has(key) {
		return nil
	}
	var lists [][]int64
	for _, list := range strings.Split(a.keyed[key], ";") {
		lists = append(lists, a.toIntegers(list))
	}
	return lists
}

// array returns an array by its name.
func (r *run) array(a *arguments, name string) sparsekit.Array {
	array, known := r.arrays[name]
	if !known {
		a.failed(fmt.Errorf("no array %q", name))
	}
	return array
}

func (r *run) keyedArray(a *arguments, key string) sparsekit.Array { return r.array(a, a.keyed[key]) }

func (r *run) keyedArrays(a *arguments, key string) []sparsekit.Array {
	var arrays []sparsekit.Array
	for _, name := range a.words(key) {
		arrays = append(arrays, r.array(a, name))
	}
	return arrays
}

// layerArray returns an array that a layer may do without.
func (r *run) layerArray(a *arguments, key string) sparsekit.Array {
	if !a.has(key) {
		return sparsekit.Array{}
	}
	return r.keyedArray(a, key)
}

// named returns an object of a kind by its name.
func named[T closer](r *run, a *arguments, name string) T {
	object, right := r.objects[name].(T)
	if !right {
		a.failed(fmt.Errorf("no such object: %q", name))
	}
	return object
}

func (r *run) view(a *arguments) *sparsekit.View { return named[*sparsekit.View](r, a, a.at(0)) }

func (r *run) block(a *arguments) *sparsekit.Block { return named[*sparsekit.Block](r, a, a.at(0)) }

func (r *run) scope(a *arguments) *sparsekit.Scope { return named[*sparsekit.Scope](r, a, a.at(0)) }

func (r *run) schedule(a *arguments) *sparsekit.Schedule {
	return named[*sparsekit.Schedule](r, a, a.at(0))
}

func (r *run) masking(a *arguments) *sparsekit.Masking {
	return named[*sparsekit.Masking](r, a, a.at(0))
}

// options returns those options that the step gives.
func (r *run) options(a *arguments) []sparsekit.Option {
	var options []sparsekit.Option
	add := func(key string, option func() sparsekit.Option) {
		if a.has(key) {
			options = append(options, option())
		}
	}
	add("context", func() sparsekit.Option {
		return sparsekit.In(named[*sparsekit.Context](r, a, a.keyed["context"]))
	})
	add("name", func() sparsekit.Option { return sparsekit.Named(a.keyed["name"]) })
	add("into", func() sparsekit.Option { return sparsekit.Into(r.keyedArrays(a, "into")...) })
	add("scores", func() sparsekit.Option { return sparsekit.Scores(r.keyedArray(a, "scores")) })
	add("block_mask", func() sparsekit.Option { return sparsekit.BlockMask(r.keyedArray(a, "block_mask")) })
	add("conditioners", func() sparsekit.Option {
		return sparsekit.Conditioners(r.keyedArrays(a, "conditioners")...)
	})
	add("eps", func() sparsekit.Option { return sparsekit.Epsilon(a.number("eps", 0)) })
	add("atol", func() sparsekit.Option { return sparsekit.Tolerance(a.number("atol", 0)) })
	add("max_iter", func() sparsekit.Option { return sparsekit.MaxSteps(int(a.integer("max_iter", 0))) })
	if a.integer("scale", 0) == 1 {
		options = append(options, sparsekit.ScaleThresholds())
	}
	if a.keyed["ties"] == "keep_all" {
		options = append(options, sparsekit.KeepTies())
	}
	if a.keyed["draw"] == "bernoulli" {
		options = append(options, sparsekit.Bernoulli())
	}
	return options
}

// withValues adds the arrays that scores are taken from, where they are not the operation's own
// argument.
func (r *run) withValues(a *arguments) []sparsekit.Option {
	options := r.options(a)
	if a.has("values") {
		options = append(options, sparsekit.Values(r.keyedArrays(a, "values")...))
	}
	return options
}

// --- results ------------------------------------------------------------------------------------

func ints[T int | int64](values []T, err error) (string, error) {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = strconv.FormatInt(int64(value), 10)
	}
	return "ints " + strings.Join(texts, ","), err
}

func oneInt[T int | int64](value T, err error) (string, error) { return ints([]T{value}, err) }

func numbers(values []float64, err error) (string, error) {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = formatNumber(value)
	}
	return "numbers " + strings.Join(texts, ","), err
}

func oneNumber(value float64, err error) (string, error) { return numbers([]float64{value}, err) }

func formatNumber(value float64) string {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(value), "+"))
	}
	return strconv.FormatFloat(value, 'g', 17, 64)
}

func text(value string, err error) (string, error) { return "text " + value, err }

func dtypeText(dtype sparsekit.DType, err error) (string, error) { return text(dtype.String(), err) }

func report(r sparsekit.Report, err error) (string, error) {
	return ints([]int64{r.Total, r.Requested, r.Achieved, r.Ties, r.NotConverged}, err)
}

func ok(err error) (string, error) { return "ok", err }

// out names the array that a call gave.
func (r *run) out(a *arguments, array sparsekit.Array, err error) (string, error) {
	return r.outs(a, []sparsekit.Array{array}, err)
}

func (r *run) outs(a *arguments, arrays []sparsekit.Array, err error) (string, error) {
	if err != nil {
		return "", err
	}
	for i, name := range a.words("out") {
		r.arrays[name] = arrays[i]
	}
	return "ok", nil
}

func arraysOf(masks [][]uint8) []sparsekit.Array {
	var arrays []sparsekit.Array
	for _, mask := range masks {
		arrays = append(arrays, sparsekit.Of(mask))
	}
	return arrays
}

// formatted is the text of a view that a call gave.
func formatted(view *sparsekit.View, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer view.Close()
	return text(view.Format())
}
