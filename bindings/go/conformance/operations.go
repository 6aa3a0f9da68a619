// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/sparsekit/sparsekit/bindings/go/sparsekit"
)

var errDType = errors.New("the view's dtype is not the array's")

func init() {
	register(map[string]command{
		"norms": func(r *run, a *arguments) (string, error) {
			out, err := r.block(a).Norms(a.number("p", 0), r.withValues(a)...)
			return r.out(a, out, err)
		},
		"min": func(r *run, a *arguments) (string, error) {
			out, err := r.block(a).Min(r.options(a)...)
			return r.out(a, out, err)
		},
		"max": func(r *run, a *arguments) (string, error) {
			out, err := r.block(a).Max(r.options(a)...)
			return r.out(a, out, err)
		},
		"nnz": func(r *run, a *arguments) (string, error) {
			// eps is an argument here, not an option.
			eps := a.number("eps", sparsekit.SmallestNonzero)
			delete(a.keyed, "eps")
			total, perBlock, err := r.block(a).Nnz(eps, r.options(a)...)
			if _, err := r.out(a, sparsekit.Of(perBlock), err); err != nil {
				return "", err
			}
			return oneInt(total, nil)
		},
		"reduce": func(r *run, a *arguments) (string, error) {
			out, err := r.block(a).Reduce(reducer(a.keyed["fn"]), r.options(a)...)
			return r.out(a, out, err)
		},
		"apply_mask": func(r *run, a *arguments) (string, error) {
			return ok(r.block(a).ApplyMask(r.keyedArray(a, "mask"), r.options(a)...))
		},
		"apply_keep_mask": func(r *run, a *arguments) (string, error) {
			return ok(r.block(a).ApplyKeepMask(r.keyedArray(a, "mask"), r.options(a)...))
		},
		"apply_multiplier": func(r *run, a *arguments) (string, error) {
			return ok(r.block(a).ApplyMultiplier(r.keyedArray(a, "multiplier"), r.options(a)...))
		},
		"hard_threshold": func(r *run, a *arguments) (string, error) {
			return report(r.grid(a).HardThreshold(r.keyedArray(a, "thresholds"), r.withValues(a)...))
		},
		"soft_threshold": func(r *run, a *arguments) (string, error) {
			return report(r.grid(a).SoftThreshold(r.keyedArray(a, "thresholds"), r.options(a)...))
		},
		"set_data": func(r *run, a *arguments) (string, error) {
			return ok(r.block(a).SetData(r.keyedArrays(a, "source"), r.options(a)...))
		},
		"block_masks": func(r *run, a *arguments) (string, error) {
			masks, err := r.block(a).Masks(r.keyedArray(a, "mask"), r.options(a)...)
			return r.outs(a, arraysOf(masks), err)
		},
		"merged": func(r *run, a *arguments) (string, error) {
			out, err := r.block(a).Merged(r.options(a)...)
			return r.out(a, out, err)
		},
		"broadcast": func(r *run, a *arguments) (string, error) {
			outs, err := r.block(a).Broadcast(r.keyedArray(a, "values"), r.options(a)...)
			return r.outs(a, outs, err)
		},
		"view_merged": func(r *run, a *arguments) (string, error) {
			out, err := r.view(a).Merged(a.integers("shape"), r.options(a)...)
			return r.out(a, out, err)
		},
		"view_broadcast": func(r *run, a *arguments) (string, error) {
			out, err := r.view(a).Broadcast(a.integers("shape"), r.keyedArray(a, "values"), r.options(a)...)
			return r.out(a, out, err)
		},
		"view_apply_mask": func(r *run, a *arguments) (string, error) {
			return ok(r.view(a).ApplyMask(a.integers("shape"), r.keyedArray(a, "mask"), r.options(a)...))
		},
		"view_apply_keep_mask": func(r *run, a *arguments) (string, error) {
			return ok(r.view(a).ApplyKeepMask(a.integers("shape"), r.keyedArray(a, "mask"), r.options(a)...))
		},
		"view_apply_multiplier": func(r *run, a *arguments) (string, error) {
			return ok(r.view(a).ApplyMultiplier(a.integers("shape"), r.keyedArray(a, "multiplier"), r.options(a)...))
		},
		"scope_norms": func(r *run, a *arguments) (string, error) {
			out, err := r.scope(a).Norms(a.number("p", 0), r.withValues(a)...)
			return r.out(a, out, err)
		},
		"block_to_scope": func(r *run, a *arguments) (string, error) {
			out, err := r.scope(a).BlockToScope(r.keyedArrays(a, "values"), r.options(a)...)
			return r.out(a, out, err)
		},
		"scope_to_block": func(r *run, a *arguments) (string, error) {
			outs, err := r.scope(a).ScopeToBlock(r.keyedArray(a, "values"), r.options(a)...)
			return r.outs(a, outs, err)
		},
		"kth_largest": func(r *run, a *arguments) (string, error) {
			out, err := r.scope(a).KthLargest(a.integers("k"), r.withValues(a)...)
			return r.out(a, out, err)
		},
		"kth_mid": func(r *run, a *arguments) (string, error) {
			out, err := r.scope(a).KthMid(a.integers("k"), a.number("k_weight", 1), r.withValues(a)...)
			return r.out(a, out, err)
		},
		"keep_top": func(r *run, a *arguments) (string, error) {
			return report(r.scope(a).KeepTop(a.integers("counts"), r.withValues(a)...))
		},
		"masks": func(r *run, a *arguments) (string, error) {
			masks, done, err := r.scope(a).Masks(a.integers("counts"), r.withValues(a)...)
			if _, err := r.outs(a, arraysOf(masks), err); err != nil {
				return "", err
			}
			return report(done, nil)
		},
		"prune_nm": func(r *run, a *arguments) (string, error) {
			return report(r.view(a).PruneNM(int(a.integer("axis", 0)), a.integer("n", 0), a.integer("m", 0), r.options(a)...))
		},
		"prune_unstructured": func(r *run, a *arguments) (string, error) {
			return report(r.view(a).PruneUnstructured(a.number("sparsity", 0), r.options(a)...))
		},
		"soft_threshold_blocks": func(r *run, a *arguments) (string, error) {
			return report(r.view(a).SoftThresholdBlocks(a.integers("shape"), a.number("threshold", 0), r.options(a)...))
		},
	})
}

func sum(elements []float64) (float64, error) {
	total := 0.0
	for _, element := range elements {
		total += element
	}
	return total, nil
}

func reducer(name string) func([]float64) (float64, error) {
	ends := map[string]error{"throw": errCallback, "stop": sparsekit.Stop}[name]
	if ends == nil {
		return sum
	}
	return func([]float64) (float64, error) { return 0, ends }
}
