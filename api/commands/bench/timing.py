"""Timing an engine on one turn, and what many such times come to. The engine may be anybody's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from larksong.api.commands.bench.workload import Request


class Cursor(NamedTuple):
    """One sequence in an engine: the engine's own functions, with nothing around them to be timed too."""

    mask: Callable[[], object]
    advance: Callable[[int], object]
    finished: Callable[[], bool]
    """whether the engine took every token and the turn is over"""
    owner: Any
    """what the functions belong to"""


class Contender(Protocol):
    """An engine in the benchmark."""

    @property
    def name(self) -> str:
        """How tables call it."""

    def compile(self, request: Request) -> Any:
        """The engine's grammar of a request, from its cache if it keeps one and knows the request."""

    def begin(self, grammar: Any) -> Cursor:
        """A new sequence."""


class WholeTurn(NamedTuple):
    """Seconds of a turn without timers in between."""

    build: float
    """from the request to the grammar"""
    reading: float
    """a new sequence, and for every token a mask and an advance"""


class Steps(NamedTuple):
    """Seconds of every step of a turn."""

    build: float
    """from the request to a sequence that can be asked"""
    masks: list[float]
    advances: list[float]
    outputs: list[object]
    """what the advances returned"""


class Refused(Exception):
    """An engine refused a turn of the workload: it cannot be compared."""


def time_turn(contender: Contender, request: Request, ids: Sequence[int]) -> WholeTurn:
    """Read a turn as fast as it goes. Raises Refused."""
    start = perf_counter()
    grammar = contender.compile(request)
    built = perf_counter()
    mask, advance, finished, _ = contender.begin(grammar)
    for token in ids:
        mask()
        advance(token)
    end = perf_counter()
    if not finished():
        raise Refused(f"{contender.name} did not take a turn of {request.format}")
    return WholeTurn(built - start, end - built)


def time_steps(contender: Contender, request: Request, ids: Sequence[int]) -> Steps:
    """Read a turn with a timer around every step. Raises Refused."""
    masks, advances, outputs = [], [], []
    start = perf_counter()
    mask, advance, finished, _ = contender.begin(contender.compile(request))
    build = perf_counter() - start
    for token in ids:
        before = perf_counter()
        mask()
        between = perf_counter()
        output = advance(token)
        after = perf_counter()
        masks.append(between - before)
        advances.append(after - between)
        outputs.append(output)
    if not finished():
        raise Refused(f"{contender.name} did not take a turn of {request.format}")
    return Steps(build, masks, advances, outputs)


@dataclass(frozen=True)
class Spread:
    """Seconds: how the times of many steps lie."""

    p50: float
    p90: float
    p99: float
    max: float
    total: float

    @classmethod
    def of(cls, times: Iterable[float]) -> Spread:
        known = np.fromiter(times, float)
        p50, p90, p99, most = np.percentile(known, [50, 90, 99, 100]).tolist()
        return cls(p50, p90, p99, most, float(known.sum()))

    @classmethod
    def median(cls, spreads: Sequence[Spread]) -> Spread:
        """Each figure's median over repeats."""
        names = ("p50", "p90", "p99", "max", "total")
        return cls(*(median([getattr(spread, name) for spread in spreads]) for name in names))


def median(values: Sequence[float]) -> float:
    return float(np.median(values))


@dataclass(frozen=True)
class Figures:
    """Medians over the repeats; times in seconds."""

    tokens: int
    repeats: int
    build: float
    """from the request to a sequence that can be asked"""
    first_mask: float
    """from the request to the first mask"""
    mask: Spread
    steady_mask: Spread | None
    """each step's median over the repeats, where all of them read the same tokens: without what the machine
    did now and then"""
    advance: Spread
    events: int | None
    """how many parse events the advances gave; None for engines that have none"""
    deltas: Spread | None
    """making deltas from them, for each token"""
    turn: float
    """all masks and advances"""
    built_turn: float
    """the same and before it the grammar"""
    turns: tuple[float, ...]
    """`turn` of every repeat, in order"""


@dataclass
class Samples:
    """The repeats of one case on one engine."""

    wholes: list[WholeTurn] = field(default_factory=list)
    steps: list[Steps] = field(default_factory=list)
    deltas: list[Spread] = field(default_factory=list)

    def figures(self, *, same_turn: bool) -> Figures:
        """What the repeats come to; `same_turn`: all of them have read the same tokens."""
        events = [len(output) for step in self.steps for output in step.outputs if isinstance(output, tuple)]
        return Figures(
            tokens=round(median([len(step.masks) for step in self.steps])),
            repeats=len(self.steps),
            build=median([step.build for step in self.steps]),
            first_mask=median([step.build + step.masks[0] for step in self.steps]),
            mask=Spread.median([Spread.of(step.masks) for step in self.steps]),
            steady_mask=Spread.of(np.median([step.masks for step in self.steps], axis=0))
            if same_turn
            else None,
            advance=Spread.median([Spread.of(step.advances) for step in self.steps]),
            events=round(sum(events) / len(self.steps)) if events else None,
            deltas=Spread.median(self.deltas) if self.deltas else None,
            turn=median([whole.reading for whole in self.wholes]),
            built_turn=median([whole.build + whole.reading for whole in self.wholes]),
            turns=tuple(whole.reading for whole in self.wholes),
        )
