#!/usr/bin/env python3
"""Draws how the ratio of operations to their yardstick goes with the size of the tensor."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

from results import Results, Row, bytes_text, load, stop  # noqa: E402

# Okabe and Ito's colours, told apart by markers too.
STYLES = [("#0072B2", "o"), ("#E69F00", "s"), ("#009E73", "^"), ("#CC79A7", "D"),
          ("#D55E00", "v"), ("#56B4E9", "P"), ("#000000", "X")]

Curves = dict[tuple[str, str], list[Row]]


def curves_of(results: Results, dtype: str) -> Curves:
    curves: Curves = {}
    for row in results.rows:
        if row.figure == "ratio" and row.dtype == dtype:
            curves.setdefault((row.operation, row.layout), []).append(row)
    return curves


def draw_curves(axes: Axes, curves: Curves) -> None:
    for number, ((operation, layout), rows) in enumerate(curves.items()):
        colour, marker = STYLES[number % len(STYLES)]
        axes.plot([row.setup.size for row in rows], [row.value for row in rows], color=colour,
                  marker=marker, markersize=5, linewidth=1.4, label=f"{operation}, {layout}")


def label_axes(axes: Axes, sizes: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: bytes_text(size)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
    axes.set_xlabel("tensor")
    axes.set_ylabel("time / time of the yardstick")
    axes.axhline(1, color="#888888", linewidth=0.9, linestyle=":")
    axes.grid(color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(results: Results, dtype: str) -> plt.Figure:
    curves = curves_of(results, dtype)
    if not curves:
        stop(f"no ratios were measured with {dtype}")
    figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
    draw_curves(axes, curves)
    label_axes(axes, sorted({row.setup.size for rows in curves.values() for row in rows}))
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8, frameon=False)
    axes.set_title(f"Operations against a sweep x *= a over the same bytes, {dtype}", loc="left",
                   fontsize=11, fontweight="bold")
    return figure


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", type=Path, help="results.json of a run with --size-sweep")
    parser.add_argument("pictures", type=Path, nargs="+", help="files to write, .svg or .png")
    parser.add_argument("--dtype", default="f32", help="to draw (default: f32)")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    figure = draw(load(given.json), given.dtype)
    for picture in given.pictures:
        figure.savefig(picture, dpi=150)
        print(f"drew {picture}")


if __name__ == "__main__":
    main()
