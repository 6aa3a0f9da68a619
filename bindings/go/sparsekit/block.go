// SPDX-License-Identifier: Apache-2.0

package sparsekit

import (
	"fmt"

	"github.com/sparsekit/sparsekit/bindings/go/internal/flat"
)

// Block cuts a view into a grid of equal blocks, the units that live or die; or couples blocks of
// several views, so that block i of each of them is one unit. It knows the arrays of its leaves and
// keeps them alive.
type Block struct {
	handle     *handle
	leaves     []leaf
	numblk     int64
	scoreDType DType
}

// NewBlock cuts a view into blocks of this shape, each extent of which divides the view's; one <= 0
// spans the dimension. A nil shape means blocks of one element. Takes Named.
func NewBlock(view *View, shape []int64, given ...Option) (*Block, error) {
	c, o, _ := begin(given, "Named")
	number := c.use(view.own())
	h, err := create(c, func() uintptr { return flat.Block_create(number, shape, o.name) }, releaseBlock)
	if err != nil {
		return nil, err
	}
	return newBlock(h, []leaf{view.leaf})
}

// CoupleBlocks couples blocks whose grids agree after a permutation of axes each: orders has one
// per member, or is nil for none. Members that do not agree are refused with ErrCoupling. Takes
// Named.
func CoupleBlocks(members []*Block, orders [][]int64, given ...Option) (*Block, error) {
	c, o, _ := begin(given, "Named")
	numbers := make([]uintptr, len(members))
	leaves := []leaf{}
	for i, member := range members {
		if numbers[i] = c.use(member.own()); numbers[i] != 0 {
			leaves = append(leaves, member.leaves...)
		}
	}
	axes := c.flatten(orders, len(members))
	h, err := create(c, func() uintptr {
		return flat.Block_couple(numbers, axes, o.name)
	}, releaseBlock)
	if err != nil {
		return nil, err
	}
	return newBlock(h, leaves)
}

func newBlock(h *handle, leaves []leaf) (*Block, error) {
	numblk, err := fact(h, flat.Block_numblk)
	if err != nil {
		return nil, err
	}
	dtype, err := fact(h, flat.Block_score_dtype)
	return &Block{h, leaves, numblk, DType(dtype)}, err
}

// flatten returns permutations one after the other: C cannot see where one ends.
func (c *call) flatten(orders [][]int64, members int) []int64 {
	flattened := []int64{}
	for _, order := range orders {
		if len(orders) != members || len(order) != len(orders[0]) {
			c.refuse(ErrShapeMismatch, fmt.Sprintf("orders: got %v for %d members, expected a "+
				"permutation of as many axes for each", orders, members))
		}
		flattened = append(flattened, order...)
	}
	return flattened
}

func (b *Block) own() *handle {
	if b == nil {
		return nil
	}
	return b.handle
}

func arraysOf(leaves []leaf) []Array {
	arrays := make([]Array, len(leaves))
	for i, l := range leaves {
		arrays[i] = l.array
	}
	return arrays
}

// Close releases the block. Couplings and scopes that were made of it stay as they are.
func (b *Block) Close() error {
	b.handle.close()
	return nil
}

// Name returns the name.
func (b *Block) Name() (string, error) { return fact(b.handle, flat.Block_name) }

// GridShape returns how many blocks there are along each axis.
func (b *Block) GridShape() ([]int64, error) { return fact(b.handle, flat.Block_grid_shape) }

// Numblk returns the number of blocks.
func (b *Block) Numblk() (int64, error) { return fact(b.handle, flat.Block_numblk) }

// NumelPerBlock returns the number of elements of a block, over all leaves.
func (b *Block) NumelPerBlock() (int64, error) { return fact(b.handle, flat.Block_numel_per_block) }

// Numel returns the number of elements of all blocks.
func (b *Block) Numel() (int64, error) { return fact(b.handle, flat.Block_numel) }

// ScoreDType returns F64 if a leaf is F64, else F32.
func (b *Block) ScoreDType() (DType, error) {
	dtype, err := fact(b.handle, flat.Block_score_dtype)
	return DType(dtype), err
}

// LeafCount returns the number of views that the block has elements in.
func (b *Block) LeafCount() (int, error) { return fact(b.handle, flat.Block_leaf_count) }

// Leaf returns the block of one leaf, as it was created; close it too.
func (b *Block) Leaf(index int) (*Block, error) {
	c := &call{}
	number := c.use(b.handle)
	h, err := create(c, func() uintptr { return flat.Block_leaf(number, index) }, releaseBlock)
	if err != nil {
		return nil, err
	}
	return newBlock(h, b.leaves[index:index+1])
}

// LeafShape returns the extent of a leaf's blocks.
func (b *Block) LeafShape(index int) ([]int64, error) {
	return fact(b.handle, func(number uintptr) []int64 { return flat.Block_leaf_shape(number, index) })
}

// LeafView returns the view of one leaf; close it too.
func (b *Block) LeafView(index int) (*View, error) {
	return leafView(b.handle, b.leaves, index, flat.Block_leaf_view)
}

func leafView(h *handle, leaves []leaf, index int, get func(uintptr, int) uintptr) (*View, error) {
	c := &call{}
	number := c.use(h)
	view, err := create(c, func() uintptr { return get(number, index) }, releaseView)
	if err != nil {
		return nil, err
	}
	return &View{view, leaves[index]}, nil
}

// Norms returns the Lp norm of each block, of the score dtype. p is 0, 1, 2, +Inf, -Inf or in
// [0.01, 1000]. Takes In, Values.
func (b *Block) Norms(p float64, given ...Option) (Array, error) {
	return b.measure(given, func(context, block uintptr, leaves, out []flat.Buffer) {
		flat.Block_norms(context, block, leaves, p, out)
	})
}

// Min returns the smallest element of each block, of the score dtype. Takes In, Values.
func (b *Block) Min(given ...Option) (Array, error) { return b.measure(given, flat.Block_min) }

// Max returns the largest element of each block, of the score dtype. Takes In, Values.
func (b *Block) Max(given ...Option) (Array, error) { return b.measure(given, flat.Block_max) }

func (b *Block) measure(given []Option,
	operation func(context, block uintptr, leaves, out []flat.Buffer)) (Array, error) {
	c, o, context := begin(given, "In Values")
	number, leaves := c.use(b.handle), c.valuesOr(o, b.leaves)
	return c.fill(b.scoreDType, b.numblk, func(out []flat.Buffer) {
		operation(context, number, leaves, out)
	})
}

// valuesOr returns the values that were given, or else the leaves.
func (c *call) valuesOr(o *options, leaves []leaf) []flat.Buffer {
	if len(o.values) != 0 {
		return c.buffers(o.values...)
	}
	return c.buffers(arraysOf(leaves)...)
}

// Nnz counts the elements with |x| > eps, in all and in each block; NaN counts. SmallestNonzero is
// the usual eps. Takes In.
func (b *Block) Nnz(eps float64, given ...Option) (total int64, perBlock []int64, err error) {
	c, _, context := begin(given, "In")
	number, leaves := c.use(b.handle), c.buffers(arraysOf(b.leaves)...)
	counts, err := c.fill(I64, b.numblk, func(out []flat.Buffer) {
		total = flat.Block_nnz(context, number, leaves, eps, out)
	})
	return total, counts.Int64s(), err
}

// SmallestNonzero is the usual eps of Nnz.
const SmallestNonzero = flat.NNZ_EPS

// Reduce returns what a function says of each block: it is called with the elements of one block
// after the other, those of leaf 0 first, on this goroutine. The elements are the library's memory:
// copy what is to be kept. An error ends the call, which returns it; Stop gives ErrCancelled. Takes
// In.
func (b *Block) Reduce(fn func(elements []float64) (float64, error), given ...Option) (Array, error) {
	f, err := newFunction(fn != nil, fn)
	if err != nil {
		return Array{}, err
	}
	c, _, context := begin(given, "In")
	c.with(f)
	number, leaves := c.use(b.handle), c.buffers(arraysOf(b.leaves)...)
	return c.fill(b.scoreDType, b.numblk, func(out []flat.Buffer) {
		flat.Block_reduce(context, number, leaves, f.callback(), out)
	})
}

// ApplyMask zeroes the blocks whose mask, U8, is 1. Takes In, Into.
func (b *Block) ApplyMask(pruneMask Array, given ...Option) error {
	return b.apply(flat.Block_apply_mask, pruneMask, given)
}

// ApplyKeepMask zeroes the blocks whose mask, U8, is 0. Takes In, Into.
func (b *Block) ApplyKeepMask(keepMask Array, given ...Option) error {
	return b.apply(flat.Block_apply_keep_mask, keepMask, given)
}

// ApplyMultiplier scales each block by its number, of any float dtype. Zero gives +0 even for NaN
// and infinity. Takes In, Into.
func (b *Block) ApplyMultiplier(multiplier Array, given ...Option) error {
	return b.apply(flat.Block_apply_multiplier, multiplier, given)
}

func (b *Block) apply(operation func(context, block uintptr, weights, into, argument []flat.Buffer),
	argument Array, given []Option) error {
	c, o, context := begin(given, "In Into")
	number, weights := c.use(b.handle), c.buffers(arraysOf(b.leaves)...)
	into, arguments := c.buffers(o.into...), c.buffers(argument)
	return c.run(func() { operation(context, number, weights, into, arguments) })
}

// HardThreshold zeroes the blocks with norm < threshold. Thresholds are F32 or F64, one per block
// or one for all. Takes In, Into, Values.
func (b *Block) HardThreshold(thresholds Array, given ...Option) (Report, error) {
	return hardThreshold(b.handle, b.leaves, flat.Block_hard_threshold, thresholds, given)
}

// SoftThreshold shrinks the norm of each block by its threshold, a block of at most that norm to
// zero: the proximal operator of a group lasso, in the metric of Conditioners if given. Thresholds
// are F32 or F64, one per block or one for all. Takes In, Into, Conditioners, Epsilon, Tolerance,
// MaxSteps, ScaleThresholds.
func (b *Block) SoftThreshold(thresholds Array, given ...Option) (Report, error) {
	return softThreshold(b.handle, b.leaves, flat.Block_soft_threshold, thresholds, given)
}

func hardThreshold(h *handle, leaves []leaf, operation func(context, number uintptr,
	weights, into, thresholds, values []flat.Buffer) []int64, thresholds Array, given []Option) (Report, error) {
	c, o, context := begin(given, "In Into Values")
	number, weights, into := c.use(h), c.buffers(arraysOf(leaves)...), c.buffers(o.into...)
	limits, values := c.buffers(thresholds), c.buffers(o.values...)
	return c.report(func() []int64 {
		return operation(context, number, weights, into, limits, values)
	})
}

func softThreshold(h *handle, leaves []leaf, operation func(context, number uintptr,
	weights, into, thresholds, conditioners []flat.Buffer, eps, atol float64, maxIter, scale int) []int64,
	thresholds Array, given []Option) (Report, error) {
	c, o, context := begin(given, "In Into Conditioners Epsilon Tolerance MaxSteps ScaleThresholds")
	number, weights, into := c.use(h), c.buffers(arraysOf(leaves)...), c.buffers(o.into...)
	limits, conditioners := c.buffers(thresholds), c.buffers(o.conditioners...)
	return c.report(func() []int64 {
		return operation(context, number, weights, into, limits, conditioners, o.epsilon, o.tolerance,
			o.maxSteps, o.scale)
	})
}

// SetData copies into the leaves, from one array per leaf, of any float dtype. Takes In.
func (b *Block) SetData(source []Array, given ...Option) error {
	c, _, context := begin(given, "In")
	number, target, sources := c.use(b.handle), c.buffers(arraysOf(b.leaves)...), c.buffers(source...)
	return c.run(func() { flat.Block_set_data(context, number, target, sources) })
}

// Masks returns the mask of each leaf's elements, contiguous in the shape of its view, from one of
// blocks, U8. Takes In.
func (b *Block) Masks(blockMask Array, given ...Option) ([][]uint8, error) {
	c, _, context := begin(given, "In")
	number, mask := c.use(b.handle), c.buffers(blockMask)
	masks, err := c.fillEach(U8, numelsOf(b.leaves), func(out []flat.Buffer) {
		flat.Block_get_masks(context, number, mask, out)
	})
	return bytesOf(masks), err
}

// fillEach makes a call that writes several new arrays.
func (c *call) fillEach(dtype DType, lengths []int64, do func(out []flat.Buffer)) ([]Array, error) {
	arrays := make([]Array, len(lengths))
	for i, length := range lengths {
		arrays[i] = NewArray(dtype, length)
	}
	buffers := c.buffers(arrays...)
	if err := c.run(func() { do(buffers) }); err != nil {
		return nil, err
	}
	return arrays, nil
}

func numelsOf(leaves []leaf) []int64 {
	numels := make([]int64, len(leaves))
	for i, l := range leaves {
		numels[i] = l.numel
	}
	return numels
}

func bytesOf(arrays []Array) [][]uint8 {
	var bytes [][]uint8
	for _, a := range arrays {
		bytes = append(bytes, a.Bytes())
	}
	return bytes
}

// first is the array of the first leaf; that of a Block{}, which has none, is empty.
func (b *Block) first() Array {
	if len(b.leaves) == 0 {
		return Array{}
	}
	return b.leaves[0].array
}

// BlockView returns the blocks as a view of the leaf's memory: of shape (B0, b0, B1, b1, ...),
// reordered (B0, B1, ..., b0, b1, ...). A coupling of several leaves is refused.
func (b *Block) BlockView(reorder bool) (*View, error) {
	c := &call{}
	number := c.use(b.handle)
	return newView(b.first(), c, func() uintptr {
		return flat.Block_block_view(number, bit(reorder))
	})
}

// Merged returns the blocks gathered, each in one piece: (blocks..., elements per block), of the
// leaves' dtype if they agree, else of the score dtype. Takes In.
func (b *Block) Merged(given ...Option) (Array, error) {
	c, _, context := begin(given, "In")
	number, leaves := c.use(b.handle), c.buffers(arraysOf(b.leaves)...)
	numel := int64(0)
	dtype := b.first().dtype
	for _, l := range b.leaves {
		numel += l.numel
		if l.array.dtype != dtype {
			dtype = b.scoreDType
		}
	}
	return c.fill(dtype, numel, func(out []flat.Buffer) {
		flat.Block_block_view_merged(context, number, leaves, out)
	})
}

// Broadcast repeats each block's value, of any dtype, over its elements: one array per leaf,
// contiguous in the shape of its view. Takes In.
func (b *Block) Broadcast(values Array, given ...Option) ([]Array, error) {
	c, _, context := begin(given, "In")
	number, source := c.use(b.handle), c.buffers(values)
	return c.fillEach(values.dtype, numelsOf(b.leaves), func(out []flat.Buffer) {
		flat.Block_broadcast_block_to_element(context, number, source, out)
	})
}

// BroadcastFake returns a view of an array with one number per block, in the shape
// (B0, 1, B1, 1, ...), which broadcasts against BlockView(false). The array is of a float dtype.
func (b *Block) BroadcastFake(values Array) (*View, error) {
	c := &call{}
	number := c.use(b.handle)
	return newView(values, c, func() uintptr {
		return flat.Block_broadcast_fake(number, int(values.dtype))
	})
}

// ExpandBlockTensor returns a view of an array with one number per block in the shape of the grid.
// The array is of a float dtype.
func (b *Block) ExpandBlockTensor(values Array) (*View, error) {
	c := &call{}
	number := c.use(b.handle)
	return newView(values, c, func() uintptr {
		return flat.Block_expand_block_tensor(number, int(values.dtype))
	})
}
