#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python layer costs: microseconds per call, against the bare C call through ctypes.

    overhead.py LIBSPARSEKIT.SO

On a 64 x 64 matrix of float32. The bare calls have all arguments made beforehand; what they cost is
the work and ctypes itself.
"""

import ctypes
import sys
import timeit

import numpy as np

import sparsekit as sk


class Buffer(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("numel", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
        ("layout", ctypes.c_int32),
        ("view", ctypes.c_void_p),
    ]


F32, F64 = 0x220, 0x240


def buffer_of(array, dtype):
    return Buffer(array.ctypes.data, array.size, dtype, 0, None)


def bare_calls(path, weights):
    """prune_nm and soft_threshold without arguments, as C has them."""
    library = ctypes.CDLL(path)
    shape = (ctypes.c_int64 * 2)(64, 64)
    rows = (ctypes.c_int64 * 2)(1, 64)
    view, block = ctypes.c_void_p(), ctypes.c_void_p()
    library.spk_view_create(F32, 2, shape, None, ctypes.c_int64(0), ctypes.byref(view))
    library.spk_block_create(view, 2, rows, None, ctypes.byref(block))
    threshold = np.zeros(1)
    leaf, thresholds = buffer_of(weights, F32), buffer_of(threshold, F64)
    prune_nm, soft_threshold = library.spk_prune_nm, library.spk_block_soft_threshold
    prune_nm.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_void_p,
    ]
    soft_threshold.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    at_leaf, at_thresholds = ctypes.byref(leaf), ctypes.byref(thresholds)
    keep = (leaf, thresholds, threshold, view, block)
    return {
        "prune_nm": lambda: prune_nm(None, view, at_leaf, None, 1, 2, 4, None),
        "soft_threshold": lambda: soft_threshold(
            None, block, at_leaf, None, 1, at_thresholds, None, None
        ),
    }, keep


def microseconds(call):
    return min(timeit.repeat(call, number=2000, repeat=7)) / 2000 * 1e6


def main(path):
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    bare, _keep = bare_calls(path, weights)
    view = sk.View(weights)
    block = sk.BlockSpec(view, (1, 64))
    calls = {
        ("prune_nm", "View"): lambda: sk.prune_nm(view, 2, 4),
        ("prune_nm", "array"): lambda: sk.prune_nm(weights, 2, 4),
        ("soft_threshold", "BlockSpec"): lambda: block.soft_threshold(0.0),
    }
    print(f"{'64 x 64 float32':24}{'Python':>9}{'bare C':>9}{'layer':>9}   microseconds")
    for (name, on), call in calls.items():
        layered, alone = microseconds(call), microseconds(bare[name])
        print(f"{name + ' of ' + on:24}{layered:9.2f}{alone:9.2f}{layered - alone:9.2f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
