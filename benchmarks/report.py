"""The results as tables, and what was to be reached against what was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.forced_calls import ForcedCalls
from benchmarks.long_string import LongString
from benchmarks.turns import Checked, Record
from benchmarks.workload import FORMATS, SHORT, TOOL_COUNTS
from larksong.api.commands.bench.measure import Situation
from larksong.api.commands.bench.timing import Figures
from larksong.api.commands.bench.workload import RESPONSE_FORMAT

OURS = "larksong"


@dataclass
class Results:
    """All that was measured; parts that were not are empty."""

    environment: dict[str, Any]
    turns: list[Record] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    first_request: list[dict[str, Any]] = field(default_factory=list)
    long_string: list[LongString] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)
    apply: dict[str, Any] = field(default_factory=dict)
    forced_calls: list[ForcedCalls] = field(default_factory=list)

    def figures(self, engine: str, format: str, tools: int, situation: Situation) -> Figures | None:
        for record in self.turns:
            case = record.case
            if (record.engine, case.format, case.situation) == (engine, format, situation) and (
                case.tools == tools or format == RESPONSE_FORMAT
            ):
                return record.figures
        return None

    def peers(self) -> list[str]:
        return [name for name in dict.fromkeys(record.engine for record in self.turns) if name != OURS]


@dataclass(frozen=True)
class Goal:
    """One line of what must be shown."""

    figure: str
    goal: str
    ours: str
    best_peer: str
    met: bool | None
    """None: not measured, or not asked for"""


def goals(results: Results) -> list[Goal]:
    """What the engine is to reach, line by line."""
    return [
        _by_format(
            results, "whole turn, new values, ms", Situation.VALUES, (2, 2, 2), lambda f: f.turn * 1e3
        ),
        _by_format(
            results, "whole turn, new tools, ms", Situation.TOOLS, (11, 15, 7), lambda f: f.built_turn * 1e3
        ),
        *(
            _by_format(
                results,
                f"request to first mask, new tools, {count} tools, ms",
                Situation.TOOLS,
                (limit,) * 3,
                lambda f: f.first_mask * 1e3,
                count,
            )
            for count, limit in zip(TOOL_COUNTS, (3, 6), strict=True)
        ),
        _by_format(
            results, "mask p99, new tools, µs", Situation.TOOLS, (50,) * 3, lambda f: f.mask.p99 * 1e6
        ),
        _by_format(
            results, "mask max, new tools, µs", Situation.TOOLS, (300,) * 3, lambda f: f.mask.max * 1e6
        ),
        _by_format(results, "each step's median: mask p99, µs", Situation.TOOLS, None, _steady("p99")),
        _by_format(results, "each step's median: mask max, µs", Situation.TOOLS, None, _steady("max")),
        *_start_goals(results),
        *_delta_goals(results),
        _memory_goal(results),
        _forced_goal(results),
    ]


def _by_format(
    results: Results,
    figure: str,
    situation: Situation,
    limits: Sequence[float] | None,
    value: Callable[[Figures], float],
    tools: int = 10,
) -> Goal:
    """A figure of the three formats beside each other; the best peer is another one for each if need be.

    `limits`: what is to be reached, or None for a figure that only explains another one.
    """
    ours, peers, met = [], [], []
    for index, format in enumerate(FORMATS):
        figures = results.figures(OURS, format, tools, situation)
        ours.append("–" if figures is None else _short(value(figures)))
        met.append(None if figures is None or limits is None else value(figures) <= limits[index])
        named = [(results.figures(name, format, tools, situation), name) for name in results.peers()]
        known = [(value(theirs), name) for theirs, name in named if theirs is not None]
        best = min(known, default=None)
        peers.append("–" if best is None else f"{_short(best[0])} {best[1]}")
    title = f"{figure}: {' / '.join(SHORT[format] for format in FORMATS)}"
    goal = " / ".join(f"{limit:g}" for limit in limits or ())
    return Goal(title, goal, " / ".join(ours), " / ".join(peers), None if None in met else all(met))


def _steady(name: str) -> Callable[[Figures], float]:
    def value(figures: Figures) -> float:
        assert figures.steady_mask is not None
        return float(getattr(figures.steady_mask, name)) * 1e6

    return value


def _start_goals(results: Results) -> Iterable[Goal]:
    for cache, limit in (("warm", 1.5), ("empty", 3.0)):
        ours = [run["first_mask"] for run in results.first_request if run["cache"] == cache]
        theirs = [
            (run["first_mask"], run["engine"]) for run in results.first_request if run["cache"] == "none"
        ]
        yield Goal(
            f"process start to first mask, {cache} disk cache, s",
            f"{limit:g}",
            _short(max(ours)) if ours else "–",
            f"{_short(min(theirs)[0])} {min(theirs)[1]}" if theirs else "–",
            max(ours) <= limit if ours else None,
        )


def _delta_goals(results: Results) -> Iterable[Goal]:
    dearest = max((long.early_delta for long in results.long_string), default=None)
    growth = max((long.growth for long in results.long_string), default=None)
    yield Goal(
        "delta making a token, µs",
        "3",
        "–" if dearest is None else _short(dearest * 1e6),
        "",
        None if dearest is None else dearest <= 3e-6,
    )
    yield Goal(
        "its growth from the 100th to the 30,000th token of one string",
        "none",
        "–" if growth is None else f"x {growth:.2f}",
        "",
        None if growth is None else growth <= _NOISE,
    )


def _memory_goal(results: Results) -> Goal:
    ours = [run["beyond"] / 1e6 for run in results.memory if run["engine"] == OURS]
    theirs = [(run["beyond"] / 1e6, run["engine"]) for run in results.memory if run["engine"] != OURS]
    return Goal(
        "1,000 live sequences over 50 tool sets, MB",
        "300",
        " / ".join(_short(value) for value in ours) or "–",
        f"{_short(min(theirs)[0])} {min(theirs)[1]}" if theirs else "–",
        max(ours) <= 300 if ours else None,
    )


def _forced_goal(results: Results) -> Goal:
    ours = next((found for found in results.forced_calls if found.engine == OURS), None)
    theirs = [(found.share, found) for found in results.forced_calls if found.engine != OURS]
    best = max(theirs, key=lambda known: known[0], default=None)

    def text(found: ForcedCalls) -> str:
        return f"{found.share:.0%} of {found.tokens} tokens ({found.read} of {found.calls} calls)"

    return Goal(
        "forward passes saved on the recorded calls",
        "35 %",
        "–" if ours is None else text(ours),
        "–" if best is None else f"{text(best[1])} {best[1].engine}",
        None if ours is None else ours.share >= 0.35,
    )


_NOISE = 1.1  # what two runs of the same thing differ by


def _short(value: float) -> str:
    """Three digits, no exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def show(results: Results, console: Console) -> None:
    """Print everything as tables."""
    for situation in Situation:
        if rows := [record for record in results.turns if record.case.situation is situation]:
            console.print(_turn_table(situation, rows, results.checked))
    if results.first_request:
        console.print(_first_request_table(results))
    if results.apply:
        console.print(_apply_table(results))
    console.print(_goal_table(goals(results)))


def _turn_table(situation: Situation, rows: Sequence[Record], checked: Sequence[Checked]) -> Table:
    table = _table(
        f"{situation}: medians; masks and advances in µs, the rest in ms",
        ("format", "tools", "engine"),
        *("tokens", "build", "first mask", "mask p50", "p90", "p99", "max", "advance p50", "p99"),
        *("events", "deltas", "turn", "forced"),
    )
    last = None
    for record in sorted(rows, key=lambda row: (FORMATS.index(row.case.format), row.case.tools)):
        figures, place = record.figures, (record.case.format, record.case.tools)
        if last not in (None, place):
            table.add_section()
        last = place
        mask, advance = figures.mask, figures.advance
        turn = figures.built_turn if situation is Situation.TOOLS else figures.turn
        forced = next(
            (
                found
                for found in checked
                if (found.engine, found.format, found.tools) == (record.engine, *place)
            ),
            None,
        )
        table.add_row(
            SHORT[record.case.format],
            str(record.case.tools or "–"),
            record.engine,
            str(figures.tokens),
            f"{figures.build * 1e3:.2f}",
            f"{figures.first_mask * 1e3:.2f}",
            *(f"{value * 1e6:.1f}" for value in (mask.p50, mask.p90, mask.p99, mask.max)),
            *(f"{value * 1e6:.1f}" for value in (advance.p50, advance.p99)),
            "–" if figures.events is None else str(figures.events),
            "–" if figures.deltas is None else f"{figures.deltas.total * 1e3:.2f}",
            f"{turn * 1e3:.2f}",
            "–" if forced is None or forced.forced is None else str(forced.forced),
        )
    return table


def _first_request_table(results: Results) -> Table:
    table = _table(
        "first request of a process: seconds since its start; memory in MB",
        ("engine", "disk cache", "format"),
        *(
            "imported",
            "engine ready",
            "first mask",
            "first turn, ms",
            "engine, MB",
            "request, MB",
            "process, MB",
        ),
    )
    for run in results.first_request:
        table.add_row(
            *(run[key] for key in ("engine", "cache", "format")),
            *(f"{run[key]:.2f}" for key in ("imported", "ready", "first_mask")),
            f"{run['turn'] * 1e3:.1f}",
            f"{(run['rss_ready'] - run['rss_imported']) / 1e6:.0f}",
            f"{(run['rss_turn'] - run['rss_ready']) / 1e6:.1f}",
            f"{run['rss_turn'] / 1e6:.0f}",
        )
    table.caption = "the peers' clock starts after the benchmark's own imports, larksong's with the process"
    return table


def _apply_table(results: Results) -> Table:
    single, turn = results.apply["single"], results.apply["turn"]
    kinds = [*single, *(f"turn, {SHORT[format]} (ms)" for format in turn)]
    table = _table("applying a mask to the logits: µs", ("method",), *kinds)
    for method in next(iter(single.values())):
        values = [f"{times[method] * 1e6:.0f}" for times in single.values()]
        values += [f"{times[method] * 1e3:.1f}" for times in turn.values()]
        table.add_row(method, *values)
    return table


def _goal_table(lines: Iterable[Goal]) -> Table:
    table = Table(title="what must be shown")
    for name in ("figure", "goal", "larksong", "best peer"):
        table.add_column(name)
    table.add_column("met", justify="center")
    words = {True: "[green]yes[/]", False: "[red]no[/]", None: "not measured"}
    for line in lines:
        met = words[line.met] if line.goal else ""
        table.add_row(line.figure, line.goal, line.ours, line.best_peer, met)
    return table


def _table(title: str, texts: Sequence[str], *numbers: str) -> Table:
    table = Table(title=title)
    for name in texts:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right")
    return table
