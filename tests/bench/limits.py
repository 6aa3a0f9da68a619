#!/usr/bin/env python3
"""Prints each goal of a run beside what memory and arithmetic alone cost, in Markdown."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Iterator, Optional

from results import Results, Row, Setup, load
from table import markdown

Key = tuple[str, str, str]
Limit = tuple[str, str]  # operation and layout of a row of the group "limits"

# What memory does for each operation, and about no more: by the first word of its name, then by
# layout. Where there is none, the yardstick does as much.
READING_ROWS = ("reading alone", "at four places")
READ_BEFORE = ("reading, then a sweep", "contiguous")
READING = {
    "tiles 64x64": ("reading, tile by tile", "tiles 64x64"),
    "conv kernels": ("reading all, writing a ninth", "convolution"),
    "conv input channels": ("reading alone", "convolution, at four places"),
    "strided pairs": ("reading all, writing half", "contiguous"),
    "elements": ("copying", "contiguous"),
    "2 coupled leaves": ("reading, tile by tile", "2 coupled leaves"),
    "4 coupled leaves": ("reading, tile by tile", "4 coupled leaves"),
}
THRESHOLDS = {
    "tiles 64x64": ("reading, then x *= a, by tiles", "tiles 64x64"),
    "conv kernels": ("reading a ninth of h, then x *= it", "convolution"),
    "strided pairs": ("reading half of h, then x *= it", "contiguous"),
    "columns 4096x1": READ_BEFORE,
    "conv input channels": ("reading, then a sweep", "convolution"),
    "elements": ("reading h, then x *= h", "contiguous"),
    "2 coupled leaves": ("reading, then x *= a, by tiles", "2 coupled leaves"),
    "4 coupled leaves": ("reading, then x *= a, by tiles", "4 coupled leaves"),
}
MULTIPLIERS = {
    "strided pairs": ("x *= half of h", "contiguous"),
    "elements": ("x *= h", "contiguous"),
}
# Bare loops with some arithmetic on what they read, or read and write.
SWEEP = "sweep"
READING_WITH = "reading and arithmetic"
SWEEP_WITH = "sweep and arithmetic"
THRESHOLDS_WITH = {
    "elements": "reading h, then computing by it",
    "strided pairs": "reading half of h, then computing by it",
    "conv kernels": "reading a ninth of h, then computing",
}
# Soft thresholds as bare loops that compute as they do, in doubles. Those of many or large blocks
# know all norms before they write.
IN_DOUBLES = {
    "rows 1x64": ("squares, then products", "in doubles"),
    "rows 1x4096": ("squares, then products", "in doubles"),
    "tiles 64x64": ("squares, then products, by tiles", "tiles 64x64"),
    "columns 4096x1": ("all squares, then all products", "in doubles"),
    "conv input channels": ("all squares, then all products", "in doubles, convolution"),
    "2 coupled leaves": ("squares, then products, by tiles", "2 coupled leaves"),
    "4 coupled leaves": ("squares, then products, by tiles", "4 coupled leaves"),
    "coupled neurons": ("all squares, then all products", "in doubles"),
}
# Hard ones compute less, which bare loops between tell of rows and tiles only.
HARD_IN_TWO_PASSES = ("columns 4096x1", "conv input channels")
# Blocks of several elements; of one, there is nothing to solve.
CONDITIONED = ("reading h, then two steps and a write", "in floats and doubles")


def memory_limit(row: Row) -> Optional[Limit]:
    """None: the yardstick itself."""
    word = row.operation.split()[0]
    if word == "keep_top" and row.layout.startswith("all"):
        return READ_BEFORE  # nothing is written before all has been read
    if word == "norms":
        return READING.get(row.layout, READING_ROWS)
    if word in ("soft_threshold", "hard_threshold"):
        return THRESHOLDS.get(row.layout)
    return MULTIPLIERS.get(row.layout) if word == "apply_multiplier" else None


def loop_with_arithmetic(row: Row) -> str:
    word = row.operation.split()[0]
    if word == "norms":
        return READING_WITH
    if word in ("soft_threshold", "hard_threshold"):
        return THRESHOLDS_WITH.get(row.layout, SWEEP_WITH)
    return SWEEP_WITH


def are_alike(bare: Row, row: Row) -> bool:
    """Was memory as fast for both? A virtual machine may be moved within a run, and ratios to sweeps
    of another speed say nothing. Only sweeps of as many bytes tell."""
    most = 1.25
    if row.yardstick != SWEEP or bare.yardstick != SWEEP or bare.bytes != row.bytes:
        return True
    faster, slower = sorted((bare.yardstick_ms, row.yardstick_ms))
    return slower <= most * faster


def key(row: Row) -> Key:
    return (row.operation, row.layout, row.dtype)


class Limits:
    """What one setup of a run allows, by the same operations in the caches of one thread."""

    def __init__(self, results: Results, in_caches: Results, setup: Setup) -> None:
        self._threads = setup.threads
        self._bare = {key(row): row for row in results.of(setup, "ratio") if row.group == "limits"}
        self._cached = {key(row): row for row in in_caches.rows}

    def memory(self, row: Row) -> Optional[float]:
        """In units of the row's yardstick."""
        limit = memory_limit(row)
        return 1.0 if limit is None else self._of(limit, row)

    def arithmetic(self, row: Row) -> Optional[float]:
        """Shared out among all threads, in units of the row's yardstick."""
        cached = self._cached.get(key(row))
        if cached is None:
            return None
        return cached.median_ms / cached.bytes * row.bytes / self._threads / row.yardstick_ms

    def both(self, row: Row) -> Optional[float]:
        """A bare loop with as much arithmetic: one that computes the same, or between the two that
        have a little less and more."""
        if row.operation.startswith("conditioned") and row.layout != "elements":
            return self._of(CONDITIONED, row)
        if row.operation == "soft_threshold" and row.layout in IN_DOUBLES:
            return self._of(IN_DOUBLES[row.layout], row)
        if row.operation == "hard_threshold" and row.layout in HARD_IN_TWO_PASSES:
            return None
        wanted = self.arithmetic(row)
        if wanted is None or row.yardstick != SWEEP:
            return None
        points = sorted(self._with_arithmetic(row))
        for (less, at_less), (more, at_more) in zip(points, points[1:]):
            if less <= wanted < more:
                return at_less + (at_more - at_less) * (wanted - less) / (more - less)
        return None  # outside what was measured

    def _of(self, limit: Limit, row: Row) -> Optional[float]:
        bare = self._bare.get((*limit, row.dtype))
        if bare is None or not are_alike(bare, row):
            return None
        # Couplings are measured against uncoupled leaves.
        return bare.value if row.yardstick == SWEEP else bare.median_ms / row.yardstick_ms

    def _with_arithmetic(self, row: Row) -> Iterator[tuple[float, float]]:
        operation = loop_with_arithmetic(row)
        for bare in self._bare.values():
            share = self.arithmetic(bare)
            is_such = bare.operation == operation and bare.dtype == row.dtype
            if is_such and share is not None and are_alike(bare, row):
                yield share, bare.value


def text(value: Optional[float]) -> str:
    return "–" if value is None else f"{value:.2f}"


def line(row: Row, limits: Limits) -> list[str]:
    measured = text(row.value) if row.goal_met else f"**{text(row.value)}**"
    limit = memory_limit(row)
    return [row.operation, row.layout, f"{row.goal:g}", measured, text(limits.memory(row)),
            text(limits.arithmetic(row)), text(limits.both(row)),
            row.yardstick if limit is None else ", ".join(limit)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", type=Path, help="results of a run")
    parser.add_argument("in_caches", type=Path,
                        help="of another, whose tensors fit into a core's own cache, with 1 thread")
    parser.add_argument("--dtype", default="f32")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    results = load(given.json)
    setup = results.setup(None, None)
    limits = Limits(results, load(given.in_caches), setup)
    rows = [row for row in results.of(setup, "ratio")
            if row.goal is not None and row.dtype == given.dtype]
    if not rows:
        print(f"No goal of {given.dtype} was measured.")
        return
    print(f"{setup.text()}, {given.dtype}; bold misses its goal.\n")
    heading = ["operation", "layout", "goal", "measured", "memory alone", "arithmetic alone",
               "a bare loop with as much", "memory alone is"]
    for part in markdown(heading, (line(row, limits) for row in rows)):
        print(part)


if __name__ == "__main__":
    main()
