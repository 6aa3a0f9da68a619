#!/usr/bin/env python3
"""Draws the ratio of every operation and layout to its yardstick, with the goals."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

from results import DTYPES, Results, Row, Setup, load, stop  # noqa: E402

# Okabe and Ito's colours, told apart by markers too.
STYLES = {
    "f32": ("#0072B2", "o"),
    "f64": ("#E69F00", "s"),
    "f16": ("#009E73", "^"),
    "bf16": ("#CC79A7", "D"),
}
GOAL_COLOUR = "#222222"
COLUMNS = 3
INCHES_PER_LINE = 0.205


@dataclass
class Line:
    """One line of the plot: a heading, or a layout with a point for each dtype."""

    label: str
    points: dict[str, float] = field(default_factory=dict)
    goal: float | None = None

    def is_heading(self) -> bool:
        return not self.points


def sections_of(rows: list[Row]) -> list[list[Line]]:
    """A section for each operation: its heading, and a line for each of its layouts."""
    sections: dict[tuple[str, str], dict[str, Line]] = {}
    for row in rows:
        lines = sections.setdefault((row.group, row.operation), {})
        line = lines.setdefault(row.layout, Line(row.layout, goal=row.goal))
        line.points[row.dtype] = row.value
    return [
        [Line(heading_of(group, operation)), *lines.values()]
        for (group, operation), lines in sections.items()
    ]


def heading_of(group: str, operation: str) -> str:
    return f"{operation}, coupled" if group == "couplings" else operation


def columns_of(sections: list[list[Line]]) -> list[list[Line]]:
    """Shares the sections out in columns of about the same length."""
    total = sum(len(section) for section in sections)
    columns: list[list[Line]] = [[] for _ in range(COLUMNS)]
    placed = 0
    for section in sections:
        middle = placed + len(section) / 2
        columns[min(COLUMNS - 1, int(middle * COLUMNS / total))] += section
        placed += len(section)
    return [column for column in columns if column]


def draw_line(axes: Axes, y: int, line: Line) -> None:
    axes.axhline(y, color="#e4e4e4", linewidth=0.7, zorder=0)
    if line.goal is not None:
        axes.plot([line.goal] * 2, [y - 0.42, y + 0.42], color=GOAL_COLOUR, linewidth=2.2, zorder=2)
    # Dtypes are set apart a little, so that equal values do not hide each other.
    for place, dtype in enumerate(DTYPES):
        if dtype not in line.points:
            continue
        colour, marker = STYLES[dtype]
        axes.plot(line.points[dtype], y + (place - 1.5) * 0.17, marker=marker, color=colour,
                  markersize=4.4, markeredgecolor="white", markeredgewidth=0.4, zorder=3)


def draw_column(axes: Axes, lines: list[Line], height: int) -> None:
    for y, line in enumerate(lines):
        if not line.is_heading():
            draw_line(axes, y, line)
    axes.set_yticks(range(len(lines)), [line.label for line in lines], fontsize=8)
    for label, line in zip(axes.get_yticklabels(), lines):
        if line.is_heading():
            label.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(height - 0.3, -0.7)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def scale_ratios(axes: Axes, low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    steps = (1,) if high / low > 300 else (1, 2, 5)
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=8)
    axes.axvline(1, color="#888888", linewidth=0.9, linestyle=":", zorder=1)


def legend_of(dtypes: list[str]) -> list[Line2D]:
    handles = [Line2D([], [], color=STYLES[dtype][0], marker=STYLES[dtype][1], linestyle="",
                      markersize=5, label=dtype) for dtype in dtypes]
    handles.append(Line2D([], [], color=GOAL_COLOUR, marker="|", markeredgewidth=2.2,
                          markersize=10, linestyle="", label="goal: at most"))
    handles.append(Line2D([], [], color="#888888", linestyle=":", linewidth=0.9,
                          label="as fast as the yardstick"))
    return handles


def draw(results: Results, setup: Setup) -> plt.Figure:
    rows = results.of(setup, "ratio")
    if not rows:
        stop(f"no ratios were measured with {setup.text()}")
    columns = columns_of(sections_of(rows))
    height = max(len(column) for column in columns)
    inches = height * INCHES_PER_LINE + 1.4
    figure, grid = plt.subplots(1, len(columns), figsize=(4.9 * len(columns), inches),
                                squeeze=False)
    values = [row.value for row in rows] + [row.goal for row in rows if row.goal is not None]
    for axes, column in zip(grid[0], columns):
        draw_column(axes, column, height)
        scale_ratios(axes, min(values) / 1.3, max(values) * 1.3)
        axes.set_xlabel("time / time of the yardstick", fontsize=8)
    title = "Time of operations over that of a sweep x *= a over the same bytes"
    figure.suptitle(title, x=0.01, y=1 - 0.12 / inches, ha="left", va="top", fontsize=12,
                    fontweight="bold")
    figure.text(0.01, 1 - 0.42 / inches, subtitle_of(results, setup), ha="left", va="top",
                fontsize=8, color="#444444")
    dtypes = [dtype for dtype in DTYPES if any(row.dtype == dtype for row in rows)]
    figure.legend(handles=legend_of(dtypes), loc="upper left", ncol=len(dtypes) + 2, fontsize=8,
                  frameon=False, borderaxespad=0, borderpad=0, handletextpad=0.3,
                  bbox_to_anchor=(0.01, 1 - 0.66 / inches))
    figure.tight_layout(pad=0.4, w_pad=1.5, rect=(0, 0, 1, 1 - 0.85 / inches))
    return figure


def subtitle_of(results: Results, setup: Setup) -> str:
    machine = results.machine
    return f"{setup.text()}; {machine['cpu']}, {machine['cores']} cores; {machine['date']}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", type=Path, help="results.json of a run")
    parser.add_argument("pictures", type=Path, nargs="+", help="files to write, .svg or .png")
    parser.add_argument("--executor", help="of the rows to draw (default: most rows)")
    parser.add_argument("--threads", type=int, help="of the rows to draw")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    results = load(given.json)
    setup = results.setup(given.executor, given.threads)
    figure = draw(results, setup)
    for picture in given.pictures:
        figure.savefig(picture, dpi=150)
        print(f"drew {picture}")


if __name__ == "__main__":
    main()
