# SPDX-License-Identifier: Apache-2.0
"""What blocks and scopes share: leaves, and arrays that are brought for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Union

import numpy as np

from . import _native
from ._context import Handle
from ._errors import ShapeMismatchError, SparseKitError, named
from ._memory import Array, Memory
from ._view import View

#: One array, a list of them in leaf order, or a dict keyed by specs or views.
PerLeaf = Union[Array, Sequence[Array], Mapping[Any, Array]]


class Leaves(Handle):
    """An object over the views of its leaves. A *leaf* is one block spec, in order of construction.

    Arrays per leaf (``values``, ``conditioners``, ``into``, ``source``) are given as

    - one array, if there is one leaf;
    - a list with one array per leaf, in leaf order;
    - a dict keyed by the specs or couplings inside, or by views, whose values are any of these.

    Each array has the shape of the leaf's param or of its view, see :meth:`View.beside`.
    """

    _views: tuple[View, ...]
    _memories: tuple[Memory, ...]
    _parts: tuple[Leaves, ...]

    def _set_parts(self, views: tuple[View, ...], parts: Sequence[Leaves]) -> None:
        self._views = views
        self._memories = tuple(view._memory for view in views)
        self._parts = tuple(parts)

    def parameters(self) -> tuple[Array, ...]:
        """The arrays of the leaves, as they were given to their views."""
        return tuple(view.param for view in self._views)

    @property
    def views(self) -> tuple[View, ...]:
        """The views of the leaves."""
        return self._views

    # --- arrays per leaf ---

    def _per_leaf(self, what: str, arrays: PerLeaf | None) -> tuple[Memory, ...] | None:
        """Memories in leaf order; ``what`` is the argument, for messages."""
        return None if arrays is None else self._beside(what, arrays)

    def _beside(self, what: str, arrays: PerLeaf) -> tuple[Memory, ...]:
        memories = []
        for view, array in zip(self._views, self._in_leaf_order(what, arrays)):
            try:
                memories.append(view.beside(array))
            except SparseKitError as error:
                raise named(error, f"{what}[{len(memories)}]")
        return tuple(memories)

    def _leaves_or(self, values: PerLeaf | None) -> tuple[Memory, ...]:
        return self._memories if values is None else self._beside("values", values)

    def _in_leaf_order(self, what: str, arrays: PerLeaf) -> Sequence[Array]:
        if isinstance(arrays, Mapping):
            found, used = self._from_mapping(what, arrays)
            if used != len(arrays):
                raise ShapeMismatchError(
                    f"{what}: got {len(arrays)} keys, of which {used} belong "
                    f"to {self!r}, expected those alone"
                )
            return found
        if not isinstance(arrays, (list, tuple)):
            arrays = (arrays,)
        if len(arrays) != len(self._views):
            raise ShapeMismatchError(
                f"{what}: got {len(arrays)} arrays, expected one for each of "
                f"{len(self._views)} leaves of {self!r}"
            )
        return arrays

    def _from_mapping(self, what: str, arrays: Mapping[Any, Array]) -> tuple[Sequence[Array], int]:
        """The arrays in leaf order, and how many keys they came from."""
        if self in arrays:
            return self._in_leaf_order(what, arrays[self]), 1
        if not self._parts:
            view = self._views[0]
            if view not in arrays:
                raise ShapeMismatchError(f"{what}: got no array for {self!r}, expected one")
            return (arrays[view],), 1
        found: list = []
        used = 0
        for part in self._parts:
            part_found, part_used = part._from_mapping(what, arrays)
            found.extend(part_found)
            used += part_used
        return found, used

    def _single(self, results: Sequence[Any]) -> Any:
        """A spec's one result itself, a coupling's as a list."""
        raise NotImplementedError

    def _new_masks(self) -> Sequence[np.ndarray]:
        return [np.empty(view._shape, np.bool_) for view in self._views]


def axes_of(orders: Sequence[Sequence[int]] | None, members: int) -> tuple[int, ...] | None:
    """Permutations, one after the other: the library cannot see where one ends."""
    if orders is None:
        return None
    axes = [tuple(int(axis) for axis in order) for order in orders]
    if len(axes) != members or len({len(order) for order in axes}) > 1:
        raise ShapeMismatchError(
            f"orders: got {axes} for {members} members, expected a permutation of as many axes "
            "for each"
        )
    return sum(axes, ())


def soft_options(
    eps: float | None, atol: float | None, max_iter: int, scale: bool
) -> tuple[float, float, int, int]:
    """The library's soft_threshold options: negative numbers are its defaults."""
    return (-1.0 if eps is None else eps, -1.0 if atol is None else atol, max_iter, int(scale))


def elements_function(function: Callable[[np.ndarray], float]) -> Any:
    """A C callback of a function that gets a block's elements as an array of float64."""
    return _native.Callback(lambda raw: function(np.frombuffer(raw)))
