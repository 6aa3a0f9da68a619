# SPDX-License-Identifier: Apache-2.0
"""JAX's arrays: read where they lie, never written."""

import numpy as np
import pytest

import sparsekit as sk


@pytest.fixture
def jnp():
    pytest.importorskip("jax", reason="JAX is not installed")
    import jax.numpy

    return jax.numpy


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_jax_arrays_are_read_in_place(jnp, dtype):
    weights = jnp.array([[1, -5, 3, 2]], dtype)
    view = sk.View(weights)
    assert view.address == weights.unsafe_buffer_pointer()
    with pytest.raises(sk.InvalidArgumentError, match="read-only"):
        sk.prune_nm(view, 2, 4)
    target = np.zeros_like(view.data)
    sk.prune_nm(view, 2, 4, into=target)
    assert target.tolist() == [[0, -5, 3, 0]]
    assert weights.tolist() == [[1, -5, 3, 2]]


def test_jax_operands(jnp):
    weights = np.array([[3, 4], [6, 8]], np.float32)
    block = sk.BlockSpec(weights, (1, 2))
    block.apply_keep_mask(jnp.array([False, True]))
    assert weights.tolist() == [[0, 0], [6, 8]]
    np.testing.assert_array_equal(block.norms(jnp.ones((2, 2)), p=1), [[2], [2]])
