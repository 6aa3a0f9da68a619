// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/sparsekit/sparsekit/bindings/go/sparsekit"
)

var dtypes = map[string]sparsekit.DType{"f32": sparsekit.F32, "f64": sparsekit.F64,
	"f16": sparsekit.F16, "bf16": sparsekit.BF16, "u8": sparsekit.U8, "i64": sparsekit.I64}

var sizes = map[sparsekit.DType]int{sparsekit.F32: 4, sparsekit.F64: 8, sparsekit.F16: 2,
	sparsekit.BF16: 2, sparsekit.U8: 1, sparsekit.I64: 8}

func init() {
	register(map[string]command{
		"array": func(r *run, a *arguments) (string, error) {
			data, err := os.ReadFile(filepath.Join(r.cases, "data", a.at(2)))
			if err != nil {
				return "", err
			}
			dtype := dtypes[a.at(1)]
			array := sparsekit.NewArray(dtype, int64(len(data)/sizes[dtype]))
			r.arrays[a.at(0)] = array
			return ok(binary.Read(bytes.NewReader(data), binary.LittleEndian, slice(array)))
		},
		"zeros": func(r *run, a *arguments) (string, error) {
			r.arrays[a.at(0)] = sparsekit.NewArray(dtypes[a.at(1)], a.toInt(a.at(2)))
			return "ok", nil
		},
		"readonly": func(r *run, a *arguments) (string, error) { return "text unsupported", nil },
		"save": func(r *run, a *arguments) (string, error) {
			var data bytes.Buffer
			if err := binary.Write(&data, binary.LittleEndian, slice(r.array(a, a.at(0)))); err != nil {
				return "", err
			}
			name := fmt.Sprintf("%s.%s.bin", r.name, a.at(0))
			return ok(os.WriteFile(filepath.Join(r.results, name), data.Bytes(), 0o644))
		},
		"address": func(r *run, a *arguments) (string, error) {
			array := r.array(a, a.at(0))
			address, err := array.Address()
			if address == addressOf(slice(array)) {
				return oneInt(1, err)
			}
			return oneInt(0, err)
		},
	})
}

// slice returns the slice that an array is of.
func slice(array sparsekit.Array) any {
	switch array.DType() {
	case sparsekit.F32:
		return array.Float32s()
	case sparsekit.F64:
		return array.Float64s()
	case sparsekit.U8:
		return array.Bytes()
	case sparsekit.I64:
		return array.Int64s()
	}
	return array.Words()
}

func addressOf(slice any) uintptr {
	switch elements := slice.(type) {
	case []float32:
		return uintptr(unsafe.Pointer(&elements[0]))
	case []float64:
		return uintptr(unsafe.Pointer(&elements[0]))
	case []uint16:
		return uintptr(unsafe.Pointer(&elements[0]))
	case []uint8:
		return uintptr(unsafe.Pointer(&elements[0]))
	case []int64:
		return uintptr(unsafe.Pointer(&elements[0]))
	}
	return 0
}
