# SPDX-License-Identifier: Apache-2.0
"""Which inactive places an update of a masking grows; new weights start at 0.

Give a masking one of these, its name, or a function ``grow(masking, layer, requested)`` that sets
``requested`` zeros of ``layer.mask`` to 1, or as many as it likes.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import _native
from ._modes import Mode, by_name

none = Mode("none", _native.GROW_NONE)
"""No growth is asked for."""
random = Mode("random", _native.GROW_RANDOM)
"""Uniform."""
gradient = Mode("gradient", _native.GROW_GRADIENT)
"""The largest \\|gradient\\|."""
momentum = Mode("momentum", _native.GROW_MOMENTUM)
"""The largest \\|momentum\\|; needs ``dense_gradients``."""
struct_gradient_mean = Mode("struct_gradient_mean", _native.GROW_STRUCT_GRADIENT_MEAN)
"""Whole kernels with the largest \\|mean gradient\\|."""
struct_gradient_max = Mode("struct_gradient_max", _native.GROW_STRUCT_GRADIENT_MAX)
"""Whole kernels with the largest \\|max gradient\\|."""
struct_gradient_min = Mode("struct_gradient_min", _native.GROW_STRUCT_GRADIENT_MIN)
"""Whole kernels with the largest \\|min gradient\\|."""


def struct_criterion(function: Callable[[np.ndarray], float]) -> Mode:
    """Whole kernels with the largest ``|function(gradients)|``; it gets a kernel's elements as a
    float64 array."""
    return Mode("struct_criterion", _native.GROW_STRUCT_CRITERION, function)


def callback(function: Callable[..., Any]) -> Mode:
    """What ``function(masking, layer, requested)`` sets in the mask."""
    return Mode("callback", _native.GROW_CALLBACK, function)


MODES = by_name(
    none, random, gradient, momentum, struct_gradient_mean, struct_gradient_max, struct_gradient_min
)
