# SPDX-License-Identifier: Apache-2.0
"""Views: arrays, and how their elements lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from . import _native
from ._context import Context, Handle, native_context
from ._errors import InvalidArgumentError, ShapeMismatchError, UnsupportedDtypeError
from ._memory import (
    DTYPE_NAMES,
    Array,
    Memory,
    dtype_code,
    integers,
    memory_of,
    ndarray,
    numpy_dtype,
    operand,
)

Shape = Union[None, int, Sequence[int]]


class View(Handle):
    """An array ("param", the owner of the weights) and a strided window over it.

    ``View(param)`` takes shape and strides of the array itself; any strides will do, negative ones
    too. With ``shape``, ``stride`` or ``offset``, which count elements, the window lies over the
    array's memory, which must then be without gaps. Nothing is copied: operations change the array.

    Args:
        param: any CPU array: NumPy, ``array.array``, ``memoryview``, or an object with
            ``__array_interface__`` or ``__dlpack__`` (a PyTorch tensor). float32, float64, float16
            or bfloat16; the view keeps it alive.
        shape: extents, each at least 1, at most 16 of them. None: the array's.
        stride: steps from one element to the next, one per dimension. None: row-major.
        offset: of element (0, 0, ...). None: 0.
        dtype: ``"f16"`` or ``"bf16"`` for an array of 16-bit words, which cannot say it itself.

    Raises:
        OutOfBoundsError: the window reaches below 0.
        OverlapError: two indices lead to one element.
        UnsupportedDtypeError: another dtype, or byte-swapped elements.
        InvalidArgumentError: misaligned elements, gaps under an explicit window.
        UnavailableError: memory of another device.
    """

    def __init__(
        self,
        param: Array,
        shape: Shape = None,
        stride: Shape = None,
        offset: int | None = None,
        dtype: Any = None,
    ) -> None:
        memory = _memory_as(param, dtype)
        reinterprets = not (shape is None and stride is None and offset is None)
        if reinterprets:
            _refuse_gaps(memory)
            layout = (integers(shape) or memory.shape, integers(stride), offset or 0)
        else:
            layout = (memory.shape, memory.stride, memory.offset)
        handle = _native.view_create(memory.dtype, *layout)
        self._adopt(param, memory, handle, reinterprets)

    def _adopt(self, param: Array, memory: Memory, handle: Any, reinterprets: bool = True) -> None:
        self.param = param
        self._memory = memory
        self._leaf = (memory,)
        self._handle = handle
        # Known after closing, too, by the blocks that were built on this view.
        self._reinterprets = reinterprets
        self._code = _native.view_dtype(handle)
        self._shape = _native.view_shape(handle)

    @classmethod
    def from_text(cls, param: Array, text: str, dtype: Any = None) -> View:
        """The view of ``param`` that a text describes, as in layout algebra: ``"(4,6):(6,1)+2"`` is
        shape:stride+offset; without strides, contiguous."""
        view = cls.__new__(cls)
        memory = _memory_as(param, dtype)
        _refuse_gaps(memory)
        view._adopt(param, memory, _native.view_parse(memory.dtype, text))
        return view

    @classmethod
    def from_existing(
        cls, view: View, shape: Shape = None, stride: Shape = None, offset: int | None = None
    ) -> View:
        """Another window over the array of ``view``; what is not given is as in ``view``."""
        other = cls.__new__(cls)
        handle = _native.view_create(
            view._code,
            integers(shape) or view.shape,
            integers(stride) or view.stride,
            view.offset if offset is None else offset,
        )
        other._adopt(view.param, view._memory, handle)
        return other

    # --- facts ---

    @property
    def data(self) -> np.ndarray:
        """The elements as a NumPy array of the same memory, of shape :attr:`shape`; of bf16 with
        the dtype of ml_dtypes, or 16-bit words where that is not installed. Read-only if the array
        is."""
        return self._array(self._handle)

    def _array(self, handle: Any, memory: Memory | None = None) -> np.ndarray:
        memory = self._memory if memory is None else memory
        return ndarray(
            memory,
            _native.view_shape(handle),
            _native.view_stride(handle),
            _native.view_offset(handle),
        )

    @property
    def dtype(self) -> str:
        """``"f32"``, ``"f64"``, ``"f16"`` or ``"bf16"``."""
        return DTYPE_NAMES[_native.view_dtype(self._handle)]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return _native.view_shape(self._handle)

    @property
    def stride(self) -> tuple[int, ...]:
        """Steps in elements."""
        return _native.view_stride(self._handle)

    @property
    def offset(self) -> int:
        """Of element (0, 0, ...), in elements from the array's lowest address."""
        return _native.view_offset(self._handle)

    @property
    def layout(self) -> str:
        """The text form, such as ``"(4,6):(6,1)+2"``."""
        return _native.view_format(self._handle)

    def numel(self) -> int:
        """Number of elements: the product of the shape."""
        return _native.view_numel(self._handle)

    @property
    def cosize(self) -> int:
        """1 + sum((shape_d - 1) |stride_d|): the span of the layout, without its offset."""
        return _native.view_cosize(self._handle)

    @property
    def address(self) -> int:
        """Where the library finds the array's first element (the lowest one)."""
        return _native.address(self._leaf)

    def linear_offset(self, index: Shape) -> int:
        """Where the element of an index tuple lies: offset + sum(i_d stride_d).

        Raises:
            OutOfBoundsError: an index outside the shape.
        """
        return _native.view_linear_offset(self._handle, integers(index))

    def to_param_rc(self, index: Shape, num_cols: int) -> tuple[int, int]:
        """Row and column of that element in a row-major matrix of ``num_cols`` columns that owns
        the memory."""
        return _native.view_to_param_rc(self._handle, integers(index), num_cols)

    # --- helpers for blocks of one shape ---

    def block_view_of(
        self,
        shape: Shape,
        reorder: bool = False,
        merge: bool = False,
        context: Context | None = None,
    ) -> np.ndarray:
        """The blocks of ``shape`` as a NumPy array.

        For extents B x b in each dimension the result is of shape (B0, b0, B1, b1, ...), with
        ``reorder`` (B0, B1, ..., b0, b1, ...); both share the memory. With ``merge`` it is a new
        array (B0, B1, ..., numel per block), each block in one piece.
        """
        shape = integers(shape)
        if not merge:
            return self._array(_native.view_block_view_of(self._handle, shape, reorder))
        grid = self._grid_shape(shape)
        out, memory = new_array(grid + (self.numel() // int(np.prod(grid)),), self._code)
        _native.view_block_view_merged(
            native_context(context), self._handle, self._leaf, shape, (memory,)
        )
        return out

    def _grid_shape(self, shape: tuple[int, ...] | None) -> tuple[int, ...]:
        return _native.block_grid_shape(_native.block_create(self._handle, shape, None))

    def broadcast_block_to_element(
        self, block_values: Array, shape: Shape = None, context: Context | None = None
    ) -> np.ndarray:
        """Repeats one value per block over the elements: a new array of the view's shape and of the
        dtype of ``block_values``, which has the shape of the grid."""
        values = operand(block_values, np.float64, "block_values")
        out, memory = new_like(self._shape, block_values, values)
        _native.view_broadcast_block_to_element(
            native_context(context), self._handle, integers(shape), (values,), (memory,)
        )
        return out

    def apply_mask(
        self,
        prune_mask: Array,
        shape: Shape = None,
        *,
        into: Array | None = None,
        context: Context | None = None,
    ) -> None:
        """Zeroes the blocks of ``shape`` (None: single elements) whose mask is not 0.

        Args:
            prune_mask: bool or uint8 of the grid's shape; 1 = is zeroed.
            into: receives the result; the array of the view is then only read.
        """
        _native.view_apply_mask(
            native_context(context),
            self._handle,
            self._leaf,
            self._into(into),
            integers(shape),
            (operand(prune_mask, np.bool_, "prune_mask"),),
        )

    def apply_keep_mask(
        self,
        keep_mask: Array,
        shape: Shape = None,
        *,
        into: Array | None = None,
        context: Context | None = None,
    ) -> None:
        """Zeroes the blocks whose mask is 0; otherwise as :meth:`apply_mask`."""
        _native.view_apply_keep_mask(
            native_context(context),
            self._handle,
            self._leaf,
            self._into(into),
            integers(shape),
            (operand(keep_mask, np.bool_, "keep_mask"),),
        )

    def apply_multiplier(
        self,
        multiplier: Array,
        shape: Shape = None,
        *,
        into: Array | None = None,
        context: Context | None = None,
    ) -> None:
        """Scales each block of ``shape`` by a number; a multiplier of 0 gives +0.0 even for NaN.

        Args:
            multiplier: any float dtype, of the grid's shape.
        """
        _native.view_apply_multiplier(
            native_context(context),
            self._handle,
            self._leaf,
            self._into(into),
            integers(shape),
            (operand(multiplier, np.float64, "multiplier"),),
        )

    def _into(self, into: Array | None) -> tuple[Memory, ...] | None:
        return None if into is None else (self.beside(into),)

    def beside(self, array: Array) -> Memory:
        """The memory of an array that goes with this view: values, conditioners, gradients,
        targets.

        It has the shape of :attr:`param`, and then lies like it; or the shape of the view, in any
        strides; or it is flat, with the elements where the view says. 16-bit words have the view's
        dtype.
        """
        if isinstance(array, View):
            array = array._memory
        memory = memory_of(array, self._code)
        if self._reinterprets and memory.shape == self._memory.shape:
            if memory.stride == self._memory.stride:
                return memory
            raise ShapeMismatchError(
                f"array: got strides {memory.stride} for a param of strides "
                f"{self._memory.stride}, expected the same"
            )
        if memory.shape == self._shape:
            return memory.own_layout()
        if len(memory.shape) == 1 and memory.dense:
            return memory
        raise ShapeMismatchError(
            f"array: got shape {memory.shape}, expected that of the param, "
            f"{self._memory.shape}, or of the view, {self._shape}"
        )

    def over(self, array: Array) -> View:
        """The elements of another array that go with this view's, see :meth:`beside`."""
        memory = self.beside(array)
        if memory.has_own_layout:
            return View(array, dtype=self.dtype if memory.dtype == self._code else None)
        other = View.__new__(View)
        other._adopt(array, memory, self._handle)
        return other

    def __repr__(self) -> str:
        if self.closed:
            return "View(closed)"
        return f"View({self.layout}, {self.dtype})"


def _memory_as(param: Array, dtype: Any) -> Memory:
    if dtype is None:
        return memory_of(param)
    code = dtype_code(dtype)
    memory = memory_of(param, code)
    if memory.dtype != code:
        raise UnsupportedDtypeError(
            f"dtype: got {DTYPE_NAMES[code]} for an array of {DTYPE_NAMES[memory.dtype]}, expected "
            "the array's own, or one of 16-bit words"
        )
    return memory


def _refuse_gaps(memory: Memory) -> None:
    if memory.numel != int(np.prod(memory.shape)):
        raise InvalidArgumentError(
            "view: got shape, stride or offset over an array with gaps, expected a contiguous array"
        )


def new_array(shape: Sequence[int], code: int) -> tuple[np.ndarray, Any]:
    """A new array of a dtype, and its memory."""
    array = np.empty(shape, numpy_dtype(code))
    return array, memory_of(array, code)


def new_like(shape: Sequence[int], given: Any, values: Any) -> tuple[np.ndarray, Any]:
    """A new array of the dtype that was given, ``values`` being the operand made of it."""
    source = given if isinstance(given, np.ndarray) else values
    if not isinstance(source, np.ndarray):
        return new_array(shape, source.dtype)
    array = np.empty(shape, source.dtype)
    return array, memory_of(array)


def view_of(array: View | Array) -> View:
    """The view itself, or that of a whole array."""
    return array if isinstance(array, View) else View(array)
