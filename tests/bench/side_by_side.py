#!/usr/bin/env python3
"""SparseKit beside PyTorch and NumPy: the same operations on the same data in one process."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Callable, Optional

try:
    import numpy as np
    import torch
except ImportError as missing:
    sys.exit(f"side_by_side.py: {missing}; run_side_by_side.sh installs what is needed")

from comparisons import Comparison, TorchFunction, all_comparisons
from library import Library

FEWEST_REPETITIONS = 3
# Beyond this, a number of units in the last place says less than a relative error.
MOST_ULPS = 4
# The share of elements that ties and norms at a threshold may account for.
MOST_DECISIONS = 1e-4
SIDE_GRAIN = 64


@dataclass
class Contender:
    """One way to do it, with a number of PyTorch's threads."""

    name: str
    threads: int
    run: Callable[[], np.ndarray]
    seconds: list[float] = field(default_factory=list)

    def milliseconds(self) -> float:
        return 1e3 * statistics.median(self.seconds)


@dataclass(frozen=True)
class Line:
    operation: str
    sparsekit_ms: float
    peer: str
    peer_ms: float
    threads: int
    equal: str

    def cells(self) -> list[str]:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return [self.operation, f"{self.sparsekit_ms:.3g}", f"{self.peer}, {threads}",
                f"{self.peer_ms:.4g}", f"{self.peer_ms / self.sparsekit_ms:.2f}", self.equal]


HEADING = ["operation", "SparseKit ms", "peer", "peer ms", "factor", "results equal"]


class Bench:
    """Weights, a working copy of them, and the rules of timing."""

    def __init__(self, side: int, repetitions: int, budget: float, cores: int) -> None:
        self.pristine = np.random.default_rng(0).standard_normal(side * side, dtype=np.float32)
        self.pristine_tensor = torch.from_numpy(self.pristine)
        self.work = self.pristine.copy()
        self.tensor = torch.from_numpy(self.work)
        self.repetitions = repetitions
        self.budget = budget
        self.threads = sorted({1, cores})

    def contenders_of(self, comparison: Comparison) -> list[Contender]:
        peers = []
        for name, with_torch in comparison.torch.items():
            run = partial(self.run_torch, with_torch)
            peers += [Contender(name, threads, run) for threads in self.threads]
        for name, with_numpy in comparison.numpy.items():
            peers.append(Contender(name, 1, partial(with_numpy, self.work)))
        return peers

    def run_torch(self, function: TorchFunction) -> np.ndarray:
        return function(self.tensor).numpy()

    def run_once(self, contender: Contender) -> tuple[float, np.ndarray]:
        torch.set_num_threads(contender.threads)
        # The copy also wakes PyTorch's threads, whose number has just changed.
        self.tensor.copy_(self.pristine_tensor)
        start = time.perf_counter()
        result = contender.run()
        return time.perf_counter() - start, result

    def result_of(self, contender: Contender) -> np.ndarray:
        """Also the warm-up."""
        return self.run_once(contender)[1].flatten().copy()

    def time_all(self, contenders: list[Contender]) -> None:
        """In turns, so that whatever slows the machine down slows all of them down."""
        used = 0.0
        for repetition in range(self.repetitions):
            if repetition >= FEWEST_REPETITIONS and used > self.budget:
                return
            for contender in contenders:
                seconds, _ = self.run_once(contender)
                contender.seconds.append(seconds)
                used += seconds

    def compare(self, comparison: Comparison) -> list[Line]:
        # Threads of PyTorch's: more of them would spin on for a while and keep a core from ours.
        ours = Contender("SparseKit", 1, lambda: comparison.sparsekit(self.work))
        peers = self.contenders_of(comparison)
        expected = self.result_of(ours)
        equal = {peer.name: equality(expected, self.result_of(peer), comparison.decides)
                 for peer in peers}
        self.time_all([ours, *peers])
        return [Line(comparison.name, ours.milliseconds(), best.name, best.milliseconds(),
                     best.threads, equal[best.name]) for best in best_of_each(peers)]


def best_of_each(peers: list[Contender]) -> list[Contender]:
    """The better number of threads of each peer."""
    best: dict[str, Contender] = {}
    for peer in peers:
        if peer.name not in best or peer.milliseconds() < best[peer.name].milliseconds():
            best[peer.name] = peer
    return list(best.values())


def ulps_apart(a: np.ndarray, b: np.ndarray) -> int:
    def ordered(x: np.ndarray) -> np.ndarray:
        bits = x.view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    return int(np.abs(ordered(a) - ordered(b)).max())


def equality(expected: np.ndarray, found: np.ndarray, decides: bool) -> str:
    differing = np.count_nonzero(expected != found)
    if differing == 0:
        return "yes"
    if decides:
        rare = differing <= MOST_DECISIONS * expected.size
        return f"but for {differing} elements" if rare else f"NO: {differing} elements differ"
    ulps = ulps_apart(expected, found)
    if ulps <= MOST_ULPS:
        return f"within {ulps} ulp"
    apart = np.abs(expected - found).max() / np.abs(expected).max()
    return f"within {apart:.1g} of the largest" if apart < 1e-5 else f"NO: {apart:.1g} apart"


def table_text(lines: list[Line]) -> str:
    rows = [HEADING, *(line.cells() for line in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADING))]
    numbers = (1, 3, 4)
    return "\n".join(
        "  ".join(cell.rjust(width) if i in numbers else cell.ljust(width)
                  for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def markdown_text(lines: list[Line]) -> str:
    rows = [HEADING, ["---", "---:", "---", "---:", "---:", "---"],
            *(line.cells() for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def facts(library: Library, side: int, cores: int) -> str:
    return (f"{side} x {side} f32 ({side * side * 4 / 2**20:.4g} MiB), {cores} cores; "
            f"{library.build_info()}; {library.threads()} threads; PyTorch {torch.__version__}, "
            f"NumPy {np.__version__}; {time.strftime('%Y-%m-%d')}")


def side_of_matrix(text: str) -> int:
    side = int(text)
    if side <= 0 or side % SIDE_GRAIN:
        raise argparse.ArgumentTypeError(f"must be a positive multiple of {SIDE_GRAIN}: {text}")
    return side


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path, help="libsparsekit.so")
    parser.add_argument("--side", type=side_of_matrix, default=4096, help="of the square matrix")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--budget", type=float, default=10,
                        help="seconds after which an operation stops early (default: 10)")
    parser.add_argument("--filter", default="", help="only operations whose name contains this")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    return parser.parse_args()


def load_library(path: Path) -> Library:
    try:
        return Library(path)
    except OSError as error:
        sys.exit(f"side_by_side.py: cannot load the library: {error}")


def main() -> Optional[str]:
    given = arguments()
    library = load_library(given.library)
    cores = len(os.sched_getaffinity(0))
    bench = Bench(given.side, given.repetitions, given.budget, cores)
    comparisons = [comparison for comparison in all_comparisons(library, given.side)
                   if given.filter in comparison.name]
    if not comparisons:
        return f"no operation's name contains {given.filter!r}"
    lines: list[Line] = []
    for number, comparison in enumerate(comparisons, 1):
        print(f"{number} of {len(comparisons)}: {comparison.name}", file=sys.stderr, flush=True)
        lines += bench.compare(comparison)
    about = facts(library, given.side, cores)
    print(f"{about}\n\n{table_text(lines)}")
    if given.markdown:
        given.markdown.write_text(f"{about}\n\n{markdown_text(lines)}\n")
    return "results differ" if any(line.equal.startswith("NO") for line in lines) else None


if __name__ == "__main__":
    sys.exit(main())
