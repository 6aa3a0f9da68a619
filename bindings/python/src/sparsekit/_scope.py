# SPDX-License-Identifier: Apache-2.0
"""Scopes, the groups inside which blocks compete: specs over one block, couplings of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _native
from ._block import Block, reshaped
from ._context import Context, Report, native_context, report_of
from ._errors import InvalidArgumentError
from ._leaves import Leaves, PerLeaf, axes_of, soft_options
from ._memory import DTYPE_NAMES, F32, Array, integers, of_grid, operand
from ._view import Shape, new_array, new_like

_TIES = {"by_position": _native.TIES_BY_POSITION, "keep_all": _native.TIES_KEEP_ALL}


def _ties(ties: str) -> int:
    if ties not in _TIES:
        raise InvalidArgumentError(f"ties: got '{ties}', expected one of {', '.join(_TIES)}")
    return _TIES[ties]


class Scope(Leaves):
    """What :class:`ScopeSpec` and :class:`ScopeCoupling` can do.

    Blocks are ranked by score, largest first; equal scores by position, lower first; NaN ranks
    above infinity, so it is kept. Scores come in the *score dtype*: float64 if a leaf is, else
    float32.

    - Arrays of one number per scope have the shape :attr:`grid_shape`.
    - ``block_scores`` and ``block_mask`` have the shape (grid_shape..., numblk_per_scope).
    - ``nnz`` is a number of blocks that stay: one for all scopes, or one per scope.

    Every method that works takes ``context``; every one that writes the weights takes ``into``,
    arrays per leaf that receive the result. Errors are those of :class:`Block`.
    """

    # --- facts ---

    @property
    def name(self) -> str:
        """The name, as messages have it."""
        return _native.scope_name(self._handle)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """How many scopes there are along each dimension."""
        return _native.scope_grid_shape(self._handle)

    @property
    def grid_ndim(self) -> int:
        return len(self.grid_shape)

    @property
    def score_dtype(self) -> str:
        """``"f64"`` if any leaf is f64, else ``"f32"``."""
        return DTYPE_NAMES[_native.scope_score_dtype(self._handle)]

    def numscope(self) -> int:
        """Number of scopes."""
        return _native.scope_numscope(self._handle)

    def numblk_per_scope(self) -> int:
        """Blocks that compete in a scope, over all members."""
        return _native.scope_numblk_per_scope(self._handle)

    def numel_per_scope(self) -> int:
        """Elements of a scope."""
        return _native.scope_numel_per_scope(self._handle)

    def member_count(self) -> int:
        """Members of a coupling; 1 for a scope spec."""
        return _native.scope_member_count(self._handle)

    def leaf_count(self) -> int:
        """Leaves of all members."""
        return _native.scope_leaf_count(self._handle)

    def scopes(self) -> tuple[ScopeSpec, ...]:
        """The scope specs, in order."""
        raise NotImplementedError

    def sparsity_to_nnz(self, sparsity: float) -> int:
        """How many blocks of a scope stay at a sparsity in [0, 1]."""
        return _native.scope_sparsity_to_nnz(self._handle, sparsity)

    def _per_block_shape(self) -> tuple[int, ...]:
        return self.grid_shape + (self.numblk_per_scope(),)

    def _new_scores(self, shape: Sequence[int]) -> tuple[np.ndarray, Any]:
        return new_array(shape, _native.scope_score_dtype(self._handle))

    # --- measuring ---

    def nnz(
        self,
        values: PerLeaf | None = None,
        eps: float = 1e-8,
        *,
        per_scope: bool = False,
        context: Context | None = None,
    ) -> int | np.ndarray:
        """How many elements are larger than ``eps`` in magnitude: the total, or with ``per_scope``
        an int64 array of :attr:`grid_shape`."""
        arrays = None if values is None else self._in_leaf_order("values", values)
        counts: list[Any] = []
        for scope in self.scopes():
            count = scope.block.leaf_count()
            own = None if arrays is None else arrays[:count]
            arrays = None if arrays is None else arrays[count:]
            counts.append(scope.block.nnz(eps, own, per_block=True, context=context))
        if not per_scope:
            return int(sum(count.sum() for count in counts))
        return self.block_to_scope(self._single(counts), context=context).sum(axis=-1)

    def block_norms(
        self, values: PerLeaf | None = None, p: float = 2, *, context: Context | None = None
    ) -> np.ndarray:
        """Lp norms of the blocks, arranged by scope: (grid_shape..., numblk_per_scope); arguments
        as in :meth:`Block.norms`."""
        out, memory = self._new_scores(self._per_block_shape())
        _native.scope_block_norms(
            native_context(context), self._handle, self._leaves_or(values), p, (memory,)
        )
        return out

    def _score_operand(self, scores: Array | None) -> tuple[Any] | None:
        if scores is None:
            return None
        kind = np.float64 if self.score_dtype == "f64" else np.float32
        return (operand(scores, kind, "block_scores"),)

    def _source(
        self, values: PerLeaf | None, scores: Array | None, block_mask: Array | None = None
    ) -> tuple[Any, Any]:
        """Values and scores; the weights' own values if nothing else decides."""
        if values is None and scores is None and block_mask is None:
            return self._memories, None
        return self._per_leaf("values", values), self._score_operand(scores)

    def kth_largest(
        self,
        values: PerLeaf | None = None,
        nnz: int | Sequence[int] = 1,
        *,
        block_scores: Array | None = None,
        context: Context | None = None,
    ) -> np.ndarray:
        """The ``nnz``-th largest score of each scope, 1 being the largest: a new array of
        :attr:`grid_shape`.

        Args:
            values: arrays per leaf of any float dtype whose norms are the scores; None: the
            weights. block_scores: or the scores themselves.
        """
        out, memory = self._new_scores(self.grid_shape)
        values, scores = self._source(values, block_scores)
        _native.scope_kth_largest(
            native_context(context), self._handle, values, scores, integers(nnz), (memory,)
        )
        return out

    def kth_mid(
        self,
        values: PerLeaf | None = None,
        nnz: int | Sequence[int] = 1,
        k_weight: float = 1.0,
        *,
        block_scores: Array | None = None,
        context: Context | None = None,
    ) -> np.ndarray:
        """A threshold between the ``nnz``-th and the next score, v and w: (k_weight v + w) /
        (k_weight + 1), rounded so that it keeps exactly ``nnz`` blocks of each scope.

        Args:
            nnz: in [1, numblk_per_scope - 1].
            k_weight: > 0; 1 is the middle.
        """
        out, memory = self._new_scores(self.grid_shape)
        values, scores = self._source(values, block_scores)
        _native.scope_kth_mid(
            native_context(context),
            self._handle,
            values,
            scores,
            integers(nnz),
            k_weight,
            (memory,),
        )
        return out

    # --- writing ---

    def hard_threshold(
        self,
        thresholds: Array | None = None,
        nnz: None | int | Sequence[int] = None,
        values: PerLeaf | None = None,
        *,
        block_scores: Array | None = None,
        ties: str = "by_position",
        into: PerLeaf | None = None,
        context: Context | None = None,
    ) -> Report:
        """Zeroes blocks: those with norm < threshold, or all but the ``nnz`` best of each scope.

        Args:
            thresholds: a number, or float32 or float64 of :attr:`grid_shape`; or None, and then
            nnz: exactly so many blocks of each scope stay.
            values: arrays per leaf of any float dtype whose norms decide; None: the weights.
            block_scores: with ``nnz``: the scores themselves.
            ties: with ``nnz``: ``"by_position"``, or ``"keep_all"`` to keep every block that is
                tied with the last kept one.
        """
        if (thresholds is None) == (nnz is None):
            raise InvalidArgumentError(
                "hard_threshold: got both or neither of thresholds and nnz, expected one of them"
            )
        if nnz is not None:
            return Report._make(
                _native.scope_keep_top(
                    native_context(context),
                    self._handle,
                    self._memories,
                    self._per_leaf("into", into),
                    integers(nnz),
                    self._per_leaf("values", values),
                    self._score_operand(block_scores),
                    _ties(ties),
                )
            )
        if block_scores is not None:
            raise InvalidArgumentError(
                "hard_threshold: got block_scores with thresholds, expected them with nnz"
            )
        return Report._make(
            _native.scope_hard_threshold(
                native_context(context),
                self._handle,
                self._memories,
                self._per_leaf("into", into),
                (of_grid(thresholds, np.float64, "thresholds", lambda: self.grid_shape),),
                self._per_leaf("values", values),
            )
        )

    def soft_threshold(
        self,
        thresholds: Array,
        conditioners: PerLeaf | None = None,
        scale: bool = False,
        max_iter: int = 0,
        atol: float | None = None,
        eps: float | None = None,
        *,
        into: PerLeaf | None = None,
        context: Context | None = None,
    ) -> Report:
        """:meth:`Block.soft_threshold` with one threshold per scope (or one for all); ``scale``
        uses each member's own numel_per_block."""
        return report_of(
            _native.scope_soft_threshold(
                native_context(context),
                self._handle,
                self._memories,
                self._per_leaf("into", into),
                (of_grid(thresholds, np.float64, "thresholds", lambda: self.grid_shape),),
                self._per_leaf("conditioners", conditioners),
                *soft_options(eps, atol, max_iter, scale),
            )
        )

    def get_masks(
        self,
        nnz: None | int | Sequence[int] = None,
        values: PerLeaf | None = None,
        block_scores: Array | None = None,
        block_mask: Array | None = None,
        *,
        ties: str = "by_position",
        report: bool = False,
        context: Context | None = None,
    ) -> Any:
        """Element masks (1 = survives) of a selection; nothing is pruned.

        Args:
            nnz: so many blocks of each scope survive; not with ``block_mask``.
            values, block_scores: what is ranked, as in :meth:`hard_threshold`.
            block_mask: or which blocks survive, bool or uint8.
            report: gives (masks, :class:`Report`).

        Returns:
            New bool arrays of the views' shapes: one if the scope spec is over a block spec, else a
            list in leaf order.
        """
        masks = self._new_masks()
        values, scores = self._source(values, block_scores, block_mask)
        numbers = _native.scope_get_masks(
            native_context(context),
            self._handle,
            values,
            scores,
            None if block_mask is None else (operand(block_mask, np.bool_, "block_mask"),),
            integers(nnz),
            _ties(ties),
            masks,
        )
        result = self._single_leaf(masks)
        return (result, Report._make(numbers)) if report else result

    def _single_leaf(self, results: Sequence[Any]) -> Any:
        raise NotImplementedError

    # --- rearranging ---

    def block_to_scope(
        self,
        block_values: Any,
        reorder: bool = True,
        merge: bool = True,
        *,
        context: Context | None = None,
    ) -> np.ndarray:
        """Block arrays arranged by scope.

        Args:
            block_values: an array of the block's grid_shape; of a coupling, a list with one per
                member. Any one dtype.
            merge: a new array (grid_shape..., numblk_per_scope). Else the same memory in shape
                (S0, S1, ..., s0, s1, ...), or without ``reorder`` (S0, s0, S1, s1, ...); refused
                for several members.
        """
        given = block_values if self._takes_lists() else (block_values,)
        members = [operand(values, np.float64, "block_values") for values in given]
        if not merge:
            return self._scope_view(members, reorder)
        out, memory = new_like(self._per_block_shape(), given[0], members[0])
        _native.scope_block_to_scope(native_context(context), self._handle, members, (memory,))
        return out

    def _takes_lists(self) -> bool:
        raise NotImplementedError

    def _scope_view(self, members: Sequence[Any], reorder: bool) -> np.ndarray:
        handle = _native.scope_block_to_scope_view(self._handle, F32, reorder)
        return reshaped(members[0], handle)

    def scope_to_block(self, scope_values: Array, *, context: Context | None = None) -> Any:
        """Repeats each scope's value over its blocks: new arrays of the blocks' grid_shapes and of
        the dtype of ``scope_values``; one for a scope spec, a list for a coupling."""
        values = operand(scope_values, np.float64, "scope_values")
        pairs = [new_like(scope.block.grid_shape, scope_values, values) for scope in self.scopes()]
        _native.scope_scope_to_block(
            native_context(context), self._handle, (values,), [memory for _, memory in pairs]
        )
        return self._single([array for array, _ in pairs])


class ScopeSpec(Scope):
    """Cuts the grid of a block into scopes.

    Args:
        block: a block spec or coupling.
        shape: blocks of a scope along each grid dimension; each divides the grid's, and -1 spans
            it; missing trailing ones span theirs. None: one scope of all blocks.
        name: for messages; None: "scope".

    Raises:
        ShapeMismatchError: extents that do not divide the grid's.
    """

    def __init__(self, block: Block, shape: Shape = None, name: str | None = None) -> None:
        self._block = block
        self._handle = _native.scope_create(block._handle, integers(shape), name)
        self._set_parts(block._views, (block,))

    @property
    def block(self) -> Block:
        return self._block

    def scopes(self) -> tuple[ScopeSpec, ...]:
        return (self,)

    def _single(self, results: Sequence[Any]) -> Any:
        return results[0]

    def _single_leaf(self, results: Sequence[Any]) -> Any:
        return self._block._single(results)

    def _takes_lists(self) -> bool:
        return False

    def __repr__(self) -> str:
        if self.closed:
            return "ScopeSpec(closed)"
        return (
            f"ScopeSpec({self.name!r}, grid {self.grid_shape}, {self.numblk_per_scope()} blocks "
            "per scope)"
        )


class ScopeCoupling(Scope):
    """Joins scopes: the blocks of scope i of every member compete for one budget.

    Args:
        scopes: scope specs or couplings, in order. They may differ in blocks per scope and elements
            per block, and may end with different densities.
        orders: as in :class:`BlockCoupling`, of the scope grids.
        name: for messages.

    Raises:
        CouplingError: grids of scopes that do not agree.
    """

    def __init__(
        self,
        scopes: Sequence[Scope],
        orders: Sequence[Sequence[int]] | None = None,
        name: str | None = None,
    ) -> None:
        self._members: tuple[Scope, ...] = tuple(scopes)
        self._handle = _native.scope_couple(
            [scope._handle for scope in self._members], axes_of(orders, len(self._members)), name
        )
        self._set_parts(sum((scope._views for scope in self._members), ()), self._members)

    def scopes(self) -> tuple[ScopeSpec, ...]:
        return sum((scope.scopes() for scope in self._members), ())

    def _single(self, results: Sequence[Any]) -> list[Any]:
        return list(results)

    _single_leaf = _single

    def _takes_lists(self) -> bool:
        return True

    def __repr__(self) -> str:
        if self.closed:
            return "ScopeCoupling(closed)"
        return (
            f"ScopeCoupling({self.name!r}, grid {self.grid_shape}, {self.numblk_per_scope()} "
            f"blocks per scope of {self.member_count()} members)"
        )
