# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class per status of the library, all derived from :class:`SparseKitError`."""

from __future__ import annotations

from . import _native


class SparseKitError(Exception):
    """A call of the library failed; the message names the argument, what was given, what expected.

    Attributes:
        status: the library's number, such as 4.
        status_name: its name, such as ``"SPK_OVERLAP"``.
    """

    status: int = _native.INTERNAL

    def __init__(self, message: str = "", status: int | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status

    @property
    def status_name(self) -> str:
        """Such as ``"SPK_OVERLAP"``."""
        return _native.status_string(self.status)


class InvalidArgumentError(SparseKitError, ValueError):
    """A value outside its range, a closed object, a read-only or misaligned array."""

    status = _native.INVALID_ARGUMENT


class ShapeMismatchError(SparseKitError, ValueError):
    """Shapes, lengths or counts that do not fit each other."""

    status = _native.SHAPE_MISMATCH


class CouplingError(SparseKitError, ValueError):
    """Members of a coupling whose grids do not agree."""

    status = _native.COUPLING


class OverlapError(SparseKitError, ValueError):
    """One element reached twice, or arrays of a call that share memory."""

    status = _native.OVERLAP


class OutOfBoundsError(SparseKitError, IndexError, ValueError):
    """A view or an index that reaches outside."""

    status = _native.OUT_OF_BOUNDS


class UnsupportedDtypeError(SparseKitError, TypeError):
    """A dtype that this argument cannot have; also an array that is byte-swapped."""

    status = _native.UNSUPPORTED_DTYPE


class OutOfMemoryError(SparseKitError, MemoryError):
    """Scratch memory or a handle could not be allocated."""

    status = _native.OUT_OF_MEMORY


class CancelledError(SparseKitError):
    """A progress function asked to stop: every block is untouched or finished."""

    status = _native.CANCELLED


class UnavailableError(SparseKitError, RuntimeError):
    """An executor that is not in this build, or memory of another device."""

    status = _native.UNAVAILABLE


class InternalError(SparseKitError, RuntimeError):
    """A defect of the library: please report the message."""

    status = _native.INTERNAL


class NotConvergedWarning(UserWarning):
    """A conditioned soft threshold ran out of steps: all was written, the report counts the blocks
    that hold their best iterate."""


_CLASSES: dict[int, type[SparseKitError]] = {
    kind.status: kind
    for kind in (
        InvalidArgumentError,
        ShapeMismatchError,
        CouplingError,
        OverlapError,
        OutOfBoundsError,
        UnsupportedDtypeError,
        OutOfMemoryError,
        CancelledError,
        UnavailableError,
        InternalError,
    )
}


def named(error: SparseKitError, what: str) -> SparseKitError:
    """The same error, of an array that is the argument ``what``."""
    message = str(error)
    if message.startswith("array: "):
        error.args = (what + message[len("array") :],)
    return error


def _error(status: int, message: str) -> SparseKitError:
    return _CLASSES.get(status, SparseKitError)(message, status)


_native.set_error_factory(_error)
