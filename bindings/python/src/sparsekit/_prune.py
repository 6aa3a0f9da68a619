# SPDX-License-Identifier: Apache-2.0
"""One-call conveniences."""

from __future__ import annotations

from . import _native
from ._context import Context, Report, native_context
from ._memory import Array, integers
from ._view import Shape, View, view_of


def prune_nm(
    weights: View | Array,
    n: int,
    m: int,
    axis: int = -1,
    *,
    into: Array | None = None,
    context: Context | None = None,
) -> Report:
    """N:M sparsity, in place: of every ``m`` elements in a row along ``axis``, keeps the ``n`` of
    largest magnitude.

    Args:
        weights: a :class:`View`, or an array to take as a whole.
        axis: its extent must be a multiple of ``m``; negative ones count from the end.
        into: receives the result; ``weights`` are then only read.

    Returns:
        A report that counts elements.

    Raises:
        ShapeMismatchError: an extent that is no multiple of ``m``.
    """
    view = view_of(weights)
    return Report._make(
        _native.prune_nm(
            native_context(context), view._handle, view._leaf, view._into(into), axis, n, m
        )
    )


def prune_unstructured(
    weights: View | Array,
    sparsity: float,
    *,
    into: Array | None = None,
    context: Context | None = None,
) -> Report:
    """Magnitude pruning, in place: exactly floor(sparsity * numel) elements become zero. Arguments
    and errors as in :func:`prune_nm`; ``sparsity`` is in [0, 1]."""
    view = view_of(weights)
    return Report._make(
        _native.prune_unstructured(
            native_context(context), view._handle, view._leaf, view._into(into), sparsity
        )
    )


def soft_threshold_blocks(
    weights: View | Array,
    shape: Shape,
    threshold: float,
    *,
    into: Array | None = None,
    context: Context | None = None,
) -> Report:
    """Euclidean soft thresholding, in place, of blocks of ``shape`` (as in :class:`BlockSpec`) with
    one threshold."""
    view = view_of(weights)
    return Report._make(
        _native.soft_threshold_blocks(
            native_context(context),
            view._handle,
            view._leaf,
            view._into(into),
            integers(shape),
            threshold,
        )
    )
