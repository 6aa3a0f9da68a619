# SPDX-License-Identifier: Apache-2.0
"""Which arrays are taken, in place, and which are refused."""

import array
import ctypes
import gc
import mmap
import weakref

import numpy as np
import pytest

import sparsekit as sk


def address_of(numpy_array):
    return numpy_array.__array_interface__["data"][0]


class Interface:
    """An array that is known by __array_interface__ alone."""

    def __init__(self, data):
        self._data = data
        self.__array_interface__ = dict(data.__array_interface__)


class Dlpack:
    """An array that is known by DLPack alone."""

    def __init__(self, data, device=(1, 0)):
        self._data, self._device = data, device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self):
        return self._data.__dlpack__()


# --- in place, whatever the kind ---


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_numpy_is_worked_on_in_place(dtype):
    weights = np.array([[4, -3, 2, 1], [1, 2, -3, 4]], dtype)
    view = sk.View(weights)
    assert view.address == address_of(weights)
    sk.prune_nm(view, 2, 4)
    np.testing.assert_array_equal(weights, np.array([[4, -3, 0, 0], [0, 0, -3, 4]], dtype))


@pytest.mark.parametrize("code", ["f", "d"])
def test_array_module(code):
    weights = array.array(code, [1, -5, 3, 2])
    view = sk.View(weights)
    assert view.address == weights.buffer_info()[0]
    assert sk.prune_unstructured(view, 0.5).achieved == 2
    assert weights.tolist() == [0, -5, 3, 0]


def test_a_viewed_array_cannot_be_resized():
    weights = array.array("f", [1, 2, 3, 4])
    view = sk.View(weights)
    with pytest.raises(BufferError):
        weights.append(5)
    del view
    weights.append(5)


def test_memoryview_bytearray_and_mmap():
    for memory in (bytearray(16), mmap.mmap(-1, 16)):
        weights = memoryview(memory).cast("f")
        weights[0], weights[3] = 1.5, -2.5
        sk.View(weights).apply_multiplier([2.0, 0, 0, 2.0])
        assert weights.tolist() == [3.0, 0, 0, -5.0]
        weights.release()


def test_memoryview_in_two_dimensions():
    memory = bytearray(32)
    view = sk.View(memoryview(memory).cast("f", (2, 4)))
    assert view.shape == (2, 4) and view.stride == (4, 1)


def test_ctypes_array():
    weights = (ctypes.c_float * 4)(1, 2, 3, 4)
    view = sk.View(weights)
    assert view.address == ctypes.addressof(weights)
    sk.prune_nm(view, 1, 2)
    assert list(weights) == [0, 2, 0, 4]


@pytest.mark.parametrize("kind", [Interface, Dlpack])
def test_interfaces_are_worked_on_in_place(kind):
    weights = np.array([[1, 2], [3, 4]], np.float32)
    view = sk.View(kind(weights))
    assert view.address == address_of(weights) and view.shape == (2, 2)
    view.apply_mask([[1, 0], [0, 1]])
    assert weights.tolist() == [[0, 2], [3, 0]]


def test_interface_with_strides():
    weights = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    view = sk.View(Interface(weights.T[::-1]))
    assert view.shape == (4, 3) and view.stride == (-1, 4)
    np.testing.assert_array_equal(view.data, weights.T[::-1])


STRIDED = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1],
    "reversed twice": lambda a: a[::-1, ::-1],
    "every other column": lambda a: a[:, ::2],
    "backwards with gaps": lambda a: a[::-2, 1::3],
    "one row": lambda a: a[2:3],
    "Fortran order": np.asfortranarray,
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_arrays(name):
    whole = np.random.default_rng(1).normal(size=(6, 12)).astype(np.float32)
    weights = STRIDED[name](whole)
    before, outside = weights.copy(), whole.copy()
    view = sk.View(weights)
    assert view.shape == weights.shape
    assert np.shares_memory(view.data, weights)
    np.testing.assert_array_equal(view.data, before)
    np.testing.assert_array_equal(sk.BlockSpec(view, (1, -1)).max()[:, 0], before.max(axis=1))
    sk.prune_unstructured(view, 0.5)
    kept = np.abs(before) > np.sort(np.abs(before), axis=None)[before.size // 2 - 1]
    np.testing.assert_array_equal(weights, before * kept)
    # Elements outside the view are as they were.
    np.testing.assert_array_equal(weights != 0, kept)
    if name != "Fortran order":
        STRIDED[name](outside)[...] = weights
        np.testing.assert_array_equal(whole, outside)


@pytest.mark.parametrize("kind", [lambda array: array, Interface, Dlpack])
def test_the_array_lives_as_long_as_its_scope(kind):
    weights = np.ones((4, 4), np.float32)
    alive = weakref.ref(weights)
    block = sk.BlockSpec(sk.View(kind(weights)), (1, 4))
    block.views[0].param = None  # the memory itself is kept
    scope = sk.ScopeSpec(block)
    del weights, block
    gc.collect()
    assert alive() is not None
    assert scope.hard_threshold(nnz=2).achieved == 2
    del scope
    gc.collect()
    assert alive() is None


def test_what_data_shares_outlives_the_view():
    view = sk.View(np.arange(4, dtype=np.float32))
    data = view.data
    del view
    gc.collect()
    assert data.tolist() == [0, 1, 2, 3]


# --- 16-bit words and bf16 ---


def test_words_of_bf16():
    # bf16 is the upper half of f32: 1.0, -2.0, 4.0, 0.5
    bits = np.array([0x3F80, 0xC000, 0x4080, 0x3F00], np.uint16)
    view = sk.View(bits, dtype="bf16")
    assert view.dtype == "bf16" and view.address == address_of(bits)
    assert sk.BlockSpec(view).norms().tolist() == [1, 2, 4, 0.5]
    sk.prune_nm(view, 2, 4)
    assert bits.tolist() == [0, 0xC000, 0x4080, 0]


def test_words_as_an_argument():
    weights = np.zeros(4, np.float32)
    block = sk.BlockSpec(weights)
    block.set_data(sk.words(np.array([0x3F80, 0xC000, 0x4080, 0x3F00], np.uint16), "bf16"))
    assert weights.tolist() == [1, -2, 4, 0.5]
    block.set_data(sk.words(np.array([0x3C00, 0, 0, 0], np.uint16), "f16"))
    assert weights.tolist() == [1, 0, 0, 0]


def test_plain_words_are_refused():
    with pytest.raises(sk.UnsupportedDtypeError, match="format 'H'"):
        sk.View(np.zeros(4, np.uint16))


def test_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    weights = np.array([1, -2, 4, 0.5], ml_dtypes.bfloat16)
    view = sk.View(weights)
    assert view.dtype == "bf16" and view.address == address_of(weights)
    assert view.data.dtype == ml_dtypes.bfloat16
    sk.prune_nm(view, 2, 4)
    assert weights.tolist() == [0, -2, 4, 0]
    assert sk.BlockSpec(view, 4).block_view(merge=True).dtype == ml_dtypes.bfloat16
    reverse = sk.View(weights[::-1])
    assert reverse.stride == (-1,) and reverse.data.tolist() == [0, 4, -2, 0]
    swapped = np.zeros(4, np.float32)
    sk.BlockSpec(swapped).set_data(weights)
    assert swapped.tolist() == [0, -2, 4, 0]


# --- refused ---


def test_foreign_devices():
    with pytest.raises(sk.UnavailableError, match=r"device \(2, 0\), expected CPU") as caught:
        sk.View(Dlpack(np.zeros(4, np.float32), (2, 0)))
    assert caught.value.status_name == "SPK_UNAVAILABLE"
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("dtype", ["i4", "u4", "c8", "i1", "U3", "O", "f4,f4", "M8[s]"])
def test_wrong_dtypes(dtype):
    with pytest.raises(sk.UnsupportedDtypeError) as caught:
        sk.View(np.zeros(4, dtype))
    assert isinstance(caught.value, TypeError)


def test_long_double():
    with pytest.raises(sk.UnsupportedDtypeError):
        sk.View(np.zeros(4, np.longdouble))


def test_masks_and_counts_are_no_weights():
    for dtype in (np.uint8, np.int64):
        with pytest.raises(sk.UnsupportedDtypeError):
            sk.View(np.zeros(4, dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_byte_swapped(dtype):
    swapped = np.zeros(4, np.dtype(dtype).newbyteorder())
    with pytest.raises(sk.UnsupportedDtypeError, match="byte-swapped"):
        sk.View(swapped)
    with pytest.raises(sk.UnsupportedDtypeError, match="type string"):
        sk.View(Interface(swapped))


def test_misaligned():
    raw = np.zeros(17, np.uint8)
    start = 1 if address_of(raw) % 4 == 0 else 0
    weights = raw[start : start + 16].view(np.float32)
    assert address_of(weights) % 4 != 0
    for array_kind in (weights, Interface(weights)):
        with pytest.raises(sk.InvalidArgumentError, match="misaligned"):
            sk.View(array_kind)


def test_strides_inside_an_element():
    records = np.zeros(4, np.dtype([("flag", "u1"), ("weight", "f4")], align=False))
    with pytest.raises(sk.InvalidArgumentError, match="strides inside an element"):
        sk.View(records["weight"])


def test_broadcast_arrays_overlap():
    with pytest.raises(sk.OverlapError) as caught:
        sk.View(np.broadcast_to(np.float32(1), (4, 4)))
    assert isinstance(caught.value, ValueError)


def test_read_only_arrays_are_read_but_not_written():
    weights = np.array([1, 2, 3, 4], np.float32)
    weights.flags.writeable = False
    view = sk.View(weights)
    assert not view.data.flags.writeable
    assert sk.BlockSpec(view, 4).norms(p=1).tolist() == [10]
    with pytest.raises(sk.InvalidArgumentError, match="read-only"):
        sk.prune_nm(view, 2, 4)
    assert weights.tolist() == [1, 2, 3, 4]
    target = np.full(4, -1, np.float32)
    sk.prune_nm(view, 2, 4, into=target)
    assert target.tolist() == [0, 0, 3, 4]
    with pytest.raises(sk.InvalidArgumentError, match="read-only"):
        sk.prune_nm(np.ones(4, np.float32), 2, 4, into=weights)


def test_an_array_that_becomes_read_only():
    weights = np.array([[1, 2, 3, 4]], np.float32)
    scope = sk.ScopeSpec(sk.BlockSpec(weights))
    gradient, target = np.ones((4, 1), np.float32), np.zeros((4, 1), np.float32).T
    weights.flags.writeable = target.flags.writeable = False
    with pytest.raises(sk.InvalidArgumentError, match="read-only"):
        scope.hard_threshold(nnz=2)
    with pytest.raises(sk.InvalidArgumentError, match="read-only"):
        scope.hard_threshold(nnz=2, values=gradient.T, into=target)
    assert weights.tolist() == [[1, 2, 3, 4]] and not target.any()


def test_read_only_bytes_and_interface():
    weights = np.zeros(4, np.float32)
    interface = Interface(weights)
    interface.__array_interface__["data"] = (address_of(weights), True)
    for frozen in (memoryview(bytes(16)).cast("f"), interface):
        with pytest.raises(sk.InvalidArgumentError, match="read-only"):
            sk.prune_nm(frozen, 2, 4)


def test_immutable_arrays_of_an_old_dlpack():
    weights = np.array([1, 2, 3, 4], np.float32)
    jax_array = type("Array", (Dlpack,), {"__module__": "jaxlib.fake"})
    with pytest.raises(sk.InvalidArgumentError, match="read-only"):
        sk.prune_nm(jax_array(weights), 2, 4)
    assert weights.tolist() == [1, 2, 3, 4]


def test_interface_without_an_address():
    interface = Interface(np.zeros(4, np.float32))
    interface.__array_interface__["data"] = None
    with pytest.raises(sk.InvalidArgumentError, match="without data"):
        sk.View(interface)


def test_no_array_at_all():
    for thing in (None, object(), "weights", {}, 3.0, [1.0, 2.0]):
        with pytest.raises(sk.UnsupportedDtypeError, match="buffer protocol"):
            sk.View(thing)


def test_empty_arrays():
    with pytest.raises(sk.SparseKitError):
        sk.View(np.zeros((0, 4), np.float32))


def test_too_many_dimensions():
    with pytest.raises(sk.InvalidArgumentError):
        sk.View(np.zeros((1,) * 17, np.float32))


def test_explicit_windows_need_memory_without_gaps():
    with pytest.raises(sk.InvalidArgumentError, match="gaps"):
        sk.View(np.zeros((4, 4), np.float32)[:, ::2], (2, 2))


def test_a_window_beyond_the_array_is_refused_by_the_call():
    weights = np.ones(8, np.float32)
    with pytest.raises(sk.OutOfBoundsError) as caught:
        sk.prune_nm(sk.View(weights, (4, 4)), 2, 4)
    assert isinstance(caught.value, (IndexError, ValueError))
    assert weights.tolist() == [1] * 8


def test_arrays_of_a_call_may_not_share_memory():
    weights = np.ones((4, 4), np.float32)
    both = sk.BlockCoupling([sk.BlockSpec(weights, (1, 4)), sk.BlockSpec(weights, (1, 4))])
    with pytest.raises(sk.OverlapError):
        both.apply_mask(np.ones(4, np.uint8))
