#!/usr/bin/env python3
"""Prints the results of a benchmark run as the tables of a README, in Markdown."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Iterable, Iterator

from results import DTYPES, Results, Row, Setup, bytes_text, load

Key = tuple[str, str, str]


def by_operation(rows: Iterable[Row]) -> dict[Key, dict[str, Row]]:
    """Rows of one operation and layout, by dtype."""
    operations: dict[Key, dict[str, Row]] = {}
    for row in rows:
        operations.setdefault((row.group, row.operation, row.layout), {})[row.dtype] = row
    return operations


def markdown(heading: list[str], lines: Iterable[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(heading) + " |"
    yield "|---|---|" + "---:|" * (len(heading) - 2)
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def value_text(row: Row | None) -> str:
    """Bold where the goal is missed."""
    if row is None:
        return "–"
    text = f"{row.value:.3g}" if row.value < 1000 else f"{row.value:.0f}"
    return f"**{text}**" if row.goal_met is False else text


def goal_text(row: Row) -> str:
    return "–" if row.goal is None else f"{row.goal:g}"


def memory_text(rows: Iterable[Row]) -> str:
    return f"{max(row.extra_memory_percent for row in rows):.1f} %"


def figures(rows: list[Row], dtypes: list[str], with_memory: bool) -> Iterator[str]:
    lines = []
    for (_, operation, layout), by_dtype in by_operation(rows).items():
        first = next(iter(by_dtype.values()))
        lines.append([operation, layout, goal_text(first)]
                     + [value_text(by_dtype.get(dtype)) for dtype in dtypes]
                     + ([memory_text(by_dtype.values())] if with_memory else []))
    memory = ["extra memory"] if with_memory else []
    return markdown(["operation", "layout", "goal", *dtypes, *memory], lines)


def sweeps(results: Results) -> Iterator[str]:
    lines = []
    for sweep in results.sweeps:
        best = sweep["ways"][0]
        lines.append([f"{sweep['name']} {sweep['dtype']}",
                      f"{sweep['executor']}, {sweep['threads']}", bytes_text(sweep["bytes"]),
                      best["way"], f"{best['gb_per_s']:.1f}"])
    return markdown(["yardstick", "executor, threads", "tensor", "fastest way", "GB/s"], lines)


def section(title: str, note: str, lines: Iterable[str]) -> str:
    return "\n".join([f"**{title}** {note}", "", *lines, ""])


def document(results: Results, setup: Setup) -> Iterator[str]:
    everything = results.of(setup, "ratio", "speed-up", "overhead", "time")
    dtypes = [dtype for dtype in DTYPES if any(row.dtype == dtype for row in everything)]
    machine = results.machine
    yield (f"Measured {machine['date']} on {machine['cpu']}, {machine['cores']} cores "
           f"({machine['caches']}), {machine['compiler']}; {machine['library']}.\n")
    sections = [
        ("ratio", "Time over that of the yardstick,",
         f"{setup.text()}. A bold number misses its goal."),
        ("overhead", "Small work:", "microseconds of one call beyond its arithmetic."),
        ("time", "Handles:", "microseconds to create and release them."),
        ("speed-up", "Threads:", f"how many times faster with {setup.threads} than with 1."),
    ]
    for figure, title, note in sections:
        rows = results.of(setup, figure)
        if rows:
            yield section(title, note, figures(rows, dtypes, figure == "ratio"))
    yield section("Yardsticks", "in GB/s read and written.", sweeps(results))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", type=Path, help="results.json of a run")
    parser.add_argument("--executor", help="of the rows to print (default: most rows)")
    parser.add_argument("--threads", type=int, help="of the rows to print")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    results = load(given.json)
    for part in document(results, results.setup(given.executor, given.threads)):
        print(part)


if __name__ == "__main__":
    main()
