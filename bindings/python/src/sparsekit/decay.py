# SPDX-License-Identifier: Apache-2.0
"""Schedules: which share of the weights an update of a masking removes, step by step."""

from __future__ import annotations

from typing import Any, Callable

from . import _native
from ._context import Handle, callback_of, doubles
from ._errors import InvalidArgumentError


class Decay(Handle):
    """A prune rate that changes with its position t, a number of steps. One call at a time."""

    def step(self, t: int | None = None) -> None:
        """Moves the position on by one, or to ``t`` >= 0. A masking's steps do it themselves."""
        if t is None:
            _native.schedule_step(self._handle)
        else:
            _native.schedule_step_to(self._handle, t)

    @property
    def position(self) -> int:
        return _native.schedule_position(self._handle)

    def rate(self) -> float:
        """The rate at the position."""
        return _native.schedule_rate(self._handle)

    def rate_from(self, current: float) -> float:
        """Of a :class:`MagnitudePruneDecay` alone: the rate if the sparsity is ``current``, which
        is what is missing to the schedule's."""
        return _native.schedule_rate_from(self._handle, current)

    def cumulative_sparsity(self, t: int) -> float:
        """Of a :class:`MagnitudePruneDecay` alone: the sparsity to have reached at ``t``."""
        return _native.schedule_cumulative_sparsity(self._handle, t)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"position {self.position}"
        return f"{type(self).__name__}({state})"


class CosineDecay(Decay):
    """eta_min + (prune_rate - eta_min) (1 + cos(pi t / t_max)) / 2, and eta_min from t_max on.

    Args:
        prune_rate: at t = 0; in [0, 1], as is ``eta_min``.
        t_max: at least 1.
        last_epoch: the position starts at ``last_epoch + 1``.
    """

    def __init__(
        self, prune_rate: float = 0.3, t_max: int = 1000, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self._handle = _native.schedule_create_cosine(prune_rate, t_max, eta_min, last_epoch)


class LinearDecay(Decay):
    """prune_rate (1 - t / t_max), never below 0."""

    def __init__(self, prune_rate: float = 0.3, t_max: int = 1000) -> None:
        self._handle = _native.schedule_create_linear(prune_rate, t_max)


class MagnitudePruneDecay(Decay):
    """Gradual magnitude pruning (Zhu and Gupta, 2017): from ``initial_sparsity`` at ``t_start`` to
    ``final_sparsity`` at ``t_max`` on a cubic. It goes with growth ``"none"``.

    Args:
        initial_sparsity, final_sparsity: in [0, 1].
        t_max: later than ``t_start``.
        interval: steps from one update to the next.
    """

    def __init__(
        self,
        initial_sparsity: float = 0.0,
        final_sparsity: float = 0.9,
        t_max: int = 1000,
        t_start: int = 0,
        interval: int = 1,
    ) -> None:
        self._handle = _native.schedule_create_magnitude(
            initial_sparsity, final_sparsity, t_max, t_start, interval
        )


class CustomDecay(Decay):
    """A function of yours: ``function(t)`` gives the rate, in [0, 1]. What it raises comes out of
    the call that asked."""

    def __init__(self, function: Callable[[int], float]) -> None:
        if not callable(function):
            raise InvalidArgumentError(
                f"decay: got {function!r}, expected a Decay or a function of t"
            )
        self._function = function
        self._callback = callback_of(self, CustomDecay._rate)
        self._handle = _native.schedule_create_custom(self._callback)

    def _rate(self, raw: bytes) -> Any:
        return self._function(int(doubles(raw)[0]))


def decay_of(decay: Decay | Callable[[int], float]) -> Decay:
    """A decay itself, or that of a function."""
    return decay if isinstance(decay, Decay) else CustomDecay(decay)
