# SPDX-License-Identifier: Apache-2.0
"""Contexts, reports, and what all objects with a handle share."""

from __future__ import annotations

import struct
import warnings
import weakref
from typing import Any, Callable, NamedTuple, TypeVar

from . import _native
from ._errors import InvalidArgumentError, NotConvergedWarning


class Report(NamedTuple):
    """What a thresholding or a selection did; counts of blocks (of elements in :func:`prune_nm` and
    :func:`prune_unstructured`)."""

    total: int
    """Blocks that the call looked at."""
    requested: int
    """Blocks that it was asked to keep; -1 where thresholds decide."""
    achieved: int
    """Blocks that it kept."""
    ties: int
    """Blocks about which position decided, because their scores were equal."""
    not_converged: int
    """Blocks of a conditioned soft threshold that ran out of steps."""


def report_of(numbers: tuple[int, ...]) -> Report:
    report = Report._make(numbers)
    if report.not_converged:
        warnings.warn(
            f"soft_threshold: {report.not_converged} of {report.total} blocks ran out of "
            "steps and hold their best iterate; raise max_iter",
            NotConvergedWarning,
            stacklevel=3,
        )
    return report


_Self = TypeVar("_Self", bound="Handle")


class Handle:
    """An object of the library. :meth:`close` gives it up now; else the garbage collector does, in
    any order. Using a closed one raises :class:`InvalidArgumentError`."""

    _handle: Any = None

    def close(self) -> None:
        """Gives the handle up; more than once is fine. What was built on it lives on."""
        self._handle = None

    @property
    def closed(self) -> bool:
        return self._handle is None

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def doubles(raw: bytes) -> tuple[float, ...]:
    """The numbers that a callback is given."""
    return struct.unpack(f"{len(raw) // 8}d", raw)


def callback_of(owner: Any, call: Callable[[Any, bytes], Any]) -> Any:
    """A C callback that runs ``call(owner, numbers)``. The library's side knows the owner only
    weakly: a function that refers to its owner would never be collected otherwise."""
    known = weakref.ref(owner)
    return _native.Callback(lambda raw: call(known(), raw))


class Context(Handle):
    """How calls run: executor, threads, progress. Every working call takes ``context=``; None is
    the process default, with as many threads as the process may use.

    Args:
        executor: ``"default"``, ``"serial"``, ``"tbb"`` or ``"openmp"``.
        threads: at most this many; 0 means as many as the process may use.
        progress: ``progress(done, total)``, called now and then on the thread that made the call; a
            true result cancels it with :class:`CancelledError`, an exception comes out of the call.
            It may not make a call with the same context.

    Raises:
        UnavailableError: the executor is not in this build, see :func:`build_info`.
    """

    _EXECUTORS = {
        "default": _native.EXECUTOR_DEFAULT,
        "serial": _native.EXECUTOR_SERIAL,
        "tbb": _native.EXECUTOR_TBB,
        "openmp": _native.EXECUTOR_OPENMP,
    }

    def __init__(
        self,
        executor: str = "default",
        threads: int = 0,
        progress: Callable[[int, int], Any] | None = None,
    ) -> None:
        if executor not in self._EXECUTORS:
            raise InvalidArgumentError(
                f"executor: got '{executor}', expected one of {', '.join(self._EXECUTORS)}"
            )
        self._progress = progress
        self._callback = None if progress is None else callback_of(self, Context._report_progress)
        self._handle = _native.context_create(self._EXECUTORS[executor], threads, self._callback)

    def _report_progress(self, raw: bytes) -> bool:
        done, total = doubles(raw)
        assert self._progress is not None
        return bool(self._progress(int(done), int(total)))

    @property
    def executor(self) -> str:
        """The executor that calls use; of a default one, which it is."""
        number = _native.context_executor(native_context(self))
        return next(name for name, value in self._EXECUTORS.items() if value == number)

    @property
    def threads(self) -> int:
        """How many threads a call may use."""
        return _native.context_threads(native_context(self))

    def trim(self) -> None:
        """Frees the scratch memory that idle calls left for reuse."""
        _native.context_trim(native_context(self))

    def __repr__(self) -> str:
        return "Context(closed)" if self.closed else f"Context({self.executor!r}, {self.threads})"


def native_context(context: Context | None) -> Any:
    """The handle of a context, None for the default. A closed one must not pass for that."""
    if context is None:
        return None
    if not isinstance(context, Context):
        raise InvalidArgumentError(f"context: got {context!r}, expected a Context")
    if context._handle is None:
        raise InvalidArgumentError("context: got a closed one, expected an open handle")
    return context._handle
