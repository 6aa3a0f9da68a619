# SPDX-License-Identifier: Apache-2.0
"""Views, blocks and couplings against NumPy's arithmetic."""

import math

import numpy as np
import pytest

import sparsekit as sk


def random(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def blocked(array, rows, columns):
    """(grid rows, grid columns, elements of a block)"""
    height, width = array.shape
    cut = array.reshape(height // rows, rows, width // columns, columns).transpose(0, 2, 1, 3)
    return cut.reshape(height // rows, width // columns, -1)


# --- views ---


def test_view_facts():
    view = sk.View(np.zeros(64, np.float32), (4, 6), (6, -1), 10)
    assert (view.ndim, view.shape, view.stride, view.offset) == (2, (4, 6), (6, -1), 10)
    assert view.numel() == 24 and view.cosize == 1 + 3 * 6 + 5
    assert view.layout == "(4,6):(6,-1)+10" and view.dtype == "f32"
    assert view.linear_offset((2, 3)) == 10 + 12 - 3
    assert view.to_param_rc((2, 3), 8) == (19 // 8, 19 % 8)
    assert repr(view) == "View((4,6):(6,-1)+10, f32)"


def test_view_of_numpy_integers_and_one_dimension():
    view = sk.View(np.zeros(8), np.int64(4), np.int64(2))
    assert view.shape == (4,) and view.stride == (2,)
    assert view.linear_offset(np.array([3])) == 6


def test_from_text_and_from_existing():
    weights = np.arange(24, dtype=np.float32)
    view = sk.View.from_text(weights, "(4,6)")
    np.testing.assert_array_equal(view.data, weights.reshape(4, 6))
    columns = sk.View.from_existing(view, (4, 3), (6, 2), 1)
    np.testing.assert_array_equal(columns.data, weights.reshape(4, 6)[:, 1::2])
    rows = sk.View.from_existing(view, shape=(2, 6))
    np.testing.assert_array_equal(rows.data, weights.reshape(4, 6)[:2])
    assert columns.param is weights


def test_view_refuses():
    weights = np.zeros(16, np.float32)
    with pytest.raises(sk.OverlapError):
        sk.View(weights, (3, 3), (1, 1))
    with pytest.raises(sk.OutOfBoundsError):
        sk.View(weights, (4,), (-1,), 2)
    with pytest.raises(sk.ShapeMismatchError):
        sk.View(weights, (4, 4), (1,))
    with pytest.raises(IndexError):
        sk.View(weights).linear_offset(16)
    with pytest.raises(sk.UnsupportedDtypeError):
        sk.View(weights, dtype="int32")


@pytest.mark.parametrize("reorder", [False, True])
def test_block_view_of_shares_memory(reorder):
    weights = random(4, 6)
    blocks = sk.View(weights).block_view_of((2, 3), reorder)
    expected = weights.reshape(2, 2, 2, 3)
    np.testing.assert_array_equal(blocks, expected.transpose(0, 2, 1, 3) if reorder else expected)
    blocks[...] = 7
    assert (weights == 7).all()


def test_view_helpers():
    weights = random(4, 6)
    before = weights.copy()
    view = sk.View(weights)
    np.testing.assert_array_equal(view.block_view_of((2, 3), merge=True), blocked(weights, 2, 3))
    spread = view.broadcast_block_to_element(np.array([[1, 2], [3, 4]], np.float32), (2, 3))
    np.testing.assert_array_equal(spread, np.kron([[1, 2], [3, 4]], np.ones((2, 3))))
    view.apply_multiplier([[2, 0.5], [0, 1]], (2, 3))
    scaled = before * np.kron([[2, 0.5], [0, 1]], np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(weights, scaled)
    target = np.zeros((4, 6), np.float32)
    view.apply_keep_mask([[1, 0], [0, 0]], (2, 3), into=target)
    np.testing.assert_array_equal(target[:2, :3], scaled[:2, :3])
    assert (target[2:] == 0).all() and (weights == scaled).all()


# --- measuring ---


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("p", [0, 1, 2, 3, math.inf, -math.inf])
def test_norms(dtype, p):
    weights = random(8, 12, dtype=dtype)
    norms = sk.BlockSpec(weights, (2, 3)).norms(p=p)
    expected = np.linalg.norm(blocked(weights, 2, 3).astype(np.float64), p, axis=2)
    assert norms.dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_allclose(norms, expected, rtol=4 * np.finfo(norms.dtype).eps)


def test_min_max_nnz_reduce():
    weights = random(8, 12)
    weights[0, :5] = 0
    block = sk.BlockSpec(weights, (2, 3))
    np.testing.assert_array_equal(block.min(), blocked(weights, 2, 3).min(axis=2))
    np.testing.assert_array_equal(block.max(), blocked(weights, 2, 3).max(axis=2))
    assert block.nnz() == 91
    counts = block.nnz(per_block=True)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, (blocked(weights, 2, 3) != 0).sum(axis=2))
    spans = block.reduce(None, lambda elements: elements.max() - elements.min())
    np.testing.assert_allclose(spans, np.ptp(blocked(weights, 2, 3), axis=2), rtol=1e-6)


def test_a_reducer_may_keep_its_elements():
    kept = []
    sk.BlockSpec(np.arange(4, dtype=np.float32), 2).reduce(None, lambda x: kept.append(x) or 0)
    assert [list(elements) for elements in kept] == [[0, 1], [2, 3]]


def test_facts_and_repr():
    block = sk.BlockSpec(np.zeros((8, 12)), (2, -1), name="rows")
    assert (block.name, block.grid_shape, block.grid_ndim) == ("rows", (4, 1), 2)
    assert (block.numblk(), block.numel(), block.numel_per_block()) == (4, 96, 24)
    assert block.block_shape == (2, 12) and block.score_dtype == "f64"
    assert repr(block) == "BlockSpec('rows', grid (4, 1), blocks (2, 12))"
    assert sk.BlockSpec(np.zeros(3, np.float32)).grid_shape == (3,)
    with pytest.raises(sk.ShapeMismatchError):
        sk.BlockSpec(np.zeros((8, 12)), (3, 1))


# --- writing ---


def test_masks_and_multipliers():
    weights = random(4, 6)
    before = weights.copy()
    block = sk.BlockSpec(weights, (2, 3))
    mask = np.array([[True, False], [False, True]])
    elements = block.get_masks(mask)
    assert elements.dtype == np.bool_
    np.testing.assert_array_equal(elements, np.kron(mask, np.ones((2, 3), bool)))
    block.apply_keep_mask(mask)
    np.testing.assert_array_equal(weights, before * elements)
    weights[...] = before
    block.apply_mask(mask)
    np.testing.assert_array_equal(weights, before * ~elements)
    weights[...] = np.nan
    block.apply_multiplier(np.zeros((2, 2), np.float16))
    assert (weights == 0).all() and not np.signbit(weights).any()


def test_hard_threshold_is_strict():
    weights = np.array([[3, 4], [6, 8], [0.3, 0.4]], np.float32)
    report = sk.BlockSpec(weights, (1, 2)).hard_threshold(5.0)
    assert weights.tolist() == [[3, 4], [6, 8], [0, 0]]
    assert report == (3, -1, 2, 0, 0) and report.achieved == 2


def test_soft_threshold_is_the_proximal_operator():
    weights = random(8, 12, dtype=np.float64)
    expected = blocked(weights, 2, 3).copy()
    norms = np.linalg.norm(expected, axis=2, keepdims=True)
    expected *= np.maximum(0, 1 - 1.5 / norms)
    sk.BlockSpec(weights, (2, 3)).soft_threshold(1.5, eps=0.0)
    np.testing.assert_allclose(blocked(weights, 2, 3), expected, rtol=1e-13, atol=1e-15)


def test_soft_threshold_per_block_and_scaled():
    weights = np.array([[3, 4], [3, 4]], np.float64)
    block = sk.BlockSpec(weights, (1, 2))
    block.soft_threshold([[1.0], [2.5]], eps=0.0)
    np.testing.assert_allclose(weights, [[2.4, 3.2], [1.5, 2]], rtol=1e-15)
    weights[...] = [[3, 4], [3, 4]]
    block.soft_threshold(1.0, eps=0.0, scale=True)
    np.testing.assert_allclose(weights, [[3, 4]] * np.ones((2, 1)) * (1 - math.sqrt(2) / 5))


def test_conditioned_soft_threshold_satisfies_its_equation():
    weights, metric = random(6, 5, dtype=np.float64), 0.5 + random(6, 5, dtype=np.float64) ** 2
    before = weights.copy()
    report = sk.BlockSpec(weights, (1, 5)).soft_threshold(0.7, metric, atol=1e-12, max_iter=64)
    assert report.not_converged == 0
    for x, w, h in zip(weights, before, metric):
        if (x == 0).all():
            assert np.linalg.norm(h * w) <= 0.7
        else:  # the gradient h (x - w) + t x / |x| vanishes
            np.testing.assert_allclose(h * (w - x), 0.7 * x / np.linalg.norm(x), rtol=1e-8)
    assert (weights != 0).any()


def test_running_out_of_steps_is_a_warning_and_a_report():
    metric = np.exp(random(4, 8, dtype=np.float64))
    block = sk.BlockSpec(1 / metric, (1, 8))  # constant products are the hard case
    with pytest.warns(sk.NotConvergedWarning, match="4 of 4 blocks ran out of steps"):
        report = block.soft_threshold(1.0, metric, max_iter=1, atol=0.0)
    assert report == (4, -1, 4, 0, 4)


def test_set_data_rounds_to_the_dtype():
    weights = np.zeros((2, 2), np.float16)
    sk.BlockSpec(weights, (1, 2)).set_data(np.array([[1 / 3, 2], [1e-9, 65504]]))
    np.testing.assert_array_equal(weights, np.array([[1 / 3, 2], [1e-9, 65504]]).astype("f2"))


def test_block_view_and_broadcast():
    weights = random(4, 6)
    block = sk.BlockSpec(weights, (2, 3))
    np.testing.assert_array_equal(block.block_view(), weights.reshape(2, 2, 2, 3))
    np.testing.assert_array_equal(
        block.block_view(reorder=True), weights.reshape(2, 2, 2, 3).transpose(0, 2, 1, 3)
    )
    np.testing.assert_array_equal(block.block_view(merge=True), blocked(weights, 2, 3))
    scales = np.array([[1, 2], [3, 4]], np.float32)
    for kind in (np.bool_, np.uint8, np.int64, np.float16):
        assert block.broadcast_block_to_element(scales.astype(kind)).dtype == kind
    fake = block.broadcast_block_to_element(scales, fake=True)
    assert fake.shape == (2, 1, 2, 1) and np.shares_memory(fake, scales)
    full = block.broadcast_block_to_element(scales)
    np.testing.assert_array_equal((block.block_view() * fake).reshape(4, 6), weights * full)
    flat = block.expand_block_tensor(scales.reshape(-1))
    assert flat.shape == (2, 2) and np.shares_memory(flat, scales)


def test_block_view_of_other_values():
    weights, values = random(4, 6), random(4, 6, seed=1)
    block = sk.BlockSpec(weights, (2, 3))
    np.testing.assert_array_equal(block.block_view(values), values.reshape(2, 2, 2, 3))
    strided = np.asfortranarray(values)
    np.testing.assert_array_equal(block.block_view(strided), values.reshape(2, 2, 2, 3))
    assert np.shares_memory(block.block_view(strided), strided)
    turned = sk.BlockCoupling([block], [(1, 0)])
    np.testing.assert_array_equal(
        turned.block_view(strided, reorder=True),
        values.reshape(2, 2, 2, 3).transpose(2, 0, 3, 1),
    )


# --- couplings: neuron i is a row of w1, an element of b1, a column of w2 ---


@pytest.fixture
def neurons():
    w1, b1, w2 = random(3, 4), random(3, seed=1), random(2, 3, seed=2)
    specs = [
        sk.BlockSpec(w1, (1, -1), "w1"),
        sk.BlockSpec(sk.View(b1, (3, 1)), None, "b1"),
        sk.BlockSpec(w2, (-1, 1), "w2"),
    ]
    return (w1, b1, w2), specs, sk.BlockCoupling(specs, [(0, 1), (0, 1), (1, 0)], "neurons")


def test_coupling_norms(neurons):
    (w1, b1, w2), _, coupling = neurons
    expected = np.sqrt((w1**2).sum(1) + b1**2 + (w2**2).sum(0))
    np.testing.assert_allclose(coupling.norms()[:, 0], expected, rtol=1e-6)
    assert coupling.numel_per_block() == 7 and coupling.leaf_count() == 3
    assert coupling.parameters() == (w1, b1, w2) or all(
        a is b for a, b in zip(coupling.parameters(), (w1, b1, w2))
    )
    assert [spec.name for spec in coupling.blocks()] == ["w1", "b1", "w2"]
    assert "'neurons', grid (3, 1), 7 elements per block in 3 leaves" in repr(coupling)


def test_coupling_writes_all_leaves(neurons):
    (w1, b1, w2), _, coupling = neurons
    before = [array.copy() for array in (w1, b1, w2)]
    coupling.apply_mask([0, 1, 0])
    assert (w1[1] == 0).all() and b1[1] == 0 and (w2[:, 1] == 0).all()
    assert (w1[[0, 2]] == before[0][[0, 2]]).all() and (w2[:, 0] == before[2][:, 0]).all()
    masks = coupling.get_masks([1, 0, 1])
    assert [mask.shape for mask in masks] == [(3, 4), (3, 1), (2, 3)]
    assert masks[2].tolist() == [[True, False, True]] * 2


def test_values_by_list_and_by_dict(neurons):
    (w1, b1, w2), specs, coupling = neurons
    values = [np.ones((3, 4), "f4"), np.full(3, 2, "f4"), np.full((2, 3), 3, "f4")]
    expected = np.full((3, 1), 4 * 1 + 4 + 2 * 9)
    views = [spec.view for spec in specs]
    for given in (
        values,
        tuple(values),
        dict(zip(specs, values)),
        dict(zip(reversed(views), reversed(values))),
        {specs[1]: values[1], views[0]: values[0], specs[2]: values[2]},
        {coupling: values},
    ):
        np.testing.assert_allclose(coupling.norms(given) ** 2, expected, rtol=1e-6)
    outer = sk.BlockCoupling([coupling])
    np.testing.assert_allclose(outer.norms({coupling: values}) ** 2, expected, rtol=1e-6)


def test_values_that_do_not_fit(neurons):
    arrays, specs, coupling = neurons
    for wrong in (
        list(arrays[:2]),
        arrays[0],
        {specs[0]: arrays[0]},
        {**dict(zip(specs, arrays)), "w4": arrays[0]},
        [arrays[0], arrays[1], arrays[2].T],
    ):
        with pytest.raises(sk.ShapeMismatchError):
            coupling.norms(wrong)


def test_coupling_refuses():
    with pytest.raises(sk.CouplingError):
        sk.BlockCoupling([sk.BlockSpec(random(4, 4)), sk.BlockSpec(random(4, 2))])
    with pytest.raises(sk.CouplingError):
        sk.BlockCoupling([sk.BlockSpec(random(4, 4))], [(0, 0)])
    with pytest.raises(sk.ShapeMismatchError):
        sk.BlockCoupling([sk.BlockSpec(random(4, 4))], [(0,)])


def test_into_by_dict_leaves_the_weights_alone(neurons):
    (w1, b1, w2), specs, coupling = neurons
    before = w1.copy()
    targets = [np.full_like(array, 9) for array in (w1, b1, w2)]
    coupling.apply_multiplier(np.full(3, 2.0), into=dict(zip(specs, targets)))
    np.testing.assert_array_equal(targets[0], 2 * w1)
    np.testing.assert_array_equal(targets[2], 2 * w2)
    np.testing.assert_array_equal(w1, before)


# --- arrays that go with a view ---


def test_values_lie_like_the_param_or_like_the_view():
    weights = np.zeros(24, np.float32)
    view = sk.View(weights, (4, 3), (6, 2), 1)
    block = sk.BlockSpec(view, (1, 3))
    like_param = np.arange(24, dtype=np.float64)
    expected = like_param.reshape(4, 6)[:, 1::2]
    for values in (like_param, expected, expected.copy(), np.asfortranarray(expected)):
        weights[...] = 0
        block.set_data(values)
        np.testing.assert_array_equal(view.data, expected)
        assert weights[0::2].sum() == 0
    with pytest.raises(sk.ShapeMismatchError):
        block.set_data(np.zeros((3, 4)))


def test_the_params_order_wins_over_the_views():
    weights = np.zeros((3, 3), np.float32)
    turned = sk.View(weights, (3, 3), (1, 3))
    gradient = np.arange(9, dtype=np.float32).reshape(3, 3)
    sk.BlockSpec(turned).set_data(gradient)
    np.testing.assert_array_equal(weights, gradient)
    with pytest.raises(sk.ShapeMismatchError, match="strides"):
        sk.BlockSpec(turned).set_data(np.asfortranarray(gradient))


def test_operands_that_are_strided_are_gathered():
    weights = np.ones((4, 4), np.float32)
    block = sk.BlockSpec(weights, (2, 2))
    scales = np.arange(16, dtype=np.float64).reshape(4, 4)[::2, ::2]
    block.apply_multiplier(scales)
    np.testing.assert_array_equal(weights, np.kron(scales, np.ones((2, 2))))


def test_operands_of_another_shape_are_refused():
    weights = np.ones((4, 9), np.float32)
    block = sk.BlockSpec(weights, (2, 3))
    turned = np.array([[0, 9], [9, 9], [9, 0]], np.float32)
    mask = turned != 0
    expected = r"got shape \(3, 2\), expected \(2, 3\), flat, or one number"
    for refused in (
        lambda: block.hard_threshold(turned),
        lambda: block.soft_threshold(turned),
        lambda: block.apply_multiplier(turned),
        lambda: block.apply_mask(mask),
        lambda: block.apply_keep_mask(mask),
        lambda: block.get_masks(mask),
        lambda: sk.ScopeSpec(block, (1, 1)).soft_threshold(turned),
        lambda: sk.ScopeSpec(block, (1, 1)).hard_threshold(turned),
    ):
        with pytest.raises(sk.ShapeMismatchError, match=expected):
            refused()
    assert weights.min() == 1
    block.hard_threshold(turned.T)
    kept = np.array([[1, 0, 0], [0, 0, 1]], np.float32)
    np.testing.assert_array_equal(weights, np.kron(kept, np.ones((2, 3))))
    block.hard_threshold(turned.T.ravel())
    block.hard_threshold(0.5)
