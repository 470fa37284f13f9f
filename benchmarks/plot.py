"""The turns as a picture: whole turns by situation, and masks where nothing was seen before."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from benchmarks.report import Results
from benchmarks.workload import FORMATS
from larksong.api.commands.bench.measure import Situation
from larksong.api.commands.bench.timing import Figures

_TOOLS = 10
_PERCENTILES = ("p50", "p90", "p99", "max")


def draw(results: Results, file: Path) -> None:
    """Write a picture (the suffix of `file` says of which kind)."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    engines = list(dict.fromkeys(record.engine for record in results.turns))
    situations = [Situation.AGAIN, Situation.VALUES, Situation.TOOLS]
    figure, axes = pyplot.subplots(2, len(FORMATS), figsize=(15, 8), sharey="row", squeeze=False)
    for column, format in enumerate(FORMATS):
        known = {
            (engine, situation): results.figures(engine, format, _TOOLS, situation)
            for engine in engines
            for situation in situations
        }
        turns = {
            engine: [_turn(known[engine, situation], situation) for situation in situations]
            for engine in engines
        }
        masks = {engine: _masks(known[engine, Situation.TOOLS]) for engine in engines}
        _bars(axes[0][column], [str(situation) for situation in situations], turns)
        _bars(axes[1][column], list(_PERCENTILES), masks)
        axes[0][column].set_title(format)
    axes[0][0].set_ylabel("whole turn, ms\n(new tools: with the grammar)")
    axes[1][0].set_ylabel("mask with new tools, µs")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=len(engines))
    environment = results.environment
    figure.suptitle(
        f"{environment['cpu']}, one CPU; {_TOOLS} tools, 151,669 tokens; medians of "
        f"{results.turns[0].figures.repeats} repeats"
    )
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def _turn(figures: Figures | None, situation: Situation) -> float:
    if figures is None:
        return float("nan")
    return (figures.built_turn if situation is Situation.TOOLS else figures.turn) * 1e3


def _masks(figures: Figures | None) -> list[float]:
    if figures is None:
        return [float("nan")] * len(_PERCENTILES)
    return [getattr(figures.mask, name) * 1e6 for name in _PERCENTILES]


def _bars(axis: matplotlib.axes.Axes, groups: list[str], values: dict[str, list[float]]) -> None:
    """Groups of bars on a logarithmic scale, one bar an engine, its value written on it."""
    places = np.arange(len(groups))
    width = 0.8 / len(values)
    for index, (name, heights) in enumerate(values.items()):
        bars = axis.bar(places + (index - (len(values) - 1) / 2) * width, heights, width, label=name)
        labels = [f"{height:.0f}" if height >= 100 else f"{height:.2g}" for height in heights]
        axis.bar_label(bars, labels, fontsize=6, padding=1, rotation=45)
    axis.set_xticks(places, groups)
    axis.set_yscale("log")
    axis.margins(y=0.12)
    axis.grid(axis="y", alpha=0.3)
