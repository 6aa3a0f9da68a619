# SPDX-License-Identifier: Apache-2.0
"""How the places that an update freed are shared among layers: in proportion to a statistic.

Give a masking one of these, its name, or a function ``statistic(masking, layer)`` that gives a
finite number >= 0.
"""

from __future__ import annotations

from typing import Any, Callable

from . import _native
from ._modes import Mode, by_name

none = Mode("none", _native.REDISTRIBUTE_NONE)
"""Each layer regrows what it lost."""
nonzero = Mode("nonzero", _native.REDISTRIBUTE_NONZERO)
"""The same; the statistic, nonzeros, is told."""
momentum = Mode("momentum", _native.REDISTRIBUTE_MOMENTUM)
"""Mean \\|momentum\\| over active weights."""
gradient = Mode("gradient", _native.REDISTRIBUTE_GRADIENT)
"""Mean \\|gradient\\| over active weights."""


def callback(function: Callable[..., Any]) -> Mode:
    """What ``function(masking, layer)`` says."""
    return Mode("callback", _native.REDISTRIBUTE_CALLBACK, function)


MODES = by_name(none, nonzero, momentum, gradient)
