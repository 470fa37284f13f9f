"""`python -m benchmarks.budget`: what it costs to know the shortest end everywhere, and to keep to it.

The workload's turns (see `larksong.api.commands.bench.workload`) among tools that were never seen
before, Qwen's vocabulary. At each token: the mask, what the filter adds while the limit is far away, the
shortest way to the end, and the mask with just enough tokens left. CPU time of the thread, in milliseconds.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import thread_time
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.workload import TOOL_COUNTS, Workload, qwen
from larksong.api.commands.bench.workload import request
from larksong.engine.engine import Engine
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, format_names, wire_format

T = TypeVar("T")

_FAR = 1 << 30
_REPEATS = 5
_POLICY = CallPolicy(required=True, min_calls=1)


@dataclass
class Figures:
    """Of all repeats: times in seconds by what was timed, tokens by what they count."""

    start: list[float] = field(default_factory=list)
    masks: list[float] = field(default_factory=list)
    far: list[float] = field(default_factory=list)
    ways: list[float] = field(default_factory=list)
    near: list[float] = field(default_factory=list)
    needed: list[int] = field(default_factory=list)
    rises: list[int] = field(default_factory=list)


def main() -> None:
    workload = qwen()
    vocabulary = Vocabulary.from_tokenizer(workload.tokenizer, eos=[workload.eos], width=workload.width)
    engine = Engine(vocabulary)
    engine.warm_up()
    gc.disable()  # its pauses would pass for the longest steps
    table = Table(caption="ms at p50 / p99 / max; tokens at p50 / max")
    for name in ("format", "tools"):
        table.add_column(name)
    for name in (
        "needed at the start",
        "mask",
        "filter, far",
        "shortest way",
        "filter, near",
        "needed",
        "rise",
    ):
        table.add_column(name, justify="right")
    for format in format_names():
        for count in TOOL_COUNTS:
            figures = Figures()
            for number in range(_REPEATS + 1):
                measured = _measure(engine, workload, format, count, number + 1)
                if number:  # the first turn of a format makes what all later ones share
                    for name, values in vars(measured).items():
                        getattr(figures, name).extend(values)
            table.add_row(format, str(count), *_row(figures))
    Console(width=None if Console().is_terminal else 170).print(table)


def _measure(engine: Engine, workload: Workload, format: str, count: int, number: int) -> Figures:
    gc.collect()
    figures = Figures()
    tools = request(format, count, number).tools
    matcher = engine.matcher(wire_format(format).grammar(tools, _POLICY, engine.vocabulary))
    figures.start.append(_timed(matcher.needed)[0])
    for token in workload.ids(format, number):
        figures.masks.append(_timed(matcher.mask)[0])
        figures.far.append(_timed(lambda: matcher.mask_within(_FAR))[0])
        time, needed = _timed(matcher.needed)
        figures.ways.append(time)
        figures.needed.append(needed)
        figures.near.append(_timed(lambda left=needed: matcher.mask_within(left))[0])  # type: ignore[misc]
        matcher.advance(token)
    figures.rises += [
        after - before for before, after in zip(figures.needed, figures.needed[1:], strict=False)
    ]
    return figures


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    began = thread_time()
    result = call()
    return thread_time() - began, result


def _row(figures: Figures) -> Iterable[str]:
    yield f"{np.median(figures.needed[0]):.0f} in {1e3 * float(np.median(figures.start)):.1f}"
    for times in (figures.masks, figures.far, figures.ways, figures.near):
        p50, p99, most = (1e3 * float(np.percentile(times, at)) for at in (50, 99, 100))
        yield f"{p50:.3f} / {p99:.2f} / {most:.1f}"
    yield f"{np.median(figures.needed):.0f} / {max(figures.needed)}"
    yield str(max(figures.rises))


if __name__ == "__main__":
    main()
