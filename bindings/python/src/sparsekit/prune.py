# SPDX-License-Identifier: Apache-2.0
"""Which weights an update of a masking removes, of a layer with rate r and z nonzeros.

Give a masking one of these, its name, or a function ``prune(masking, layer, rate, requested)`` that
clears ``requested`` = ceil(r z) ones of ``layer.mask``, or as many as it likes. A *kernel* is what
the dimensions after the first two hold.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import _native
from ._modes import Mode, by_name

magnitude = Mode("magnitude", _native.PRUNE_MAGNITUDE)
"""The ceil(r z) smallest magnitudes of the layer."""
global_magnitude = Mode("global_magnitude", _native.PRUNE_GLOBAL_MAGNITUDE)
"""The ceil(r baseline) smallest magnitudes of all layers together."""
struct_magnitude_mean = Mode("struct_magnitude_mean", _native.PRUNE_STRUCT_MAGNITUDE_MEAN)
"""Whole kernels with the smallest \\|mean\\|."""
struct_magnitude_max = Mode("struct_magnitude_max", _native.PRUNE_STRUCT_MAGNITUDE_MAX)
"""Whole kernels with the smallest \\|max\\|."""
struct_magnitude_min = Mode("struct_magnitude_min", _native.PRUNE_STRUCT_MAGNITUDE_MIN)
"""Whole kernels with the smallest \\|min\\|."""


def struct_criterion(function: Callable[[np.ndarray], float]) -> Mode:
    """Whole kernels with the smallest ``|function(weights)|``; it gets a kernel's elements as a
    float64 array."""
    return Mode("struct_criterion", _native.PRUNE_STRUCT_CRITERION, function)


def callback(function: Callable[..., Any]) -> Mode:
    """What ``function(masking, layer, rate, requested)`` clears in the mask."""
    return Mode("callback", _native.PRUNE_CALLBACK, function)


MODES = by_name(
    magnitude, global_magnitude, struct_magnitude_mean, struct_magnitude_max, struct_magnitude_min
)
