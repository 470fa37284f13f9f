"""Whole turns and their steps: every engine on every case, interleaved repeat by repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from benchmarks import environment
from benchmarks.contender import Engine, check, count_forced
from benchmarks.workload import Workload
from larksong.api.commands.bench.measure import Case, Situation, take
from larksong.api.commands.bench.timing import Figures, Samples, time_turn


@dataclass(frozen=True)
class Record:
    """One engine on one case."""

    engine: str
    case: Case
    figures: Figures


@dataclass(frozen=True)
class Checked:
    """What an engine did with a request beyond the times."""

    engine: str
    format: str
    tools: int
    refused_at: int
    """the token at which the negative turn was refused"""
    forced: int | None
    """tokens of the standard turn that need no forward pass"""
    tokens: int


def warm_up(engines: Sequence[Engine], workload: Workload, all_cases: Sequence[Case]) -> list[Checked]:
    """Check every engine on every request and let it read each standard turn twice. Raises Disagreement."""
    found = []
    for case in all_cases:
        if case.situation is not Situation.AGAIN:
            continue
        request = case.request(0)
        ids = workload.ids(case.format, 0)
        for engine in engines:
            refused = check(engine, workload, request)
            time_turn(engine, request, ids)
            forced = count_forced(engine, engine.compile(request), ids)
            found.append(Checked(engine.name, case.format, case.tools, refused, forced, len(ids)))
    return found


def measure(
    engines: Sequence[Engine],
    workload: Workload,
    all_cases: Sequence[Case],
    repeats: int,
    say: Callable[[str], None],
) -> list[Record]:
    """Every engine on every case. A repeat goes once round all of them, from another engine on each time."""
    samples = {
        (engine.name, case): Samples() for case in all_cases for engine in engines if takes(engine, case)
    }
    environment.settle()
    for repeat in range(repeats):
        say(f"repeat {repeat + 1} of {repeats}")
        for case in all_cases:
            ids = partial(workload.ids, case.format)
            for place in range(len(engines)):
                engine = engines[(place + repeat) % len(engines)]
                if (engine.name, case) in samples:
                    take(samples[engine.name, case], engine, case, 2 * repeat + 1, ids)
    return [
        Record(name, case, taken.figures(same_turn=case.same_turn)) for (name, case), taken in samples.items()
    ]


def takes(engine: Engine, case: Case) -> bool:
    """The second turn of a tool set is like any other for engines that keep nothing of the first."""
    return engine.learns or case.situation is not Situation.SECOND


def as_json(record: Record) -> dict[str, Any]:
    """The record as one flat object; times in seconds."""
    return {"engine": record.engine, **asdict(record.case), **asdict(record.figures)}
