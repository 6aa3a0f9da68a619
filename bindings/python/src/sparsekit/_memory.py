# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages as memory that the library works on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _native
from ._errors import (
    InvalidArgumentError,
    OutOfBoundsError,
    ShapeMismatchError,
    SparseKitError,
    UnavailableError,
    UnsupportedDtypeError,
    named,
)

Memory = _native.Memory

#: Anything with the buffer protocol, ``__array_interface__`` or ``__dlpack__``.
Array = Any

F32, F64, F16, BF16 = _native.F32, _native.F64, _native.F16, _native.BF16
U8, I64 = _native.U8, _native.I64

DTYPE_NAMES: dict[int, str] = {
    F32: "f32",
    F64: "f64",
    F16: "f16",
    BF16: "bf16",
    U8: "u8",
    I64: "i64",
}
_CODES: dict[str, int] = {name: code for code, name in DTYPE_NAMES.items()}
_CODES.update(float32=F32, float64=F64, float16=F16, bfloat16=BF16, uint8=U8, bool=U8, int64=I64)
_TYPESTRS: dict[str, int] = {"f4": F32, "f8": F64, "f2": F16, "u1": U8, "b1": U8, "i8": I64}
_EXPECTED_DTYPES = "native float32, float64, float16, bfloat16, uint8, bool or int64"
_NATIVE_ORDER = np.dtype(np.float32).str[0]
_CPU_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost


def dtype_code(dtype: Any) -> int:
    """The library's number of a dtype: a name such as ``"bf16"`` or ``"float32"``, or anything that
    ``numpy.dtype`` takes."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    code = _CODES.get(name)
    if code is None:
        raise UnsupportedDtypeError(
            f"dtype: got {name}, expected one of {', '.join(DTYPE_NAMES.values())}"
        )
    return code


def _bfloat16() -> np.dtype:
    try:
        import ml_dtypes  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return np.dtype(np.uint16)
    return np.dtype(ml_dtypes.bfloat16)


def numpy_dtype(code: int) -> np.dtype:
    """NumPy's dtype; of bf16 that of ml_dtypes, or 16-bit words where that is not installed."""
    if code == BF16:
        return _bfloat16()
    return _NUMPY_DTYPES[code]


_NUMPY_DTYPES: dict[int, np.dtype] = {
    F32: np.dtype(np.float32),
    F64: np.dtype(np.float64),
    F16: np.dtype(np.float16),
    U8: np.dtype(np.uint8),
    I64: np.dtype(np.int64),
}


def _is_words(code: int) -> bool:
    return code in (F16, BF16)


def memory_of(array: Array, words: int = 0) -> Memory:
    """The memory of an array, which it keeps alive. ``words``: the dtype of 16-bit integers."""
    if isinstance(array, Memory):
        return array
    if isinstance(array, np.ndarray) and array.dtype.name == "bfloat16":
        return Memory(_native_order(array).view(np.uint16), BF16)
    try:
        return Memory(array, words if _is_words(words) else 0)
    except SparseKitError:
        raise
    except (TypeError, BufferError, ValueError) as error:
        if isinstance(array, np.ndarray):
            raise UnsupportedDtypeError(
                f"array: got {array.dtype}, expected {_EXPECTED_DTYPES}"
            ) from error
    interface = getattr(array, "__array_interface__", None)
    if isinstance(interface, dict):
        return _of_interface(array, interface, words)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array)
    raise UnsupportedDtypeError(
        f"array: got {type(array).__name__}, expected an object with the buffer protocol, "
        "__array_interface__ or __dlpack__"
    )


def _native_order(array: np.ndarray) -> np.ndarray:
    if not array.dtype.isnative:
        raise UnsupportedDtypeError("array: got byte-swapped elements, expected native ones")
    return array


def _of_interface(array: Array, interface: dict[str, Any], words: int) -> Memory:
    typestr = interface["typestr"]
    dtype = _TYPESTRS.get(typestr[1:], 0)
    if typestr[1:] in ("u2", "i2") and _is_words(words):
        dtype = words
    if dtype == 0 or typestr[0] not in ("|", _NATIVE_ORDER):
        raise UnsupportedDtypeError(
            f"array: got the type string '{typestr}', expected {_EXPECTED_DTYPES}"
        )
    if interface.get("data") is None:
        raise InvalidArgumentError(
            "array: got an __array_interface__ without data, expected an address"
        )
    address, read_only = interface["data"]
    strides = interface.get("strides")
    return Memory.at(
        array,
        address,
        read_only,
        dtype,
        tuple(interface["shape"]),
        None if strides is None else tuple(strides),
    )


def _of_dlpack(array: Array) -> Memory:
    try:
        device = tuple(int(part) for part in array.__dlpack_device__())
        if device[0] not in _CPU_DEVICES:
            raise UnavailableError(
                f"array: got memory of DLPack device {device}, expected CPU memory"
            )
        capsule = _capsule_of(array)
    except (ValueError, BufferError) as error:
        raise UnavailableError(
            f"array: got one that is not shared ({error}), expected CPU memory"
        ) from error
    return Memory.of_dlpack(capsule, _is_immutable(array))


def _capsule_of(array: Array) -> Any:
    if getattr(array, "requires_grad", False):
        array = array.detach()  # the same memory, without its history
    try:
        return array.__dlpack__(max_version=(1, 0))
    except TypeError:  # an exporter of DLPack 0
        return array.__dlpack__()


def _is_immutable(array: Array) -> bool:
    # A capsule of DLPack 0 cannot say it, and JAX compiles on the promise.
    return type(array).__module__.split(".")[0] in ("jax", "jaxlib")


def words(array: Array, dtype: Any) -> Memory:
    """An array of 16-bit words, taken as ``"f16"`` or ``"bf16"``: for arguments whose arrays cannot
    say so themselves. The memory is shared, not copied.

    >>> bits = np.zeros(8, np.uint16)
    >>> half = words(bits, "bf16")
    """
    return memory_of(array, dtype_code(dtype))


def operand(array: Any, dtype: type, what: str) -> Any:
    """A small argument (thresholds, a mask, scores), contiguous: arrays keep their dtype, Python
    numbers and lists become arrays of ``dtype``. ``what`` is the argument, for messages."""
    if isinstance(array, (int, float, list, tuple, np.generic)):
        return np.atleast_1d(np.asarray(array, None if isinstance(array, np.generic) else dtype))
    try:
        memory = memory_of(array)
    except SparseKitError as error:
        raise named(error, what)
    return memory if memory.dense else gathered(memory)


def of_grid(array: Any, dtype: type, what: str, shape: Callable[[], tuple[int, ...]]) -> Any:
    """An :func:`operand` of the shape of a grid, flat, or one number: others, such as transposed
    ones, would have their numbers taken for those of other blocks."""
    numbers = operand(array, dtype, what)
    if len(numbers.shape) > 1 and tuple(numbers.shape) != shape():
        raise ShapeMismatchError(
            f"{what}: got shape {tuple(numbers.shape)}, expected {shape()}, flat, or one number"
        )
    return numbers


def gathered(memory: Memory) -> Memory:
    """A contiguous copy."""
    copy = np.ascontiguousarray(ndarray(memory, memory.shape, memory.stride, memory.offset))
    return memory_of(copy, memory.dtype)


def ndarray(memory: Memory, shape: Sequence[int], stride: Sequence[int], offset: int) -> np.ndarray:
    """A NumPy array of the same memory; shape, stride and offset in elements."""
    kind = numpy_dtype(memory.dtype)
    buffer: Any = memory  # which NumPy's types know as bytes and the like alone
    steps = [step * kind.itemsize for step in stride]
    try:
        return np.ndarray(shape, kind, buffer, offset * kind.itemsize, steps)
    except (TypeError, ValueError) as error:
        raise OutOfBoundsError(
            f"view: shape {tuple(shape)}, strides {tuple(stride)} and offset {offset} reach "
            f"outside of an array of {memory.numel} elements"
        ) from error


def integers(numbers: None | int | Sequence[int]) -> tuple[int, ...] | None:
    """A tuple of integers from one or from a sequence."""
    if numbers is None or type(numbers) is tuple:
        return numbers
    if isinstance(numbers, (int, np.integer)):
        return (int(numbers),)
    return tuple(operator.index(number) for number in np.ravel(numbers))
