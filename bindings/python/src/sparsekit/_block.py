# SPDX-License-Identifier: Apache-2.0
"""Blocks, the units that live or die: specs over one view, couplings of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import numpy as np

from . import _native
from ._context import Context, Report, native_context, report_of
from ._errors import ShapeMismatchError
from ._leaves import Leaves, PerLeaf, axes_of, elements_function, soft_options
from ._memory import DTYPE_NAMES, Array, Memory, integers, memory_of, ndarray, of_grid, operand
from ._view import Shape, View, new_array, new_like, view_of


class Block(Leaves):
    """What :class:`BlockSpec` and :class:`BlockCoupling` can do.

    Arrays of one number per block have the shape :attr:`grid_shape`; flat ones of as many elements
    will do. Norms, minima and maxima come in the *score dtype*: float64 if a leaf is, else float32.

    Every method that works takes ``context``; every one that writes the weights takes ``into``,
    arrays per leaf that receive the result while the leaves are only read. Methods raise
    :class:`ShapeMismatchError`, :class:`UnsupportedDtypeError`, :class:`OutOfBoundsError` or
    :class:`OverlapError` for arrays that do not fit; a refused call has written nothing.
    """

    # --- facts ---

    @property
    def name(self) -> str:
        """The name, as messages have it."""
        return _native.block_name(self._handle)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """How many blocks there are along each dimension."""
        return _native.block_grid_shape(self._handle)

    @property
    def grid_ndim(self) -> int:
        return len(self.grid_shape)

    @property
    def score_dtype(self) -> str:
        """``"f64"`` if any leaf is f64, else ``"f32"``."""
        return DTYPE_NAMES[_native.block_score_dtype(self._handle)]

    def numblk(self) -> int:
        """Number of blocks."""
        return _native.block_numblk(self._handle)

    def numel(self) -> int:
        """Elements of all blocks."""
        return _native.block_numel(self._handle)

    def numel_per_block(self) -> int:
        """Elements of one block, over all leaves."""
        return _native.block_numel_per_block(self._handle)

    def leaf_count(self) -> int:
        """Number of leaves; 1 for a block spec."""
        return _native.block_leaf_count(self._handle)

    def leaf_shape(self, index: int = 0) -> tuple[int, ...]:
        """The extents of a block in the view of leaf ``index``."""
        return _native.block_leaf_shape(self._handle, index)

    def blocks(self) -> tuple[BlockSpec, ...]:
        """The block specs, one per leaf."""
        raise NotImplementedError

    @property
    def data(self) -> Any:
        """The elements, sharing memory: the array of a block spec, the list of a coupling's."""
        return self._single([view.data for view in self._views])

    def _of_grid(self, array: Array, dtype: type, what: str) -> Any:
        return of_grid(array, dtype, what, lambda: self.grid_shape)

    def _new_scores(self) -> tuple[np.ndarray, Any]:
        return new_array(self.grid_shape, _native.block_score_dtype(self._handle))

    # --- measuring ---

    def norms(
        self, values: PerLeaf | None = None, p: float = 2, *, context: Context | None = None
    ) -> np.ndarray:
        """One Lp norm per block, over all leaves: a new array of :attr:`grid_shape`.

        Args:
            values: arrays per leaf to take instead of the weights, of the weights' dtypes.
            p: 0 (non-zeros), 1, 2, ``math.inf``, ``-math.inf``, or in [0.01, 1000].
        """
        out, memory = self._new_scores()
        _native.block_norms(
            native_context(context), self._handle, self._leaves_or(values), p, (memory,)
        )
        return out

    def min(self, values: PerLeaf | None = None, *, context: Context | None = None) -> np.ndarray:
        """The smallest signed element of each block; NaN if there is one."""
        out, memory = self._new_scores()
        _native.block_min(native_context(context), self._handle, self._leaves_or(values), (memory,))
        return out

    def max(self, values: PerLeaf | None = None, *, context: Context | None = None) -> np.ndarray:
        """The largest signed element of each block; NaN if there is one."""
        out, memory = self._new_scores()
        _native.block_max(native_context(context), self._handle, self._leaves_or(values), (memory,))
        return out

    def nnz(
        self,
        eps: float = 1e-8,
        values: PerLeaf | None = None,
        *,
        per_block: bool = False,
        context: Context | None = None,
    ) -> int | np.ndarray:
        """How many elements are larger than ``eps`` in magnitude, NaN included: the total, or with
        ``per_block`` an int64 array of :attr:`grid_shape`."""
        out = np.empty(self.grid_shape, np.int64) if per_block else None
        total = _native.block_nnz(
            native_context(context),
            self._handle,
            self._leaves_or(values),
            eps,
            None if out is None else (out,),
        )
        return total if out is None else out

    def reduce(
        self,
        values: PerLeaf | None,
        fn: Callable[[np.ndarray], float],
        *,
        context: Context | None = None,
    ) -> np.ndarray:
        """``fn`` of each block: a new array of :attr:`grid_shape`, score dtype.

        Args:
            values: arrays per leaf to take instead of the weights; None: the weights.
            fn: gets the block's elements as a float64 array, leaf by leaf, each row-major, and
                gives a number. What it raises ends the call and comes out of it.
        """
        out, memory = self._new_scores()
        _native.block_reduce(
            native_context(context),
            self._handle,
            self._leaves_or(values),
            elements_function(fn),
            (memory,),
        )
        return out

    # --- writing ---

    def apply_mask(
        self,
        prune_mask: Array,
        *,
        into: PerLeaf | None = None,
        context: Context | None = None,
    ) -> None:
        """Zeroes the blocks whose mask (bool or uint8 of :attr:`grid_shape`) is not 0."""
        _native.block_apply_mask(
            native_context(context),
            self._handle,
            self._memories,
            self._per_leaf("into", into),
            (self._of_grid(prune_mask, np.bool_, "prune_mask"),),
        )

    def apply_keep_mask(
        self, keep_mask: Array, *, into: PerLeaf | None = None, context: Context | None = None
    ) -> None:
        """Zeroes the blocks whose mask (bool or uint8 of :attr:`grid_shape`) is 0."""
        _native.block_apply_keep_mask(
            native_context(context),
            self._handle,
            self._memories,
            self._per_leaf("into", into),
            (self._of_grid(keep_mask, np.bool_, "keep_mask"),),
        )

    def apply_multiplier(
        self,
        multiplier: Array,
        *,
        into: PerLeaf | None = None,
        context: Context | None = None,
    ) -> None:
        """Scales each block by a number of ``multiplier`` (any float dtype, :attr:`grid_shape`); 0
        gives +0.0 even for NaN and infinity."""
        _native.block_apply_multiplier(
            native_context(context),
            self._handle,
            self._memories,
            self._per_leaf("into", into),
            (self._of_grid(multiplier, np.float64, "multiplier"),),
        )

    def hard_threshold(
        self,
        thresholds: Array,
        values: PerLeaf | None = None,
        *,
        into: PerLeaf | None = None,
        context: Context | None = None,
    ) -> Report:
        """Zeroes the blocks with norm < threshold; equal ones and NaN survive.

        Args:
            thresholds: a number, or float32 or float64 of :attr:`grid_shape`.
            values: arrays per leaf, of any float dtype, whose norms decide; None: the weights.
        """
        return Report._make(
            _native.block_hard_threshold(
                native_context(context),
                self._handle,
                self._memories,
                self._per_leaf("into", into),
                (self._of_grid(thresholds, np.float64, "thresholds"),),
                self._per_leaf("values", values),
            )
        )

    def soft_threshold(
        self,
        block_thresholds: Array,
        conditioners: PerLeaf | None = None,
        max_iter: int = 0,
        atol: float | None = None,
        eps: float | None = None,
        *,
        scale: bool = False,
        into: PerLeaf | None = None,
        context: Context | None = None,
    ) -> Report:
        """Group soft thresholding, the proximal operator of sum_b t_b ||w_b||.

        Euclidean: w becomes w max(0, 1 - t / (||w|| + eps)). With conditioners h (positive, finite,
        such as Adam's sqrt(v) + eps) it is the minimiser of
        1/2 (x - w)' diag(h) (x - w) + t ||x||, found by iteration.

        Args:
            block_thresholds: a number, or float32 or float64 of :attr:`grid_shape`; >= 0.
            conditioners: arrays per leaf of any float dtype; None: Euclidean.
            max_iter: steps of the conditioned iteration, 1 to 64; 0: 20.
            atol: its relative tolerance; None: 1e-8.
            eps: of the Euclidean form; None: machine epsilon of the score dtype.
            scale: multiplies the thresholds by sqrt(numel_per_block).

        Warns:
            NotConvergedWarning: blocks ran out of steps; the report counts them.
        """
        return report_of(
            _native.block_soft_threshold(
                native_context(context),
                self._handle,
                self._memories,
                self._per_leaf("into", into),
                (self._of_grid(block_thresholds, np.float64, "block_thresholds"),),
                self._per_leaf("conditioners", conditioners),
                *soft_options(eps, atol, max_iter, scale),
            )
        )

    def set_data(self, source: PerLeaf, *, context: Context | None = None) -> None:
        """Copies arrays per leaf, of any float dtype, into the weights; rounded once."""
        _native.block_set_data(
            native_context(context), self._handle, self._memories, self._per_leaf("source", source)
        )

    # --- rearranging ---

    def get_masks(self, block_masks: Array, *, context: Context | None = None) -> Any:
        """Element masks from a mask per block (bool or uint8 of :attr:`grid_shape`): new bool
        arrays of the views' shapes; one for a block spec, a list in leaf order for a coupling."""
        masks = self._new_masks()
        _native.block_get_masks(
            native_context(context),
            self._handle,
            (self._of_grid(block_masks, np.bool_, "block_masks"),),
            masks,
        )
        return self._single(masks)

    def block_view(
        self,
        values: PerLeaf | None = None,
        reorder: bool = False,
        merge: bool = False,
        *,
        context: Context | None = None,
    ) -> np.ndarray:
        """The blocks as an array.

        Args:
            values: arrays per leaf to take instead of the weights.
            reorder: shape (B0, B1, ..., b0, b1, ...) in place of (B0, b0, B1, b1, ...). Both share
                the memory, and are refused for several leaves.
            merge: a new array (grid_shape..., numel_per_block) instead, each block in one piece.
        """
        if not merge:
            handle = _native.block_block_view(self._handle, reorder)
            if values is None:
                return self._views[0]._array(handle)
            other = self._views[0].over(self._in_leaf_order("values", values)[0])
            return self._over(other).block_view(reorder=reorder)
        leaves = self._leaves_or(values)
        dtypes = {view._code for view in self._views}
        code = dtypes.pop() if len(dtypes) == 1 else _native.block_score_dtype(self._handle)
        out, memory = new_array(self.grid_shape + (self.numel_per_block(),), code)
        _native.block_block_view_merged(native_context(context), self._handle, leaves, (memory,))
        return out

    def _over(self, view: View) -> Block:
        """The same block, of one leaf, over another view."""
        raise NotImplementedError

    def broadcast_block_to_element(
        self, block_values: Array, fake: bool = False, *, context: Context | None = None
    ) -> Any:
        """Repeats each block's value over its elements: new arrays of the views' shapes and of the
        dtype of ``block_values``; one for a block spec, a list in leaf order for a coupling. With
        ``fake`` no copy, but ``block_values`` in shape (B0, 1, B1, 1, ...), which broadcasts
        against :meth:`block_view`."""
        values = operand(block_values, np.float64, "block_values")
        if fake:
            return reshaped(values, _native.block_broadcast_fake(self._handle, _native.F32))
        pairs = [new_like(view._shape, block_values, values) for view in self._views]
        _native.block_broadcast_block_to_element(
            native_context(context), self._handle, (values,), [memory for _, memory in pairs]
        )
        return self._single([array for array, _ in pairs])

    def expand_block_tensor(self, block_values: Array) -> np.ndarray:
        """An array of one number per block, flat or not, in :attr:`grid_shape`; no copy."""
        values = operand(block_values, np.float64, "block_values")
        return reshaped(values, _native.block_expand_block_tensor(self._handle, _native.F32))


class BlockSpec(Block):
    """Cuts a view into a grid of equal blocks.

    Args:
        view: a :class:`View`, or an array to view as a whole.
        shape: extents of a block; each divides the view's, and -1 spans it. None: every element is
            a block.
        name: for messages; None: "block".

    Raises:
        ShapeMismatchError: extents that do not divide the view's.
    """

    def __init__(self, view: View | Array, shape: Shape = None, name: str | None = None) -> None:
        view = view_of(view)
        self._block_shape = integers(shape)
        self._handle = _native.block_create(view._handle, self._block_shape, name)
        self._set_parts((view,), ())

    @property
    def view(self) -> View:
        return self._views[0]

    @property
    def block_shape(self) -> tuple[int, ...]:
        """The extents of a block."""
        return self.leaf_shape(0)

    def blocks(self) -> tuple[BlockSpec, ...]:
        return (self,)

    def _single(self, results: Sequence[Any]) -> Any:
        return results[0]

    def _over(self, view: View) -> Block:
        return BlockSpec(view, self._block_shape)

    def __repr__(self) -> str:
        if self.closed:
            return "BlockSpec(closed)"
        return f"BlockSpec({self.name!r}, grid {self.grid_shape}, blocks {self.block_shape})"


class BlockCoupling(Block):
    """Joins blocks: block i of each member is one block, and its norm runs over all of them.

    Args:
        specs: block specs or couplings, in order.
        orders: one permutation of grid axes per member: axis d of the coupling is axis ``order[d]``
            of the member; extents must then agree. None: as they are.
        name: for messages; None: "coupling".

    Raises:
        CouplingError: grids that do not agree, or a number that is no axis.
        OverlapError: leaves that share memory, found when a call writes them.
    """

    def __init__(
        self,
        specs: Sequence[Block],
        orders: Sequence[Sequence[int]] | None = None,
        name: str | None = None,
    ) -> None:
        self._specs: tuple[Block, ...] = tuple(specs)
        self._orders = orders
        self._handle = _native.block_couple(
            [spec._handle for spec in self._specs], axes_of(orders, len(self._specs)), name
        )
        self._set_parts(sum((spec._views for spec in self._specs), ()), self._specs)

    @property
    def specs(self) -> tuple[Block, ...]:
        """The members."""
        return self._specs

    def blocks(self) -> tuple[BlockSpec, ...]:
        return sum((spec.blocks() for spec in self._specs), ())

    def _single(self, results: Sequence[Any]) -> list[Any]:
        return list(results)

    def _over(self, view: View) -> Block:
        return BlockCoupling([self._specs[0]._over(view)], self._orders)

    def __repr__(self) -> str:
        if self.closed:
            return "BlockCoupling(closed)"
        return (
            f"BlockCoupling({self.name!r}, grid {self.grid_shape}, "
            f"{self.numel_per_block()} elements per block in {self.leaf_count()} leaves)"
        )


def reshaped(values: Any, handle: Any) -> np.ndarray:
    """A contiguous array of one number per block in the shape and strides of a view."""
    memory: Memory = memory_of(values)
    if memory.numel != _native.view_numel(handle):
        raise ShapeMismatchError(
            f"block_values: got {memory.numel} numbers, expected {_native.view_numel(handle)}"
        )
    return ndarray(
        memory, _native.view_shape(handle), _native.view_stride(handle), _native.view_offset(handle)
    )
