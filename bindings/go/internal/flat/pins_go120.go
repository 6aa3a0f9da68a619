// SPDX-License-Identifier: Apache-2.0

//go:build !go1.21

package flat

import (
	"runtime"
	"unsafe"
)

// Pins keeps Go memory alive while C has its address. These versions of Go have no runtime.Pinner,
// and need none: their collector does not move what is on the heap, and what is appended to a slice
// that escapes is on the heap.
type Pins struct{ held []unsafe.Pointer }

// Add keeps what pointer points to, and returns its address.
func (p *Pins) Add(pointer unsafe.Pointer) uintptr {
	p.held = append(p.held, pointer)
	return uintptr(pointer)
}

// Release lets go of everything.
func (p *Pins) Release() {
	runtime.KeepAlive(p.held)
	p.held = nil
}
