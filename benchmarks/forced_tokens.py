"""`python -m benchmarks.forced_tokens`: what is forced of recorded calls, for two tokenizers and all formats.

The calls are those of `benchmarks.forced_calls` (`LARKSONG_CASES`). Each one is read as a turn of its own in
the tokens that the tokenizer writes, among all tools of its client that the schema compiler takes. What is
forced must be what comes; a wrong offer is counted and stops the benchmark with an error. `saved`: the share
of forward passes that a backend saves that also reads likely tokens along (`Matcher.likely`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

from benchmarks import environment
from benchmarks.forced_calls import cases_folder
from benchmarks.workload import qwen
from larksong.engine.backends.encoding import text_ids
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.model_store import find_model
from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, GrammarsError, Tool, WireFormat, format_names, wire_format

# As a server asks models whose chat template knows no reasoning, such as Qwen3-Coder.
_POLICY = CallPolicy(required=True, reasoning=False)


class Turn(NamedTuple):
    """A recorded call as a turn: a matcher at its beginning, and its tokens with an end token."""

    name: str
    arguments: dict[str, Any]
    start: Matcher
    ids: list[int]


@dataclass
class Figures:
    """Sums over calls; times in seconds, one for each time that `forced()` was asked."""

    calls: int = 0
    tokens: int = 0
    forced: int = 0
    passes: int = 0
    offers: int = 0
    wrong: int = 0
    times: list[float] = field(default_factory=list)


def main() -> None:
    folder = cases_folder()
    if folder is None:
        sys.exit("LARKSONG_CASES must name the folder with client_calls.jsonl and client_tools")
    environment.pin()
    environment.raise_priority()
    table = Table(
        caption="µs for one question at p50 / p90 / p99: the first time, and for the same calls again"
    )
    for name in ("tokenizer", "format"):
        table.add_column(name)
    for name in ("calls", "tokens", "forced", "share", "saved", "offers", "wrong", "first", "again"):
        table.add_column(name, justify="right")
    wrong = 0
    for name, (tokenizer, vocabulary) in tokenizers().items():
        engine = Engine(vocabulary, encode=partial(text_ids, tokenizer, vocabulary))
        engine.warm_up()
        for format_name in format_names():
            read = list(turns(engine, tokenizer, wire_format(format_name), folder))
            first, again = (_read(read) for _ in range(2))
            wrong += first.wrong
            table.add_row(name, format_name, *_row(first), _spread(again.times))
    Console(width=None if Console().is_terminal else 160).print(table)
    if wrong:
        sys.exit(f"{wrong} offers were wrong")


def tokenizers() -> dict[str, tuple[Tokenizer, Vocabulary]]:
    """Qwen's, which joins punctuation and has the markers as tokens, and SmolLM2's, which does neither."""
    workload = qwen()
    smollm2 = ModelFolder.open(find_model())
    vocabulary = Vocabulary.from_tokenizer(workload.tokenizer, eos=[workload.eos], width=workload.width)
    return {"Qwen": (workload.tokenizer, vocabulary), "SmolLM2": (smollm2.tokenizer, smollm2.vocabulary)}


def turns(engine: Engine, tokenizer: Tokenizer, written: WireFormat, folder: Path) -> Iterator[Turn]:
    """The calls that the grammar takes."""
    vocabulary = engine.vocabulary
    for line in (folder / "client_calls.jsonl").read_text().splitlines():
        call = json.loads(line)
        tools = _tools(folder / "client_tools" / f"{call['client']}.json", written, vocabulary)
        if call["name"] not in (tool.name for tool in tools):
            continue
        start = engine.matcher(written.grammar(tools, _POLICY, vocabulary))
        text = written.render_call(call["name"], call["arguments"])
        ids = [*text_ids(tokenizer, vocabulary, text), min(vocabulary.eos_ids)]
        reader = start.fork()
        for token in ids:
            # A generation asks for masks too, and makes with them what forced tokens are found from.
            reader.mask()
            reader.advance(token)
        if reader.finished:
            yield Turn(call["name"], call["arguments"], start, ids)


@cache
def _tools(file: Path, written: WireFormat, vocabulary: Vocabulary) -> tuple[Tool, ...]:
    """The client's tools that the schema compiler takes."""
    known = []
    for function in (tool["function"] for tool in json.loads(file.read_text())):
        tool = Tool(function["name"], "", function.get("parameters", {}))
        try:
            written.grammar((tool,), _POLICY, vocabulary)
        except GrammarsError:
            continue
        known.append(tool)
    return tuple(known)


def _read(turns: Iterable[Turn]) -> Figures:
    """Generate the turns again: forced tokens where there are some, else the next one."""
    figures = Figures()
    for _, _, start, ids in turns:
        figures.passes += _passes(start.fork(), ids, figures)
        figures.calls += 1
        figures.tokens += len(ids)
    return figures


def _passes(matcher: Matcher, ids: Sequence[int], figures: Figures) -> int:
    """Forward passes that generate `ids`: likely tokens are read along, and right as far as they come."""
    at = _forced(matcher, ids, 0, figures)
    passes = 0
    while at < len(ids):
        passes += 1
        begin, drafts = at, matcher.likely()
        while at < len(ids) and tuple(ids[begin:at]) == drafts[: at - begin]:
            matcher.advance(ids[at])
            at = _forced(matcher, ids, at + 1, figures)
    return passes


def _forced(matcher: Matcher, ids: Sequence[int], at: int, figures: Figures) -> int:
    """Advance by what is forced at `at`; returns where that ends."""
    begin = perf_counter()
    forced = matcher.forced()
    figures.times.append(perf_counter() - begin)
    if forced != tuple(ids[at : at + len(forced)]):
        figures.wrong += 1
        forced = ()
    figures.offers += bool(forced)
    figures.forced += len(forced)
    for token in forced:
        matcher.advance(token)
    return at + len(forced)


def _row(figures: Figures) -> list[str]:
    counts = (figures.calls, figures.tokens, figures.forced)
    share = f"{figures.forced / figures.tokens:.1%}"
    saved = f"{1 - figures.passes / figures.tokens:.1%}"
    return [*map(str, counts), share, saved, str(figures.offers), str(figures.wrong), _spread(figures.times)]


def _spread(times: Sequence[float]) -> str:
    return " / ".join(f"{value * 1e6:.1f}" for value in np.percentile(times, [50, 90, 99]))


if __name__ == "__main__":
    main()
