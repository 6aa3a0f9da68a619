# SPDX-License-Identifier: Apache-2.0
"""Scopes and one-call conveniences against NumPy's arithmetic."""

import numpy as np
import pytest

import sparsekit as sk


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.fixture
def scope():
    """12 blocks of 2 elements in a row of 24, four rows; scopes of 1 x 4 blocks."""
    return sk.ScopeSpec(sk.BlockSpec(random(4, 24), (1, 2)), (1, 4), "quads")


def scores_of(scope):
    weights = scope.block.data.astype(np.float64)
    return np.sqrt((weights.reshape(4, 3, 4, 2) ** 2).sum(-1)).astype(np.float32)


def test_facts_and_repr(scope):
    assert (scope.name, scope.grid_shape, scope.grid_ndim) == ("quads", (4, 3), 2)
    assert (scope.numscope(), scope.numblk_per_scope(), scope.numel_per_scope()) == (12, 4, 8)
    assert scope.member_count() == scope.leaf_count() == 1
    assert [scope.sparsity_to_nnz(s) for s in (0, 0.25, 0.5, 1)] == [4, 3, 2, 0]
    assert repr(scope) == "ScopeSpec('quads', grid (4, 3), 4 blocks per scope)"
    whole = sk.ScopeSpec(scope.block)
    assert whole.grid_shape == (1, 1) and whole.numblk_per_scope() == 48


def test_scores(scope):
    expected = scores_of(scope)
    np.testing.assert_array_equal(scope.block_norms(), expected)
    ranked = -np.sort(-expected, axis=-1)
    np.testing.assert_array_equal(scope.kth_largest(nnz=2), ranked[..., 1])
    mid = scope.kth_mid(nnz=2, k_weight=3.0)
    np.testing.assert_allclose(mid, (3 * ranked[..., 1] + ranked[..., 2]) / 4, rtol=1e-6)
    np.testing.assert_array_equal(scope.kth_largest(nnz=1, block_scores=expected), ranked[..., 0])
    np.testing.assert_array_equal(
        scope.kth_largest(None, [1, 2, 3, 4] * 3).ravel(),
        [ranked.reshape(12, 4)[i, i % 4] for i in range(12)],
    )


def test_exact_selection(scope):
    keep = scores_of(scope) >= -np.sort(-scores_of(scope), axis=-1)[..., 1:2]
    before = scope.block.data.copy()
    mask = np.repeat(keep.reshape(4, 12), 2, axis=1)
    np.testing.assert_array_equal(scope.get_masks(nnz=2), mask)
    masks, report = scope.get_masks(2, block_scores=scope.block_norms(), report=True)
    np.testing.assert_array_equal(masks, mask)
    assert report == (48, 24, 24, 0, 0)
    np.testing.assert_array_equal(scope.get_masks(block_mask=keep), mask)
    assert scope.hard_threshold(nnz=2) == (48, 24, 24, 0, 0)
    np.testing.assert_array_equal(scope.block.data, before * mask)
    assert scope.nnz() == 48
    np.testing.assert_array_equal(scope.nnz(per_scope=True), np.full((4, 3), 4))


def test_hard_threshold_by_number_and_by_values(scope):
    mid = scope.kth_mid(nnz=1)
    assert scope.hard_threshold(mid, into=np.zeros((4, 24), "f4")).achieved == 12
    values = random(4, 24, seed=5)
    best = np.abs(values).reshape(4, 3, 4, 2)
    best = np.sqrt((best.astype("f8") ** 2).sum(-1)).argmax(-1)
    mask = scope.get_masks(1, values)
    np.testing.assert_array_equal(mask.reshape(4, 3, 4, 2)[..., 0].argmax(-1), best)
    scope.hard_threshold(nnz=1, values=values)
    np.testing.assert_array_equal(scope.block.data != 0, mask)
    with pytest.raises(sk.InvalidArgumentError):
        scope.hard_threshold()
    with pytest.raises(sk.InvalidArgumentError):
        scope.hard_threshold(1.0, nnz=1)


def test_ties():
    weights = np.ones((1, 4), np.float32)
    scope = sk.ScopeSpec(sk.BlockSpec(weights))
    assert scope.get_masks(2).tolist() == [[True, True, False, False]]
    assert scope.get_masks(2, ties="keep_all").all()
    with pytest.raises(sk.InvalidArgumentError, match="by_position"):
        scope.get_masks(2, ties="random")


def test_soft_threshold_per_scope():
    weights = np.array([[3, 4, 6, 8], [3, 4, 6, 8]], np.float64)
    scope = sk.ScopeSpec(sk.BlockSpec(weights, (1, 2)), (1, 2))
    scope.soft_threshold([[1.0], [5.0]], eps=0.0)
    np.testing.assert_allclose(weights, [[2.4, 3.2, 5.4, 7.2], [0, 0, 3, 4]], rtol=1e-15)


def test_rearranging(scope):
    counts = np.arange(48).reshape(4, 12)
    np.testing.assert_array_equal(scope.block_to_scope(counts), counts.reshape(4, 3, 4))
    view = scope.block_to_scope(counts, merge=False)
    np.testing.assert_array_equal(view, counts.reshape(4, 1, 3, 4).transpose(0, 2, 1, 3))
    assert np.shares_memory(view, counts)
    per_scope = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(scope.scope_to_block(per_scope), np.repeat(per_scope, 4, axis=1))


def test_layers_compete_for_one_budget():
    large = np.array([[9, 1, 8]], np.float32)
    small = np.array([[2, 7]], np.float32)
    scopes = [sk.ScopeSpec(sk.BlockSpec(array)) for array in (large, small)]
    both = sk.ScopeCoupling(scopes, name="budget")
    assert both.numblk_per_scope() == 5 and both.member_count() == 2
    assert [mask.tolist() for mask in both.get_masks(3)] == [[[1, 0, 1]], [[0, 1]]]
    assert both.nnz() == 5 and both.nnz(per_scope=True).tolist() == [[5]]
    assert both.block_to_scope([large, small]).tolist() == [[[9, 1, 8, 2, 7]]]
    spread = both.scope_to_block(np.array([4.0]))
    assert [array.tolist() for array in spread] == [[[4, 4, 4]], [[4, 4]]]
    both.hard_threshold(nnz=3, values={scopes[0]: large, scopes[1]: small})
    assert large.tolist() == [[9, 0, 8]] and small.tolist() == [[0, 7]]
    assert repr(both) == "ScopeCoupling('budget', grid (1, 1), 5 blocks per scope of 2 members)"


def test_values_of_a_coupled_scope_by_block():
    arrays = [random(2, 4, seed=seed) for seed in range(2)]
    blocks = [sk.BlockSpec(array, (1, 4)) for array in arrays]
    scope = sk.ScopeSpec(sk.BlockCoupling(blocks))
    values = {blocks[1]: 2 * np.ones((2, 4), "f4"), blocks[0]: np.ones((2, 4), "f4")}
    np.testing.assert_allclose(scope.block_norms(values), np.sqrt([[[20, 20]]]), rtol=1e-6)


def test_prune_nm_along_each_axis():
    weights = random(8, 8)
    for axis in (0, 1, -2):
        pruned = weights.copy()
        report = sk.prune_nm(pruned, 1, 4, axis)
        assert report == (64, 16, 16, 0, 0)
        groups = np.moveaxis(pruned, axis, 1).reshape(-1, 4)
        source = np.moveaxis(weights, axis, 1).reshape(-1, 4)
        best = np.abs(source).argmax(axis=1)
        np.testing.assert_array_equal(groups.sum(axis=1), source[np.arange(16), best])
    with pytest.raises(sk.ShapeMismatchError):
        sk.prune_nm(weights, 2, 3)


def test_prune_unstructured_is_exact():
    weights = random(10, 10)
    order = np.abs(weights).ravel().argsort()
    sk.prune_unstructured(weights, 0.29)
    assert (weights.ravel()[order] == 0).tolist() == [True] * 29 + [False] * 71


def test_soft_threshold_blocks():
    weights = np.array([[3, 4, 0.3, 0.4]], np.float64)
    assert sk.soft_threshold_blocks(weights, (1, 2), 1.0).achieved == 1
    np.testing.assert_allclose(weights, [[2.4, 3.2, 0, 0]], rtol=1e-12)


def test_scores_and_masks_may_be_lists():
    weights = np.ones((4, 2), np.float32)
    rows = sk.BlockSpec(weights, (1, -1))
    scope = sk.ScopeSpec(rows)
    kept = scope.get_masks(2, block_scores=[1, 4, 3, 2])[:, 0]
    assert kept.tolist() == [False, True, True, False]
    assert scope.kth_largest(nnz=2, block_scores=[1, 4, 3, 2]).item() == 3
    # Any true element is a 1, also one that no byte can hold.
    rows.apply_mask([256, 0, 0.5, 0])
    assert weights[:, 0].tolist() == [0, 1, 0, 1]
