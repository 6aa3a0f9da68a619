// SPDX-License-Identifier: Apache-2.0

// Package flat is the library's flat C interface (bindings/swig/flat.h), wrapped by SWIG.
//
// sparsekit.go and sparsekit_wrap.c are generated: by CMake in its build folder, by `go generate`
// in the source tree. Handles are numbers, 0 being none. A call that fails leaves its failure with
// its thread, where Take finds it: a goroutine that makes a call locks its thread until then.
package flat

//go:generate swig4.0 -go -cgo -intgosize 64 -package flat -Werror -I../../../swig/lang/go -I../../../swig -I../../../../include -outdir . -o sparsekit_wrap.c ../../../swig/sparsekit.i

// #cgo pkg-config: sparsekit
// #cgo CFLAGS: -I${SRCDIR}/../../../swig -w
import "C"

import "runtime/cgo"

// Buffer has the layout of spk_buffer. Its address is a number, not a pointer, since C may not be
// given Go memory that holds pointers; Pins keeps what it addresses.
type Buffer struct {
	Data   uintptr
	Numel  int64
	DType  int32
	Layout int32
	View   uintptr
}

// ints and numbers have the layouts of flat_ints and flat_numbers.
type ints struct {
	count  int32
	values [32]int64
}

type numbers struct {
	count  int32
	values [16]float64
}

func (l *ints) list() []int64 { return append([]int64{}, l.values[:l.count]...) }

func (l *numbers) list() []float64 { return append([]float64{}, l.values[:l.count]...) }

// Take returns what the last call on this thread failed with: its status (0 = it did not fail) and
// message, and the error with which a function of the caller's ended, if the call had some.
func Take(functions bool) (status int, message string, failure error) {
	if functions {
		failure = takeFailure()
	}
	if status = Last_status(); status != 0 {
		message = Last_message()
	}
	return status, message, failure
}

func takeFailure() error {
	number := Take_failure()
	if number == 0 {
		return nil
	}
	handle := cgo.Handle(number)
	defer handle.Delete()
	return handle.Value().(error)
}
