#!/usr/bin/env python3
"""Prunes with SparseKit through ctypes: python3 prune.py [libsparsekit.so]

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import math
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p

F32, LAYOUT_VIEW, SHAPE_MISMATCH = 0x220, 0, 2
ROWS, COLUMNS, PITCH, OFFSET = 4, 8, 10, 1  # rows of 8 floats, 10 apart, after one of padding


class Buffer(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("numel", c_int64), ("dtype", c_int32), ("layout", c_int32),
                ("view", c_void_p)]

    def __init__(self, array):
        super().__init__(ctypes.addressof(array), len(array), F32, LAYOUT_VIEW, None)
        self.array = array  # keeps the memory alive


class Report(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("total", c_int64), ("requested", c_int64),
                ("achieved", c_int64), ("ties", c_int64), ("not_converged", c_int64)]

    def __init__(self):
        super().__init__(ctypes.sizeof(Report))


class SparseKitError(Exception):
    def __init__(self, status):
        message = ctypes.create_string_buffer(512)
        library.spk_last_error_copy(message, len(message), None)
        name = library.spk_status_string(status).decode()
        super().__init__(f"{name}: {message.value.decode()}")
        self.status = status


def check(status, function, arguments):
    if status != 0:
        raise SparseKitError(status)


def load(path):
    """The library with the types of the functions used here. Handles are void pointers."""
    shape, handle, buffer = POINTER(c_int64), c_void_p, POINTER(Buffer)
    signatures = {
        "spk_view_create": (c_int32, c_int32, shape, shape, c_int64, POINTER(handle)),
        "spk_block_create": (handle, c_int32, shape, c_char_p, POINTER(handle)),
        "spk_prune_nm": (handle, handle, buffer, buffer, c_int32, c_int64, c_int64,
                         POINTER(Report)),
        "spk_block_soft_threshold": (handle, handle, buffer, buffer, c_int32, buffer, c_void_p,
                                     POINTER(Report)),
    }
    found = ctypes.CDLL(path)
    for name, arguments in signatures.items():
        function = getattr(found, name)
        function.argtypes, function.restype, function.errcheck = arguments, c_int32, check
    found.spk_last_error_copy.argtypes = (c_char_p, c_size_t, POINTER(c_size_t))
    found.spk_status_string.argtypes, found.spk_status_string.restype = (c_int32,), c_char_p
    found.spk_view_release.argtypes, found.spk_view_release.restype = (handle,), None
    found.spk_block_release.argtypes, found.spk_block_release.restype = (handle,), None
    found.spk_live_handles.restype = c_int64
    return found


def int64s(*values):
    return (c_int64 * len(values))(*values)


def expected_2_4(weights):
    """Of every four in a row the two of largest magnitude; of equal ones the first."""
    result = list(weights)
    for row in range(ROWS):
        for group in range(OFFSET + row * PITCH, OFFSET + row * PITCH + COLUMNS, 4):
            ranked = sorted(range(group, group + 4), key=lambda i: -abs(weights[i]))
            for i in ranked[2:]:
                result[i] = 0.0
    return result


def expected_soft(weights, thresholds):
    """Each row w becomes w max(0, 1 - t / ||w||)."""
    result = list(weights)
    for row, threshold in enumerate(thresholds):
        start = OFFSET + row * PITCH
        norm = math.hypot(*weights[start:start + COLUMNS])
        for i in range(start, start + COLUMNS):
            result[i] *= max(0.0, 1 - threshold / norm)
    return result


def require(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def require_close(got, expected, what):
    require(all(abs(g - e) <= 1e-6 * abs(e) for g, e in zip(got, expected)), what)


library = load(sys.argv[1] if len(sys.argv) > 1 else "libsparsekit.so.0")

# A strided 4 x 8 matrix; the padding around it must stay as it is.
weights = (ctypes.c_float * (ROWS * PITCH))(
    *((37 * i % 41 - 20) / 4 for i in range(ROWS * PITCH)))
buffer = Buffer(weights)
view = c_void_p()
library.spk_view_create(F32, 2, int64s(ROWS, COLUMNS), int64s(PITCH, 1), OFFSET, byref(view))

# 2:4 along the rows, in place.
expected = expected_2_4(weights)
report = Report()
library.spk_prune_nm(None, view, byref(buffer), None, 1, 2, 4, byref(report))
require(list(weights) == expected, "2:4")
print(f"2:4: kept {report.achieved} of {report.total} elements")

# Group soft thresholding: each row is a block with a threshold of its own; the third row dies.
thresholds = (ctypes.c_float * ROWS)(0.5, 1, 100, 2)
expected = expected_soft(weights, thresholds)
block = c_void_p()
library.spk_block_create(view, 2, int64s(1, COLUMNS), b"rows", byref(block))
library.spk_block_soft_threshold(None, block, byref(buffer), None, 1, byref(Buffer(thresholds)),
                                 None, byref(report))
require_close(weights, expected, "soft threshold")
require((report.total, report.achieved) == (ROWS, ROWS - 1), "report")
print(f"soft threshold: kept {report.achieved} of {report.total} rows")

# Blocks of three columns do not divide rows of eight.
try:
    library.spk_block_create(view, 2, int64s(1, 3), b"odd", byref(c_void_p()))
    sys.exit("wrong: no error")
except SparseKitError as error:
    require(error.status == SHAPE_MISMATCH, "status")
    print(f"as it should be: {error}")

library.spk_block_release(block)
library.spk_view_release(view)
require(library.spk_live_handles() == 0, "handles are still alive")
