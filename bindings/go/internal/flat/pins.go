// SPDX-License-Identifier: Apache-2.0

//go:build go1.21

package flat

import (
	"runtime"
	"unsafe"
)

// Pins keeps Go memory alive and in its place while C has its address.
type Pins struct{ pinner runtime.Pinner }

// Add pins what pointer points to, and returns its address.
func (p *Pins) Add(pointer unsafe.Pointer) uintptr {
	if pointer == nil {
		return 0
	}
	p.pinner.Pin(pointer)
	return uintptr(pointer)
}

// Release lets go of everything.
func (p *Pins) Release() { p.pinner.Unpin() }
