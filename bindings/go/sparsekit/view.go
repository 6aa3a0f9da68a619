// SPDX-License-Identifier: Apache-2.0

package sparsekit

import "github.com/sparsekit/sparsekit/bindings/go/internal/flat"

// View says how elements lie in an array: element (i0, i1, ...) at offset + sum(i_d stride_d). It
// keeps the array alive.
type View struct {
	handle *handle
	leaf   leaf
}

// leaf is an array that operations work on, and how many elements of it the view reaches.
type leaf struct {
	array Array
	numel int64
}

// NewView makes a view of the whole array, row-major and contiguous. The array is F32, F64, F16 or
// BF16.
func NewView(array Array, shape ...int64) (*View, error) {
	return NewStridedView(array, shape, nil, 0)
}

// NewStridedView makes a view with strides, which may be negative, and the offset of element
// (0, 0, ...), all counted in elements. A nil stride is row-major contiguous. A view that reaches
// below the array's start is refused with ErrOutOfBounds, one that maps two indices to one element
// with ErrOverlap; one that reaches beyond its end is refused by every call that works on it.
func NewStridedView(array Array, shape, stride []int64, offset int64) (*View, error) {
	return newView(array, &call{}, func() uintptr {
		return flat.View_create(int(array.dtype), shape, stride, offset)
	})
}

// ParseView makes a view from its text form: "(64,128):(128,1)+32" is shape:stride+offset, and
// "(64,128)" contiguous.
func ParseView(array Array, text string) (*View, error) {
	return newView(array, &call{}, func() uintptr { return flat.View_parse(int(array.dtype), text) })
}

func newView(array Array, c *call, make func() uintptr) (*View, error) {
	h, err := create(c, make, releaseView)
	if err != nil {
		return nil, err
	}
	numel, err := fact(h, flat.View_numel)
	return &View{h, leaf{array, numel}}, err
}

func (v *View) own() *handle {
	if v == nil {
		return nil
	}
	return v.handle
}

// Close releases the view. Blocks that were made of it stay as they are.
func (v *View) Close() error {
	v.handle.close()
	return nil
}

// Array returns the array that the view is of.
func (v *View) Array() Array { return v.leaf.array }

// Format returns the text form, such as "(64,128):(128,1)+32".
func (v *View) Format() (string, error) { return fact(v.handle, flat.View_format) }

// DType returns the type of the elements.
func (v *View) DType() (DType, error) {
	dtype, err := fact(v.handle, flat.View_dtype)
	return DType(dtype), err
}

// Shape returns the extent of each dimension.
func (v *View) Shape() ([]int64, error) { return fact(v.handle, flat.View_shape) }

// Stride returns the stride of each dimension, in elements.
func (v *View) Stride() ([]int64, error) { return fact(v.handle, flat.View_stride) }

// Offset returns where element (0, 0, ...) lies.
func (v *View) Offset() (int64, error) { return fact(v.handle, flat.View_offset) }

// Numel returns the number of elements.
func (v *View) Numel() (int64, error) { return fact(v.handle, flat.View_numel) }

// Cosize returns the span of the layout, 1 + sum((shape_d - 1) |stride_d|), without the offset.
func (v *View) Cosize() (int64, error) { return fact(v.handle, flat.View_cosize) }

// LinearOffset returns where an element lies in the array.
func (v *View) LinearOffset(index ...int64) (int64, error) {
	return fact(v.handle, func(number uintptr) int64 { return flat.View_linear_offset(number, index) })
}

// ToParamRC returns row and column of an element in a row-major matrix of `columns` columns that
// owns the array.
func (v *View) ToParamRC(index []int64, columns int64) (row, column int64, err error) {
	at, err := fact(v.handle, func(number uintptr) []int64 {
		return flat.View_to_param_rc(number, index, columns)
	})
	if err != nil {
		return 0, 0, err
	}
	return at[0], at[1], nil
}

// BlockView returns the blocks of this shape as a view of the same memory: of shape
// (B0, b0, B1, b1, ...), reordered (B0, B1, ..., b0, b1, ...).
func (v *View) BlockView(shape []int64, reorder bool) (*View, error) {
	c := &call{}
	number := c.use(v.handle)
	return newView(v.leaf.array, c, func() uintptr {
		return flat.View_block_view_of(number, shape, bit(reorder))
	})
}

// Merged returns the blocks gathered, each in one piece: (blocks..., elements per block). Takes In.
func (v *View) Merged(shape []int64, given ...Option) (Array, error) {
	c, _, context := begin(given, "In")
	number, leaves := c.use(v.handle), c.buffers(v.leaf.array)
	return c.fill(v.leaf.array.dtype, v.leaf.numel, func(out []flat.Buffer) {
		flat.View_block_view_merged(context, number, leaves, shape, out)
	})
}

// Broadcast repeats each block's value, of any dtype, over its elements, in the shape of the view.
// Takes In.
func (v *View) Broadcast(shape []int64, values Array, given ...Option) (Array, error) {
	c, _, context := begin(given, "In")
	number, source := c.use(v.handle), c.buffers(values)
	return c.fill(values.dtype, v.leaf.numel, func(out []flat.Buffer) {
		flat.View_broadcast_block_to_element(context, number, shape, source, out)
	})
}

// ApplyMask zeroes the blocks of this shape whose mask, U8, is 1. A nil shape means blocks of one
// element. Takes In, Into.
func (v *View) ApplyMask(shape []int64, pruneMask Array, given ...Option) error {
	return v.apply(flat.View_apply_mask, shape, pruneMask, given)
}

// ApplyKeepMask zeroes the blocks whose mask, U8, is 0. Takes In, Into.
func (v *View) ApplyKeepMask(shape []int64, keepMask Array, given ...Option) error {
	return v.apply(flat.View_apply_keep_mask, shape, keepMask, given)
}

// ApplyMultiplier scales each block by its number, of any float dtype. Takes In, Into.
func (v *View) ApplyMultiplier(shape []int64, multiplier Array, given ...Option) error {
	return v.apply(flat.View_apply_multiplier, shape, multiplier, given)
}

func (v *View) apply(operation func(context, view uintptr, weights, into []flat.Buffer, shape []int64,
	argument []flat.Buffer), shape []int64, argument Array, given []Option) error {
	c, o, context := begin(given, "In Into")
	number, weights, into := c.use(v.handle), c.buffers(v.leaf.array), c.buffers(o.into...)
	arguments := c.buffers(argument)
	return c.run(func() { operation(context, number, weights, into, shape, arguments) })
}

// PruneNM keeps, of every m elements in a row along the axis, the n of largest magnitude. A
// negative axis counts from the end. The report counts elements. Takes In, Into.
func (v *View) PruneNM(axis int, n, m int64, given ...Option) (Report, error) {
	return v.prune(given, func(context, view uintptr, weights, into []flat.Buffer) []int64 {
		return flat.Prune_nm(context, view, weights, into, axis, n, m)
	})
}

// PruneUnstructured zeroes exactly floor(sparsity numel) elements, those of smallest magnitude.
// Takes In, Into.
func (v *View) PruneUnstructured(sparsity float64, given ...Option) (Report, error) {
	return v.prune(given, func(context, view uintptr, weights, into []flat.Buffer) []int64 {
		return flat.Prune_unstructured(context, view, weights, into, sparsity)
	})
}

// SoftThresholdBlocks shrinks the Euclidean norms of blocks of this shape by one threshold. Takes
// In, Into.
func (v *View) SoftThresholdBlocks(shape []int64, threshold float64, given ...Option) (Report, error) {
	return v.prune(given, func(context, view uintptr, weights, into []flat.Buffer) []int64 {
		return flat.Soft_threshold_blocks(context, view, weights, into, shape, threshold)
	})
}

func (v *View) prune(given []Option,
	operation func(context, view uintptr, weights, into []flat.Buffer) []int64) (Report, error) {
	c, o, context := begin(given, "In Into")
	number, weights, into := c.use(v.handle), c.buffers(v.leaf.array), c.buffers(o.into...)
	return c.report(func() []int64 { return operation(context, number, weights, into) })
}

func bit(set bool) int {
	if set {
		return 1
	}
	return 0
}
