"""SparseKit through ctypes: as much of it as the side-by-side needs."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Optional, Sequence

import numpy as np

OK = 0
NOT_CONVERGED = 8
MESSAGE_SIZE = 512
F32, F64, U8 = 0x220, 0x240, 0x108
DTYPES = {np.dtype("f4"): F32, np.dtype("f8"): F64, np.dtype("u1"): U8}


class Buffer(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("numel", c_int64), ("dtype", c_int32), ("layout", c_int32),
                ("view", c_void_p)]


class SoftOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("conditioners", POINTER(Buffer)), ("eps", c_double),
                ("atol", c_double), ("max_iter", c_int32), ("scale", c_int32)]


class Error(RuntimeError):
    """A call failed; the text is the library's message."""


BUFFER = POINTER(Buffer)
DIMS = POINTER(c_int64)
SIGNATURES: dict[str, list[type]] = {
    "spk_last_error_copy": [c_char_p, c_size_t, c_void_p],
    "spk_view_create": [c_int32, c_int32, DIMS, DIMS, c_int64, POINTER(c_void_p)],
    "spk_block_create": [c_void_p, c_int32, DIMS, c_char_p, POINTER(c_void_p)],
    "spk_scope_create": [c_void_p, c_int32, DIMS, c_char_p, POINTER(c_void_p)],
    "spk_block_norms": [c_void_p, c_void_p, BUFFER, c_int32, c_double, BUFFER],
    "spk_block_apply_mask": [c_void_p, c_void_p, BUFFER, BUFFER, c_int32, BUFFER],
    "spk_block_apply_multiplier": [c_void_p, c_void_p, BUFFER, BUFFER, c_int32, BUFFER],
    "spk_block_hard_threshold": [c_void_p, c_void_p, BUFFER, BUFFER, c_int32, BUFFER, c_void_p,
                                 c_void_p],
    "spk_block_soft_threshold": [c_void_p, c_void_p, BUFFER, BUFFER, c_int32, BUFFER,
                                 POINTER(SoftOptions), c_void_p],
    "spk_scope_keep_top": [c_void_p, c_void_p, BUFFER, BUFFER, c_int32, DIMS, c_int64, c_void_p,
                           c_void_p],
}


def dims(numbers: Sequence[int]) -> ctypes.Array[c_int64]:
    return (c_int64 * len(numbers))(*numbers)


def buffer(array: np.ndarray) -> Buffer:
    return Buffer(array.ctypes.data, array.size, DTYPES[array.dtype], 0, None)


class Library:
    """The shared library with typed functions; failures become exceptions."""

    def __init__(self, path: Path) -> None:
        self._dll = ctypes.CDLL(str(path))
        for name, arguments in SIGNATURES.items():
            function = getattr(self._dll, name)
            function.argtypes = arguments
            function.restype = c_int32
        for kind in ("view", "block", "scope"):
            release = getattr(self._dll, f"spk_{kind}_release")
            release.argtypes, release.restype = [c_void_p], None
        self._dll.spk_build_info.restype = c_char_p
        self._dll.spk_context_threads.argtypes = [c_void_p]

    def build_info(self) -> str:
        return self._dll.spk_build_info().decode()

    def threads(self) -> int:
        """Of the process default, which every call here uses."""
        return self._dll.spk_context_threads(None)

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self._dll, name)(*arguments)
        # Everything was written then; some blocks hold their best iterate.
        if status not in (OK, NOT_CONVERGED):
            text = ctypes.create_string_buffer(MESSAGE_SIZE)
            self._dll.spk_last_error_copy(text, MESSAGE_SIZE, None)
            raise Error(f"{name}: {text.value.decode()}")

    def create(self, kind: str, *arguments: object) -> c_void_p:
        handle = c_void_p()
        self.call(f"spk_{kind}_create", *arguments, byref(handle))
        return handle

    def release(self, kind: str, handle: Optional[c_void_p]) -> None:
        getattr(self._dll, f"spk_{kind}_release")(handle)


class Blocks:
    """Blocks of a view of f32 data, and optionally scopes over them."""

    def __init__(self, library: Library, shape: Sequence[int], block: Sequence[int],
                 stride: Optional[Sequence[int]] = None,
                 scope: Optional[Sequence[int]] = None) -> None:
        self._library = library
        strides = dims(stride) if stride else None
        view = library.create("view", F32, len(shape), dims(shape), strides, 0)
        self._block = library.create("block", view, len(block), dims(block), None)
        library.release("view", view)  # the block keeps it alive
        self._scope = None
        if scope is not None:
            self._scope = library.create("scope", self._block, len(scope), dims(scope), None)

    def __del__(self) -> None:
        # NULL is ignored; a constructor that failed has left some of them out.
        self._library.release("scope", getattr(self, "_scope", None))
        self._library.release("block", getattr(self, "_block", None))

    def norms(self, weights: np.ndarray, p: float, out: np.ndarray) -> np.ndarray:
        self._library.call("spk_block_norms", None, self._block, byref(buffer(weights)), 1, p,
                           byref(buffer(out)))
        return out

    def apply_mask(self, weights: np.ndarray, prune: np.ndarray) -> np.ndarray:
        self._library.call("spk_block_apply_mask", None, self._block, byref(buffer(weights)),
                           None, 1, byref(buffer(prune)))
        return weights

    def apply_multiplier(self, weights: np.ndarray, multiplier: np.ndarray) -> np.ndarray:
        self._library.call("spk_block_apply_multiplier", None, self._block,
                           byref(buffer(weights)), None, 1, byref(buffer(multiplier)))
        return weights

    def hard_threshold(self, weights: np.ndarray, threshold: float) -> np.ndarray:
        self._library.call("spk_block_hard_threshold", None, self._block, byref(buffer(weights)),
                           None, 1, byref(buffer(np.array([threshold]))), None, None)
        return weights

    def soft_threshold(self, weights: np.ndarray, threshold: float,
                       conditioners: Optional[np.ndarray] = None) -> np.ndarray:
        options = SoftOptions(ctypes.sizeof(SoftOptions), None, -1.0, -1.0, 0, 0)
        if conditioners is not None:
            options.conditioners = ctypes.pointer(buffer(conditioners))
        self._library.call("spk_block_soft_threshold", None, self._block, byref(buffer(weights)),
                           None, 1, byref(buffer(np.array([threshold]))), byref(options), None)
        return weights

    def keep_top(self, weights: np.ndarray, count: int) -> np.ndarray:
        self._library.call("spk_scope_keep_top", None, self._scope, byref(buffer(weights)), None,
                           1, dims([count]), 1, None, None)
        return weights
