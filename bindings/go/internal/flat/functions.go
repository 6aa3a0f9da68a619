// SPDX-License-Identifier: Apache-2.0

package flat

// #include <stdint.h>
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"runtime/debug"
	"sync"
	"unsafe"
)

// Function is a caller's function, as the library calls it. The numbers are the library's memory,
// only for the length of the call.
type Function func(numbers []float64) (float64, error)

// Stop, returned by a function, ends the call with the status SPK_CANCELLED.
var Stop = errors.New("sparsekit: stop")

// PanicError is what a call ends with if a function panics.
type PanicError struct {
	Value interface{} // what panic was given
	Stack []byte      // of the goroutine, where it panicked
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("sparsekit: panic in a function: %v", e.Value)
}

// Unwrap returns the error that panic was given, if it was one.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Functions are known by number, and only while calls that use them are under way: C may not keep
// Go pointers, and a table that kept functions for longer would keep alive what they refer to, such
// as the masking that they belong to.
var (
	lock      sync.Mutex
	functions = map[uintptr]*entry{}
	last      uintptr
)

type entry struct {
	function Function
	calls    int
}

// NewNumber returns the number of a new function.
func NewNumber() uintptr {
	lock.Lock()
	defer lock.Unlock()
	last++
	return last
}

// Enter makes a function known for a call, until Leave.
func Enter(number uintptr, function Function) {
	lock.Lock()
	defer lock.Unlock()
	if functions[number] == nil {
		functions[number] = &entry{function: function}
	}
	functions[number].calls++
}

// Leave ends what Enter began.
func Leave(number uintptr) {
	lock.Lock()
	defer lock.Unlock()
	if functions[number].calls--; functions[number].calls == 0 {
		delete(functions, number)
	}
}

func find(number uintptr) Function {
	lock.Lock()
	defer lock.Unlock()
	return functions[number].function
}

// sparsekitGoCall returns 0 to go on, -1 to stop, else the handle of the error that ends the call:
// C frames lie between it and the caller, through which no panic may go.
//
//export sparsekitGoCall
func sparsekitGoCall(number C.uintptr_t, data *C.double, count C.int64_t, result *C.double) C.intptr_t {
	value, err := recovered(uintptr(number), unsafe.Slice((*float64)(data), int(count)))
	if err == nil {
		*result = C.double(value)
		return 0
	}
	if errors.Is(err, Stop) {
		return -1
	}
	return C.intptr_t(cgo.NewHandle(err))
}

func recovered(number uintptr, elements []float64) (value float64, err error) {
	panicking := true
	defer func() {
		if panicking {
			err = &PanicError{Value: recover(), Stack: debug.Stack()}
		}
	}()
	value, err = find(number)(elements)
	panicking = false
	return value, err
}
