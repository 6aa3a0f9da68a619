"""The results of a benchmark run, as the drawing and the table need them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Optional

DTYPES = ("f32", "f64", "f16", "bf16")


def stop(message: str) -> NoReturn:
    sys.exit(f"{Path(sys.argv[0]).name}: {message}")


@dataclass(frozen=True)
class Setup:
    """What one table is measured with."""

    executor: str
    threads: int
    size: int

    def text(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.executor}, {threads}, {bytes_text(self.size)}"


@dataclass(frozen=True)
class Row:
    """A row that was measured."""

    group: str
    operation: str
    layout: str
    dtype: str
    setup: Setup
    bytes: int
    yardstick: str
    yardstick_ms: Optional[float]
    figure: str
    value: float
    goal: Optional[float]
    goal_met: Optional[bool]
    median_ms: float
    gb_per_s: Optional[float]
    extra_memory_percent: float


@dataclass(frozen=True)
class Results:
    machine: dict[str, str]
    sweeps: list[dict[str, Any]]
    rows: list[Row]

    def of(self, setup: Setup, *figures: str) -> list[Row]:
        return [row for row in self.rows if row.setup == setup and row.figure in figures]

    def setup(self, executor: Optional[str], threads: Optional[int]) -> Setup:
        """Of those asked for, the one that measured the most rows."""
        counts = Counter(
            row.setup
            for row in self.rows
            if executor in (None, row.setup.executor) and threads in (None, row.setup.threads)
        )
        if not counts:
            stop(f"nothing was measured with executor {executor}, threads {threads}")
        return counts.most_common(1)[0][0]


def bytes_text(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def row_of(raw: dict[str, Any]) -> Row:
    setup = Setup(raw["executor"], raw["threads"], raw["size"])
    names = [name for name in Row.__dataclass_fields__ if name != "setup"]
    return Row(setup=setup, **{name: raw[name] for name in names})


def load(path: Path) -> Results:
    try:
        raw = json.loads(path.read_text())
    except OSError as error:
        stop(f"cannot read {path}: {error.strerror}; run_bench.sh writes it")
    except json.JSONDecodeError as error:
        stop(f"{path} is not complete JSON ({error}); was the run interrupted?")
    rows = [row_of(row) for row in raw["rows"] if "value" in row]
    if not rows:
        stop(f"{path} has no row with numbers")
    return Results(raw["machine"], raw["sweeps"], rows)
