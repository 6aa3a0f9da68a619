# SPDX-License-Identifier: Apache-2.0
"""Structured sparsity on arrays that you own.

>>> import numpy as np, sparsekit as sk
>>> weights = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32)
>>> sk.prune_nm(weights, 2, 4).achieved     # 2:4 along the rows, in place
4096

A :class:`View` is an array and how its elements lie in it; a :class:`BlockSpec` cuts it into
blocks, the units that live or die; a :class:`BlockCoupling` makes blocks of several views one
unit; a :class:`ScopeSpec` says which blocks compete; a :class:`ScopeCoupling` lets several layers
compete. :class:`Masking` keeps layers sparse while they are trained. Method: the Structured
Sparsity Specification (S3, arXiv 2604.11315).
"""

from . import _native, decay, grow, init_scheme, prune, redistribute
from ._block import Block, BlockCoupling, BlockSpec
from ._context import Context, Report
from ._errors import (
    CancelledError,
    CouplingError,
    InternalError,
    InvalidArgumentError,
    NotConvergedWarning,
    OutOfBoundsError,
    OutOfMemoryError,
    OverlapError,
    ShapeMismatchError,
    SparseKitError,
    UnavailableError,
    UnsupportedDtypeError,
)
from ._masking import Layer, LayerStats, Masking, UpdateReport
from ._memory import words
from ._prune import prune_nm, prune_unstructured, soft_threshold_blocks
from ._scope import Scope, ScopeCoupling, ScopeSpec
from ._view import View
from .decay import CosineDecay, CustomDecay, Decay, LinearDecay, MagnitudePruneDecay

__all__ = [
    "Block",
    "BlockCoupling",
    "BlockSpec",
    "CancelledError",
    "Context",
    "CosineDecay",
    "CouplingError",
    "CustomDecay",
    "Decay",
    "InternalError",
    "InvalidArgumentError",
    "Layer",
    "LayerStats",
    "LinearDecay",
    "MagnitudePruneDecay",
    "Masking",
    "NotConvergedWarning",
    "OutOfBoundsError",
    "OutOfMemoryError",
    "OverlapError",
    "Report",
    "Scope",
    "ScopeCoupling",
    "ScopeSpec",
    "ShapeMismatchError",
    "SparseKitError",
    "UnavailableError",
    "UnsupportedDtypeError",
    "UpdateReport",
    "View",
    "build_info",
    "decay",
    "executor_available",
    "grow",
    "init_scheme",
    "live_handles",
    "prune",
    "prune_nm",
    "prune_unstructured",
    "redistribute",
    "soft_threshold_blocks",
    "version",
    "words",
]


def version() -> str:
    """The version of the library, such as ``"0.1.0"``."""
    number = _native.version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def build_info() -> str:
    """One line for a bug report: version, executors and SIMD targets."""
    return _native.build_info()


def live_handles() -> int:
    """How many handles of the library are alive in the process."""
    return _native.live_handles()


def executor_available(executor: str) -> bool:
    """Whether contexts with this executor can be created."""
    return executor in Context._EXECUTORS and bool(
        _native.executor_available(Context._EXECUTORS[executor])
    )


__version__ = version()
