"""What the benchmark asks of an engine beyond timing it, and whether the engines agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.workload import Workload
from larksong.api.commands.bench.timing import Contender, Cursor
from larksong.api.commands.bench.workload import Request
from larksong.engine.packed import allows

Words = NDArray[np.int32]
Forced = Callable[[], Sequence[int]]


class Engine(Contender, Protocol):
    """An engine that can be checked and compared."""

    learns: bool
    """whether a sequence leaves something behind that makes later ones faster"""

    def __hash__(self) -> int:
        """By identity."""

    def version(self) -> str:
        """The release that is measured."""

    def packed(self, cursor: Cursor) -> Words:
        """The mask that was just asked for: packed int32 words, valid until the next one."""

    def forced(self, cursor: Cursor) -> Forced | None:
        """Gives the tokens that may be fed without asking the model; None where there is no such thing."""


class Disagreement(Exception):
    """An engine takes what it must refuse, refuses what it must take, or masks what it takes."""


def check(engine: Engine, workload: Workload, request: Request) -> int:
    """Read the standard turn and the negative; returns the token at which the negative was refused.

    Raises Disagreement.
    """
    ids = workload.ids(request.format, 0)
    taken = _accepted(engine, request, ids)
    if taken < len(ids):
        around = workload.tokenizer.decode(
            list(ids[max(0, taken - 8) : taken + 1]), skip_special_tokens=False
        )
        raise Disagreement(f"{engine.name} refuses {request.format} at token {taken}: {around!r}")
    wrong = workload.negative(request.format)
    refused = _accepted(engine, request, wrong)
    if refused >= len(wrong) - 1:  # the last one only ends the sequence
        raise Disagreement(f"{engine.name} takes the negative turn of {request.format}")
    return refused


def _accepted(engine: Engine, request: Request, ids: Sequence[int]) -> int:
    """How many of the tokens the masks allow and the engine takes."""
    cursor = engine.begin(engine.compile(request))
    for index, token in enumerate(ids):
        cursor.mask()
        words = engine.packed(cursor)
        if not allows(words, token):
            return index
        if cursor.advance(token) is False:
            return index
    return len(ids) if cursor.finished() else len(ids) - 1


def count_forced(engine: Engine, grammar: Any, ids: Sequence[int]) -> int | None:
    """Tokens of the turn that the engine forces just as the turn has them: forward passes saved."""
    cursor = engine.begin(grammar)
    forced = engine.forced(cursor)
    if forced is None:
        return None
    saved = index = 0
    while index < len(ids):
        offered = list(forced())
        if offered and offered == list(ids[index : index + len(offered)]):
            saved += len(offered)
        else:
            offered = [ids[index]]
        for token in offered:
            cursor.advance(token)
        index += len(offered)
    return saved
