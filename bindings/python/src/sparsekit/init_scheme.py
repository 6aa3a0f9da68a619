# SPDX-License-Identifier: Apache-2.0
"""The first masks of a masking.

Give :meth:`sparsekit.Masking.initialise` one of these, its name, or a function ``scheme(layer)``
that gives the keep mask of a layer, an array of its shape.
"""

from __future__ import annotations

from typing import Any, Callable

from . import _native
from ._modes import Mode, by_name

random = Mode("random", _native.INIT_RANDOM)
"""The density in every layer but the first, which leaves, dense."""
erdos_renyi = Mode("erdos_renyi", _native.INIT_ERDOS_RENYI)
"""Density ~ (n_out + n_in) / (n_out n_in) (Mocanu, 2018)."""
erdos_renyi_kernel = Mode("erdos_renyi_kernel", _native.INIT_ERDOS_RENYI_KERNEL)
"""Density ~ sum of dims / product of dims (Evci, 2020)."""
struct_random = Mode("struct_random", _native.INIT_STRUCT_RANDOM)
"""As ``random``, in whole kernels of layers of rank > 2; those of rank 2 leave, dense."""
struct_erdos_renyi = Mode("struct_erdos_renyi", _native.INIT_STRUCT_ERDOS_RENYI)
"""As ``erdos_renyi``, in whole kernels."""
struct_erdos_renyi_kernel = Mode(
    "struct_erdos_renyi_kernel", _native.INIT_STRUCT_ERDOS_RENYI_KERNEL
)
"""As ``erdos_renyi_kernel``, in whole kernels."""
resume = Mode("resume", _native.INIT_RESUME)
"""mask = (weight != 0)."""
lottery_ticket = Mode("lottery_ticket", _native.INIT_LOTTERY_TICKET)
"""Masks as they are."""
lottery_ticket_dist = Mode("lottery_ticket_dist", _native.INIT_LOTTERY_TICKET_DIST)
"""Given counts, positions drawn."""


def callback(function: Callable[..., Any]) -> Mode:
    """Masks as ``function(layer)`` gives them."""
    return Mode("callback", _native.INIT_LOTTERY_TICKET, function)


MODES = by_name(
    random,
    erdos_renyi,
    erdos_renyi_kernel,
    struct_random,
    struct_erdos_renyi,
    struct_erdos_renyi_kernel,
    resume,
    lottery_ticket,
    lottery_ticket_dist,
)
