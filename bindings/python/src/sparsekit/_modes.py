# SPDX-License-Identifier: Apache-2.0
"""Modes of a masking: named ones, and functions."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Union

from ._errors import InvalidArgumentError


class Mode(NamedTuple):
    """What a masking does when it prunes, redistributes, grows or begins."""

    name: str
    number: int
    function: Callable[..., Any] | None = None


#: A mode, its name, or a function of yours.
ModeLike = Union[Mode, str, Callable[..., Any]]


def mode_of(
    what: str,
    mode: ModeLike,
    modes: dict[str, Mode],
    callback: Callable[[Callable[..., Any]], Mode],
) -> Mode:
    """The mode that a name, a mode or a function means."""
    if isinstance(mode, Mode):
        return mode
    if callable(mode):
        return callback(mode)
    if mode not in modes:
        raise InvalidArgumentError(
            f"{what}: got {mode!r}, expected a function or one of {', '.join(modes)}"
        )
    return modes[mode]


def by_name(*modes: Mode) -> dict[str, Mode]:
    return {mode.name: mode for mode in modes}
