// SPDX-License-Identifier: Apache-2.0

package sparsekit

import (
	"runtime"

	"github.com/sparsekit/sparsekit/bindings/go/internal/flat"
)

// call is one call of the library, with everything that must stay alive until it is over.
type call struct {
	handles   []*handle
	functions []*function
	pins      flat.Pins
	refused   error
}

// use returns the number of an object, 0 for a closed one. It is not released before the call ends.
func (c *call) use(h *handle) uintptr {
	if h == nil {
		return 0
	}
	c.handles = append(c.handles, h)
	return h.enter()
}

// with lets the call use functions; nil ones are none.
func (c *call) with(functions ...*function) {
	for _, f := range functions {
		if f != nil {
			c.functions = append(c.functions, f)
		}
	}
}

// in returns the number of an optional context, whose progress function may then be called.
func (c *call) in(context *Context) uintptr {
	if context == nil {
		return 0
	}
	number := c.use(context.handle)
	if number == 0 {
		c.refuse(ErrInvalidArgument, "context: got a closed one, expected an open handle")
	}
	c.with(context.progress)
	return number
}

func (c *call) refuse(status Status, message string) {
	if c.refused == nil {
		c.refused = &Error{status, message}
	}
}

// buffers returns the arrays as C takes them.
func (c *call) buffers(arrays ...Array) []flat.Buffer {
	if len(arrays) == 0 {
		return nil
	}
	buffers := make([]flat.Buffer, len(arrays))
	for i, a := range arrays {
		buffers[i] = flat.Buffer{Data: c.pins.Add(a.data), Numel: int64(a.length),
			DType: int32(a.dtype), Layout: int32(a.layout)}
	}
	return buffers
}

// optional is buffers of an array that may not be given.
func (c *call) optional(array *Array) []flat.Buffer {
	if array == nil {
		return nil
	}
	return c.buffers(*array)
}

// run makes the call: do calls exactly one function of flat. A failure is found on the thread on
// which it happened, so the goroutine stays there.
func (c *call) run(do func()) error {
	defer c.end()
	if c.refused != nil {
		return c.refused
	}
	for _, f := range c.functions {
		flat.Enter(f.number, f.function)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	do()
	status, message, failure := flat.Take(len(c.functions) > 0)
	for _, f := range c.functions {
		flat.Leave(f.number)
	}
	if failure != nil {
		return failure
	}
	if status != 0 {
		return &Error{Status(status), message}
	}
	return nil
}

func (c *call) end() {
	for _, h := range c.handles {
		h.leave()
	}
	c.pins.Release()
	runtime.KeepAlive(c)
}

// ask makes a call that returns a value, or nothing of it if it fails.
func ask[T any](c *call, number uintptr, get func(uintptr) T) (T, error) {
	var value, none T
	if err := c.run(func() { value = get(number) }); err != nil {
		return none, err
	}
	return value, nil
}

// fact asks an object for something that needs no data.
func fact[T any](h *handle, get func(uintptr) T) (T, error) {
	c := &call{}
	return ask(c, c.use(h), get)
}

// nothing is a call that returns nothing, for ask.
func nothing(do func(uintptr)) func(uintptr) struct{} {
	return func(number uintptr) struct{} {
		do(number)
		return struct{}{}
	}
}

// create makes an object of the library.
func create(c *call, make func() uintptr, release func(uintptr)) (*handle, error) {
	var number uintptr
	if err := c.run(func() { number = make() }); err != nil {
		return nil, err
	}
	return newHandle(number, release), nil
}
