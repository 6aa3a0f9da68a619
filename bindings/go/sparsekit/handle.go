// SPDX-License-Identifier: Apache-2.0

package sparsekit

import (
	"runtime"
	"sync"

	"github.com/sparsekit/sparsekit/bindings/go/internal/flat"
)

// handle owns one reference to an object of the library. It refers to nothing else, so that its
// finalizer runs even if the object that has it is part of a cycle, such as a masking and a
// function of it that uses the masking.
type handle struct {
	mutex   sync.Mutex
	number  uintptr
	calls   int // under way
	closed  bool
	release func(uintptr)
}

func newHandle(number uintptr, release func(uintptr)) *handle {
	h := &handle{number: number, release: release}
	runtime.SetFinalizer(h, (*handle).close)
	return h
}

// enter returns the number, 0 if the handle was closed, for a call that ends with leave.
func (h *handle) enter() uintptr {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.calls++
	if h.closed {
		return 0
	}
	return h.number
}

func (h *handle) leave() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.calls--
	h.releaseUnused()
}

// close releases the object, once the calls that use it are over.
func (h *handle) close() {
	if h == nil {
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.closed = true
	h.releaseUnused()
}

func (h *handle) releaseUnused() {
	if h.closed && h.calls == 0 && h.number != 0 {
		h.release(h.number)
		h.number = 0
		runtime.SetFinalizer(h, nil)
	}
}

// function is a function of the caller's, as the library knows it. It is released by the collector
// alone: what was closed may still be used, as a schedule by its masking.
type function struct {
	number   uintptr
	function flat.Function
	handle   *handle
}

// newFunction refuses a function that the caller gave as nil.
func newFunction(given bool, f flat.Function) (*function, error) {
	if !given {
		return nil, &Error{ErrInvalidArgument, "function: got nil, expected one"}
	}
	number := flat.NewNumber()
	c := call{}
	h, err := create(&c, func() uintptr { return flat.NewCallback(number).Swigcptr() }, releaseFunction)
	return &function{number, f, h}, err
}

// callback returns what C calls; 0 for no function.
func (f *function) callback() uintptr {
	if f == nil {
		return 0
	}
	return f.handle.number
}

func releaseFunction(number uintptr) { flat.DeleteCallback(flat.SwigcptrCallback(number)) }
func releaseContext(number uintptr)  { flat.DeleteContextHandle(flat.SwigcptrContextHandle(number)) }
func releaseView(number uintptr)     { flat.DeleteViewHandle(flat.SwigcptrViewHandle(number)) }
func releaseBlock(number uintptr)    { flat.DeleteBlockHandle(flat.SwigcptrBlockHandle(number)) }
func releaseScope(number uintptr)    { flat.DeleteScopeHandle(flat.SwigcptrScopeHandle(number)) }
func releaseSchedule(number uintptr) { flat.DeleteScheduleHandle(flat.SwigcptrScheduleHandle(number)) }
func releaseMasking(number uintptr)  { flat.DeleteMaskingHandle(flat.SwigcptrMaskingHandle(number)) }
