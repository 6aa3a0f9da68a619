// SPDX-License-Identifier: Apache-2.0

package sparsekit

import (
	"strconv"
	"unsafe"

	"github.com/sparsekit/sparsekit/bindings/go/internal/flat"
)

// DType is the type of an array's elements.
type DType int32

// The types of elements. F16 and BF16 are 16-bit words; masks are U8, counts I64.
const (
	F32  = DType(flat.F32)
	F64  = DType(flat.F64)
	F16  = DType(flat.F16)
	BF16 = DType(flat.BF16)
	U8   = DType(flat.U8)
	I64  = DType(flat.I64)
)

// String returns the dtype's name, such as "f32".
func (d DType) String() string {
	switch d {
	case F32:
		return "f32"
	case F64:
		return "f64"
	case F16:
		return "f16"
	case BF16:
		return "bf16"
	case U8:
		return "u8"
	case I64:
		return "i64"
	}
	return "dtype " + strconv.Itoa(int(d))
}

// Array is a slice of the caller's and its dtype. It refers to the slice's memory, and keeps it
// alive; nothing is copied. The zero Array is none.
type Array struct {
	data   unsafe.Pointer
	length int
	dtype  DType
	layout int
}

// Element is what a slice given to Of may hold.
type Element interface {
	float32 | float64 | uint8 | int64
}

// Of makes an Array of a slice of float32 (F32), float64 (F64), uint8 (U8) or int64 (I64).
func Of[T Element](slice []T) Array {
	var element T
	dtype := I64
	switch any(element).(type) {
	case float32:
		dtype = F32
	case float64:
		dtype = F64
	case uint8:
		dtype = U8
	}
	return arrayOf(slice, dtype)
}

// OfF16 makes an Array of half-precision numbers, as 16-bit words.
func OfF16(words []uint16) Array { return arrayOf(words, F16) }

// OfBF16 makes an Array of bfloat16 numbers, as 16-bit words.
func OfBF16(words []uint16) Array { return arrayOf(words, BF16) }

func arrayOf[T any](slice []T, dtype DType) Array {
	if len(slice) == 0 {
		return Array{dtype: dtype}
	}
	return Array{data: unsafe.Pointer(&slice[0]), length: len(slice), dtype: dtype}
}

// NewArray makes an Array of `length` zeros, in a new slice; of none for an unknown dtype.
func NewArray(dtype DType, length int64) Array {
	switch dtype {
	case F32:
		return Of(make([]float32, length))
	case F64:
		return Of(make([]float64, length))
	case F16, BF16:
		return arrayOf(make([]uint16, length), dtype)
	case U8:
		return Of(make([]uint8, length))
	case I64:
		return Of(make([]int64, length))
	}
	return Array{}
}

// Contiguous returns the same array, to be read or written as row-major and contiguous in the shape
// of the view that a call is about, and not as that view says.
func (a Array) Contiguous() Array {
	a.layout = flat.LAYOUT_CONTIGUOUS
	return a
}

// DType returns the type of the elements.
func (a Array) DType() DType { return a.dtype }

// Len returns the number of elements.
func (a Array) Len() int { return a.length }

// Float32s returns the slice of an F32 array; nil for another dtype.
func (a Array) Float32s() []float32 { return sliceOf[float32](a, a.dtype == F32) }

// Float64s returns the slice of an F64 array; nil for another dtype.
func (a Array) Float64s() []float64 { return sliceOf[float64](a, a.dtype == F64) }

// Words returns the slice of an F16 or BF16 array; nil for another dtype.
func (a Array) Words() []uint16 { return sliceOf[uint16](a, a.dtype == F16 || a.dtype == BF16) }

// Bytes returns the slice of a U8 array; nil for another dtype.
func (a Array) Bytes() []byte { return sliceOf[byte](a, a.dtype == U8) }

// Int64s returns the slice of an I64 array; nil for another dtype.
func (a Array) Int64s() []int64 { return sliceOf[int64](a, a.dtype == I64) }

func sliceOf[T any](a Array, fits bool) []T {
	if !fits || a.data == nil {
		return nil
	}
	return unsafe.Slice((*T)(a.data), a.length)
}

// Address returns where the library finds the array's first element: that of the slice.
func (a Array) Address() (uintptr, error) {
	c := call{}
	var address int64
	buffers := c.buffers(a)
	err := c.run(func() { address = flat.Address(buffers) })
	return uintptr(address), err
}
