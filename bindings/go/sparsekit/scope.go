// SPDX-License-Identifier: Apache-2.0

package sparsekit

import "github.com/sparsekit/sparsekit/bindings/go/internal/flat"

// Scope cuts the grid of a block into groups of blocks that compete; or couples scopes, so that the
// blocks of scope i of each of them compete together. It knows the arrays of its leaves and keeps
// them alive.
type Scope struct {
	handle     *handle
	members    []member
	leaves     []leaf
	numscope   int64
	perScope   int64
	scoreDType DType
}

// member is a block of a scope coupling.
type member struct {
	leaves []leaf
	numblk int64
}

// NewScope cuts the grid of a block into scopes of this shape, counted in blocks; an extent <= 0,
// or one that is missing at the end, spans the grid's: a nil shape makes one scope of all blocks.
// Takes Named.
func NewScope(block *Block, shape []int64, given ...Option) (*Scope, error) {
	c, o, _ := begin(given, "Named")
	number := c.use(block.own())
	h, err := create(c, func() uintptr { return flat.Scope_create(number, shape, o.name) }, releaseScope)
	if err != nil {
		return nil, err
	}
	return newScope(h, []member{{block.leaves, block.numblk}})
}

// CoupleScopes couples scopes whose grids agree after a permutation of axes each: orders has one
// per member, or is nil for none. Scores are those of the members, one after the other. Takes
// Named.
func CoupleScopes(scopes []*Scope, orders [][]int64, given ...Option) (*Scope, error) {
	c, o, _ := begin(given, "Named")
	numbers := make([]uintptr, len(scopes))
	members := []member{}
	for i, scope := range scopes {
		if numbers[i] = c.use(scope.own()); numbers[i] != 0 {
			members = append(members, scope.members...)
		}
	}
	axes := c.flatten(orders, len(scopes))
	h, err := create(c, func() uintptr {
		return flat.Scope_couple(numbers, axes, o.name)
	}, releaseScope)
	if err != nil {
		return nil, err
	}
	return newScope(h, members)
}

func newScope(h *handle, members []member) (*Scope, error) {
	s := &Scope{handle: h, members: members}
	for _, m := range members {
		s.leaves = append(s.leaves, m.leaves...)
	}
	var err error
	if s.numscope, err = fact(h, flat.Scope_numscope); err != nil {
		return nil, err
	}
	if s.perScope, err = fact(h, flat.Scope_numblk_per_scope); err != nil {
		return nil, err
	}
	s.scoreDType, err = s.ScoreDType()
	return s, err
}

func (s *Scope) own() *handle {
	if s == nil {
		return nil
	}
	return s.handle
}

// Close releases the scope. Couplings that were made of it stay as they are.
func (s *Scope) Close() error {
	s.handle.close()
	return nil
}

// Name returns the name.
func (s *Scope) Name() (string, error) { return fact(s.handle, flat.Scope_name) }

// GridShape returns how many scopes there are along each axis.
func (s *Scope) GridShape() ([]int64, error) { return fact(s.handle, flat.Scope_grid_shape) }

// Numscope returns the number of scopes.
func (s *Scope) Numscope() (int64, error) { return fact(s.handle, flat.Scope_numscope) }

// NumblkPerScope returns the number of blocks of a scope, over all members.
func (s *Scope) NumblkPerScope() (int64, error) { return fact(s.handle, flat.Scope_numblk_per_scope) }

// NumelPerScope returns the number of elements of a scope, over all members.
func (s *Scope) NumelPerScope() (int64, error) { return fact(s.handle, flat.Scope_numel_per_scope) }

// ScoreDType returns F64 if a leaf is F64, else F32.
func (s *Scope) ScoreDType() (DType, error) {
	dtype, err := fact(s.handle, flat.Scope_score_dtype)
	return DType(dtype), err
}

// LeafCount returns the number of views that the scope has elements in.
func (s *Scope) LeafCount() (int, error) { return fact(s.handle, flat.Scope_leaf_count) }

// LeafView returns the view of one leaf; close it too.
func (s *Scope) LeafView(index int) (*View, error) {
	return leafView(s.handle, s.leaves, index, flat.Scope_leaf_view)
}

// MemberCount returns the number of blocks that were coupled, 1 for a scope of one block.
func (s *Scope) MemberCount() (int, error) { return fact(s.handle, flat.Scope_member_count) }

// MemberBlock returns the block of a member; close it too.
func (s *Scope) MemberBlock(index int) (*Block, error) {
	c := &call{}
	number := c.use(s.handle)
	h, err := create(c, func() uintptr { return flat.Scope_member_block(number, index) }, releaseBlock)
	if err != nil {
		return nil, err
	}
	return newBlock(h, s.members[index].leaves)
}

// MemberNumblk returns how many blocks a member brings to a scope.
func (s *Scope) MemberNumblk(index int) (int64, error) {
	return fact(s.handle, func(number uintptr) int64 { return flat.Scope_member_numblk(number, index) })
}

// SparsityToNnz returns how many blocks of a scope stay at a sparsity in [0, 1]: n -
// floor(sparsity n).
func (s *Scope) SparsityToNnz(sparsity float64) (int64, error) {
	return fact(s.handle, func(number uintptr) int64 {
		return flat.Scope_sparsity_to_nnz(number, sparsity)
	})
}

// Norms returns the Lp norms of blocks, arranged by scope: (scopes..., blocks per scope), of the
// score dtype. p as in Block.Norms. Takes In, Values.
func (s *Scope) Norms(p float64, given ...Option) (Array, error) {
	c, o, context := begin(given, "In Values")
	number, leaves := c.use(s.handle), c.valuesOr(o, s.leaves)
	return c.fill(s.scoreDType, s.numscope*s.perScope, func(out []flat.Buffer) {
		flat.Scope_block_norms(context, number, leaves, p, out)
	})
}

// BlockToScope arranges arrays of blocks, one per member and all of one dtype, by scope:
// (scopes..., blocks per scope). Takes In.
func (s *Scope) BlockToScope(values []Array, given ...Option) (Array, error) {
	c, _, context := begin(given, "In")
	number, source := c.use(s.handle), c.buffers(values...)
	dtype := s.scoreDType
	if len(values) != 0 {
		dtype = values[0].dtype
	}
	return c.fill(dtype, s.numscope*s.perScope, func(out []flat.Buffer) {
		flat.Scope_block_to_scope(context, number, source, out)
	})
}

// BlockToScopeView is BlockToScope without a copy, as a view of an array of a float dtype with one
// number per block. A coupling of several members is refused.
func (s *Scope) BlockToScopeView(values Array, reorder bool) (*View, error) {
	c := &call{}
	number := c.use(s.handle)
	return newView(values, c, func() uintptr {
		return flat.Scope_block_to_scope_view(number, int(values.dtype), bit(reorder))
	})
}

// ScopeToBlock repeats each scope's value, of any dtype, over its blocks: one array per member.
// Takes In.
func (s *Scope) ScopeToBlock(values Array, given ...Option) ([]Array, error) {
	c, _, context := begin(given, "In")
	number, source := c.use(s.handle), c.buffers(values)
	lengths := make([]int64, len(s.members))
	for i, m := range s.members {
		lengths[i] = m.numblk
	}
	return c.fillEach(values.dtype, lengths, func(out []flat.Buffer) {
		flat.Scope_scope_to_block(context, number, source, out)
	})
}

// KthLargest returns the k-th largest score of each scope, k = 1 being the largest: one k for all,
// or one per scope. Scores are the norms of the leaves. Takes In, Values, Scores.
func (s *Scope) KthLargest(k []int64, given ...Option) (Array, error) {
	c, o, context := begin(given, "In Values Scores")
	number := c.use(s.handle)
	values, scores, _ := c.source(o, s.leaves)
	return c.fill(s.scoreDType, s.numscope, func(out []flat.Buffer) {
		flat.Scope_kth_largest(context, number, values, scores, k, out)
	})
}

// KthMid returns a threshold between the k-th and the next score of each scope, their mean with the
// weights kWeight and 1: as a threshold it keeps exactly k. Takes In, Values, Scores.
func (s *Scope) KthMid(k []int64, kWeight float64, given ...Option) (Array, error) {
	c, o, context := begin(given, "In Values Scores")
	number := c.use(s.handle)
	values, scores, _ := c.source(o, s.leaves)
	return c.fill(s.scoreDType, s.numscope, func(out []flat.Buffer) {
		flat.Scope_kth_mid(context, number, values, scores, k, kWeight, out)
	})
}

// source returns where scores come from: what was given, or else the leaves.
func (c *call) source(o *options, leaves []leaf) (values, scores, blockMask []flat.Buffer) {
	scores, blockMask = c.optional(o.scores), c.optional(o.blockMask)
	if len(o.values) == 0 && (scores != nil || blockMask != nil) {
		return nil, scores, blockMask
	}
	return c.valuesOr(o, leaves), scores, blockMask
}

// HardThreshold zeroes the blocks with norm < threshold of their scope. Thresholds are F32 or F64,
// one per scope or one for all. Takes In, Into, Values.
func (s *Scope) HardThreshold(thresholds Array, given ...Option) (Report, error) {
	return hardThreshold(s.handle, s.leaves, flat.Scope_hard_threshold, thresholds, given)
}

// SoftThreshold is Block.SoftThreshold with one threshold per scope, or one for all.
func (s *Scope) SoftThreshold(thresholds Array, given ...Option) (Report, error) {
	return softThreshold(s.handle, s.leaves, flat.Scope_soft_threshold, thresholds, given)
}

// KeepTop keeps exactly `count` blocks of each scope, those of largest norm, and zeroes the rest:
// one count for all, or one per scope. Equal scores are settled by position, lower first; NaN ranks
// above infinity. Takes In, Into, Values, Scores, KeepTies.
func (s *Scope) KeepTop(counts []int64, given ...Option) (Report, error) {
	c, o, context := begin(given, "In Into Values Scores KeepTies")
	number, weights, into := c.use(s.handle), c.buffers(arraysOf(s.leaves)...), c.buffers(o.into...)
	values, scores := c.buffers(o.values...), c.optional(o.scores)
	return c.report(func() []int64 {
		return flat.Scope_keep_top(context, number, weights, into, counts, values, scores, o.ties)
	})
}

// Masks returns what KeepTop would keep, as a keep mask of each leaf's elements, contiguous in the
// shape of its view; nothing is pruned. With BlockMask that mask decides, and counts are nil. Takes
// In, Values, Scores, BlockMask, KeepTies.
func (s *Scope) Masks(counts []int64, given ...Option) ([][]uint8, Report, error) {
	c, o, context := begin(given, "In Values Scores BlockMask KeepTies")
	number := c.use(s.handle)
	values, scores, blockMask := c.source(o, s.leaves)
	masks := make([]Array, len(s.leaves))
	for i, l := range s.leaves {
		masks[i] = NewArray(U8, l.numel)
	}
	out := c.buffers(masks...)
	report, err := c.report(func() []int64 {
		return flat.Scope_get_masks(context, number, values, scores, blockMask, counts, o.ties, out)
	})
	if err != nil {
		return nil, Report{}, err
	}
	return bytesOf(masks), report, nil
}
