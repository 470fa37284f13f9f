"""`larksong bench`: what the engine costs on a tokenizer of the user's own.

Each format is read in several situations, from the same turn again to tools that were never seen before. A
long-running agent is mostly in the one of new values.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter

from rich import box
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

from larksong.api.commands.bench.timing import (
    Contender,
    Cursor,
    Figures,
    Samples,
    Spread,
    time_steps,
    time_turn,
)
from larksong.api.commands.bench.workload import RESPONSE_FORMAT, Request, request, turn
from larksong.api.commands.end_token import end_token
from larksong.api.turns.emitter import DeltaEmitter
from larksong.engine.backends.encoding import encoded
from larksong.engine.engine import Engine
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.vocabulary import Vocabulary, VocabularyError
from larksong.grammars import CallPolicy, format_names, wire_format
from larksong.grammars.answers.response_format import response_grammar
from larksong.grammars.warming import warm_up

Ids = Sequence[int]
ALL_FORMATS = (*format_names(), RESPONSE_FORMAT)


class Situation(StrEnum):
    """What of a turn was seen before. The values are how tables call them."""

    AGAIN = "same turn"
    VALUES = "new values"
    """tools that many turns have called"""
    SECOND = "second turn"
    """new values, too, but the tools were called in one turn alone"""
    TOOLS = "new tools"


@dataclass(frozen=True)
class Case:
    """One line of the benchmark: a request of some size in a situation."""

    format: str
    tools: int
    """0 for a response schema"""
    situation: Situation

    def request(self, number: int) -> Request:
        """The request of pass `number`, from 1."""
        changed = {Situation.SECOND: _SECOND_TURNS + number, Situation.TOOLS: number}.get(self.situation)
        return request(self.format, self.tools, changed)

    def turn(self, number: int) -> int:
        """Which turn is read in pass `number`."""
        return number if self.situation in (Situation.VALUES, Situation.SECOND) else 0

    @property
    def same_turn(self) -> bool:
        """Whether all passes read the same tokens."""
        return self.turn(1) == self.turn(2)


_SECOND_TURNS = 100_000  # their changed tools are not those of Situation.TOOLS


def cases(formats: Iterable[str], counts: Sequence[int]) -> list[Case]:
    """Every format with every number of tools in every situation."""
    sized = [
        (format, count) for format in formats for count in ((0,) if format == RESPONSE_FORMAT else counts)
    ]
    return [Case(format, count, situation) for (format, count), situation in product(sized, Situation)]


class LarksongBench:
    """The engine as a server starts it: warm, and with the package's own caches of grammars.

    `formats`: those that it is warmed up for, None: all.
    """

    name = "larksong"

    def __init__(
        self, vocabulary: Vocabulary, tokenizer: Tokenizer, formats: Iterable[str] | None = None
    ) -> None:
        self.vocabulary = vocabulary
        self.engine = Engine(vocabulary, encode=partial(encoded, tokenizer))
        warm_up(self.engine, formats)

    def compile(self, request: Request) -> Grammar:
        if request.schema is not None:
            return response_grammar(request.schema, self.vocabulary)
        policy = CallPolicy(required=True)
        return wire_format(request.format).grammar(request.tools, policy, self.vocabulary)

    def begin(self, grammar: Grammar) -> Cursor:
        matcher = self.engine.matcher(grammar)

        def finished() -> bool:
            return matcher.finished and matcher.fault is None

        return Cursor(matcher.mask, matcher.advance, finished, matcher)


def time_deltas(events_of_steps: Iterable[object]) -> Spread:
    """Make the deltas of a turn whose advances gave these events."""
    emitter = DeltaEmitter()
    times = []
    for events in events_of_steps:
        assert isinstance(events, tuple)
        start = perf_counter()
        emitter.feed(events)
        times.append(perf_counter() - start)
    return Spread.of(times)


def take(samples: Samples, contender: Contender, case: Case, number: int, ids: Callable[[int], Ids]) -> None:
    """One repeat: pass `number` as a whole, pass `number + 1` step by step; `ids`: tokens of a turn."""
    turns = [ids(case.turn(number + offset)) for offset in (0, 1)]
    if case.situation is Situation.SECOND:
        for offset in (0, 1):
            time_turn(contender, case.request(number + offset), ids(0))
    gc.collect()
    samples.wholes.append(time_turn(contender, case.request(number), turns[0]))
    gc.collect()
    steps = time_steps(contender, case.request(number + 1), turns[1])
    samples.steps.append(steps)
    if isinstance(steps.outputs[0], tuple) and case.format != RESPONSE_FORMAT:
        samples.deltas.append(time_deltas(steps.outputs))


def run(
    file: Path, eos: str | None, formats: Sequence[str], tools: int, repeats: int, console: Console
) -> None:
    """Measure on the tokenizer.json `file` (or a model's folder with one) and print a table.

    `eos`: the token that ends a turn; without it what tokenizer_config.json says. Raises VocabularyError and
    UnknownFormat.
    """
    file = file / "tokenizer.json" if file.is_dir() else file
    for format in set(formats) - {RESPONSE_FORMAT}:
        wire_format(format)
    if not file.is_file():
        raise VocabularyError(f"there is no tokenizer at {file}")
    start = perf_counter()
    tokenizer = Tokenizer.from_file(str(file))
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[eos or end_token(file)])
    read = perf_counter()
    contender = LarksongBench(vocabulary, tokenizer)
    made = perf_counter()
    seconds = f"read in {read - start:.2f} s, engine ready in {made - read:.2f} s"
    console.print(f"{len(vocabulary.tokens):,} tokens; {seconds}")
    for format in formats:
        table = _table(format, tools)
        for case in cases([format], (tools,)):
            with console.status(f"{format}, {case.situation} …"):
                table.add_row(*_row(case, _measure(contender, case, tokenizer, vocabulary, repeats)))
        console.print(table)
    console.print(_LEGEND)


def _measure(
    contender: LarksongBench, case: Case, tokenizer: Tokenizer, vocabulary: Vocabulary, repeats: int
) -> Figures:
    end = min(vocabulary.eos_ids)

    def ids(number: int) -> list[int]:
        text = turn(number).text(case.format)
        return [*tokenizer.encode(text, add_special_tokens=False).ids, end]

    known = Case(case.format, case.tools, Situation.AGAIN)
    for _ in range(2):
        time_turn(contender, known.request(0), ids(0))
    samples = Samples()
    for number in range(1, 2 * repeats, 2):
        take(samples, contender, case, number, ids)
    return samples.figures(same_turn=case.same_turn)


_LEGEND = (
    "Medians over the repeats. In ms: build, from the request to a sequence that can be asked; first, to its "
    "first mask; deltas; the whole turn (masks and advances, with new tools the build too). In µs: p50, p99 "
    "and the dearest of the masks; the p50 of the advances, which read a token and give its parse events."
)


def _table(format: str, tools: int) -> Table:
    size = "a schema" if format == RESPONSE_FORMAT else f"{tools} tools"
    table = Table(title=f"{format}, {size}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("situation", no_wrap=True)
    for name in ("build", "first", "p50", "p99", "max", "advance", "deltas", "turn"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _row(case: Case, figures: Figures) -> list[str]:
    milli = [figures.build, figures.first_mask]
    micro = [figures.mask.p50, figures.mask.p99, figures.mask.max, figures.advance.p50]
    turn = figures.built_turn if case.situation is Situation.TOOLS else figures.turn
    return [
        case.situation,
        *(f"{value * 1e3:.2f}" for value in milli),
        *(f"{value * 1e6:.1f}" for value in micro),
        f"{figures.deltas.total * 1e3:.2f}" if figures.deltas else "–",
        f"{turn * 1e3:.2f}",
    ]
