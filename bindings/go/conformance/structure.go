// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/sparsekit/sparsekit/bindings/go/sparsekit"
)

func init() {
	register(map[string]command{
		"context": context,
		"view": func(r *run, a *arguments) (string, error) {
			array := r.array(a, a.at(2))
			if array.DType() != dtypes[a.at(1)] {
				return "", errDType
			}
			view, err := newView(array, a)
			if err != nil {
				return "", err
			}
			return r.keep(a.at(0), view), nil
		},
		"format": func(r *run, a *arguments) (string, error) { return text(r.view(a).Format()) },
		"dtype":  func(r *run, a *arguments) (string, error) { return dtypeText(r.view(a).DType()) },
		"shape":  func(r *run, a *arguments) (string, error) { return ints(r.view(a).Shape()) },
		"stride": func(r *run, a *arguments) (string, error) { return ints(r.view(a).Stride()) },
		"offset": func(r *run, a *arguments) (string, error) { return oneInt(r.view(a).Offset()) },
		"cosize": func(r *run, a *arguments) (string, error) { return oneInt(r.view(a).Cosize()) },
		"linear_offset": func(r *run, a *arguments) (string, error) {
			return oneInt(r.view(a).LinearOffset(a.integers("index")...))
		},
		"to_param_rc": func(r *run, a *arguments) (string, error) {
			row, column, err := r.view(a).ToParamRC(a.integers("index"), a.integer("cols", 0))
			return ints([]int64{row, column}, err)
		},
		"numel": func(r *run, a *arguments) (string, error) {
			return oneInt(r.objects[a.at(0)].(interface{ Numel() (int64, error) }).Numel())
		},
		"block": func(r *run, a *arguments) (string, error) {
			view := named[*sparsekit.View](r, a, a.at(1))
			block, err := sparsekit.NewBlock(view, a.integers("shape"), r.options(a)...)
			if err != nil {
				return "", err
			}
			return r.keep(a.at(0), block), nil
		},
		"couple": func(r *run, a *arguments) (string, error) {
			block, err := sparsekit.CoupleBlocks(members[*sparsekit.Block](r, a), a.lists("orders"), r.options(a)...)
			if err != nil {
				return "", err
			}
			return r.keep(a.at(0), block), nil
		},
		"scope": func(r *run, a *arguments) (string, error) {
			block := named[*sparsekit.Block](r, a, a.at(1))
			scope, err := sparsekit.NewScope(block, a.integers("shape"), r.options(a)...)
			if err != nil {
				return "", err
			}
			return r.keep(a.at(0), scope), nil
		},
		"couple_scopes": func(r *run, a *arguments) (string, error) {
			scope, err := sparsekit.CoupleScopes(members[*sparsekit.Scope](r, a), a.lists("orders"), r.options(a)...)
			if err != nil {
				return "", err
			}
			return r.keep(a.at(0), scope), nil
		},
		"close": func(r *run, a *arguments) (string, error) {
			return ok(named[closer](r, a, a.at(0)).Close())
		},
		"live":           func(r *run, a *arguments) (string, error) { return oneInt(sparsekit.LiveHandles(), nil) },
		"grid_shape":     func(r *run, a *arguments) (string, error) { return ints(r.grid(a).GridShape()) },
		"score_dtype":    func(r *run, a *arguments) (string, error) { return dtypeText(r.grid(a).ScoreDType()) },
		"leaf_count":     func(r *run, a *arguments) (string, error) { return oneInt(r.grid(a).LeafCount()) },
		"name":           func(r *run, a *arguments) (string, error) { return text(r.grid(a).Name()) },
		"numblk":         func(r *run, a *arguments) (string, error) { return oneInt(r.block(a).Numblk()) },
		"leaf":           func(r *run, a *arguments) (string, error) { return ints(r.block(a).LeafShape(int(a.toInt(a.at(1))))) },
		"numscope":       func(r *run, a *arguments) (string, error) { return oneInt(r.scope(a).Numscope()) },
		"member_count":   func(r *run, a *arguments) (string, error) { return oneInt(r.scope(a).MemberCount()) },
		"block_view":     func(r *run, a *arguments) (string, error) { return formatted(r.block(a).BlockView(reordered(a))) },
		"broadcast_fake": func(r *run, a *arguments) (string, error) { return formatted(r.block(a).BroadcastFake(r.perBlock(a))) },
		"numel_per_block": func(r *run, a *arguments) (string, error) {
			return oneInt(r.block(a).NumelPerBlock())
		},
		"expand_block_tensor": func(r *run, a *arguments) (string, error) {
			return formatted(r.block(a).ExpandBlockTensor(r.perBlock(a)))
		},
		"numblk_per_scope": func(r *run, a *arguments) (string, error) {
			return oneInt(r.scope(a).NumblkPerScope())
		},
		"numel_per_scope": func(r *run, a *arguments) (string, error) {
			return oneInt(r.scope(a).NumelPerScope())
		},
		"sparsity_to_nnz": func(r *run, a *arguments) (string, error) {
			return oneInt(r.scope(a).SparsityToNnz(a.toFloat(a.at(1))))
		},
		"view_block_view": func(r *run, a *arguments) (string, error) {
			return formatted(r.view(a).BlockView(a.integers("shape"), reordered(a)))
		},
		"block_to_scope_view": func(r *run, a *arguments) (string, error) {
			return formatted(r.scope(a).BlockToScopeView(sparsekit.NewArray(sparsekit.F32, 1), reordered(a)))
		},
	})
}

func newView(array sparsekit.Array, a *arguments) (*sparsekit.View, error) {
	if !a.has("shape") {
		return sparsekit.ParseView(array, a.at(3))
	}
	return sparsekit.NewStridedView(array, a.integers("shape"), a.integers("stride"), a.integer("offset", 0))
}

// grid is what blocks and scopes have in common.
type grid interface {
	GridShape() ([]int64, error)
	ScoreDType() (sparsekit.DType, error)
	LeafCount() (int, error)
	Name() (string, error)
	HardThreshold(sparsekit.Array, ...sparsekit.Option) (sparsekit.Report, error)
	SoftThreshold(sparsekit.Array, ...sparsekit.Option) (sparsekit.Report, error)
	Close() error
}

func (r *run) grid(a *arguments) grid { return named[grid](r, a, a.at(0)) }

func members[T closer](r *run, a *arguments) []T {
	var objects []T
	for _, name := range a.words("members") {
		objects = append(objects, named[T](r, a, name))
	}
	return objects
}

func reordered(a *arguments) bool { return a.integer("reorder", 0) == 1 }

// perBlock returns an array with one number per block; views of it are only described here.
func (r *run) perBlock(a *arguments) sparsekit.Array {
	dtype, err := r.block(a).ScoreDType()
	if err != nil {
		dtype = sparsekit.F32
	}
	return sparsekit.NewArray(dtype, 1)
}

func context(r *run, a *arguments) (string, error) {
	options := sparsekit.ContextOptions{Threads: int(a.integer("threads", 0)),
		Executor: map[string]sparsekit.Executor{"": sparsekit.DefaultExecutor, "serial": sparsekit.Serial,
			"tbb": sparsekit.TBB, "openmp": sparsekit.OpenMP}[a.keyed["executor"]]}
	if a.has("progress") {
		ends := map[string]error{"cancel": sparsekit.Stop, "throw": errCallback, "count": nil}[a.keyed["progress"]]
		options.Progress = func(done, total int64) error { return ends }
	}
	c, err := sparsekit.NewContext(options)
	if err != nil {
		return "", err
	}
	return r.keep(a.at(0), c), nil
}
