"""Grammars that are entered, by their shortest text: before they are built, and once they are.

A tool's grammar is not built to find out how its arguments could be finished: their shortest text is known in
closed form (`Sub.shortest`). Whoever counted on that text must find it when the grammar is built and entered.
So it is read by the grammar then, byte by byte, and becomes the way from every place on it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from larksong.engine.grammar.attributes import Value
from larksong.engine.grammar.terminals import Sub
from larksong.engine.lexing.path import LONGEST, Path, Piece
from larksong.engine.parsing.stack import BoundTerminal, Stack, Thread
from larksong.engine.parsing.tables import END

if TYPE_CHECKING:
    from larksong.engine.parsing.token_automaton import TokenAutomaton

log = logging.getLogger(__name__)

Place = Stack | Thread
"""A place within a grammar: between two terminals, or within one."""


def complete(automaton: TokenAutomaton, bound: BoundTerminal, stack: Stack, outcome: Value) -> Stack | None:
    """The stack after a terminal with this outcome, and after what its text has committed."""
    text = bound.automaton.text
    label = outcome if text is None and bound.label is None else bound.label
    after = automaton.parser.shift(stack, bound.number, label)
    if text is not None and isinstance(outcome, int):
        after = automaton.parser.shift_all(after, text.stops[outcome])
    return after


class ClosedForms:
    """The shortest texts of the grammars that an automaton can enter."""

    def __init__(self, automaton: TokenAutomaton) -> None:
        self._automaton = automaton
        special = {text.encode(): token for text, token in automaton.vocabulary.special.items() if text}
        longest_first = map(re.escape, sorted(special, key=len, reverse=True))
        self._special = special
        self._marker = re.compile(b"|".join(longest_first)) if special else None

    def pieces(self, definition: Sub, value: Value) -> tuple[Piece, ...]:
        """The shortest text of the grammar that is entered for `value`, its markers by their ids."""
        data, at = definition.shortest(value).encode(), 0
        if len(data) > LONGEST:
            return (data,)
        found: list[Piece] = []
        for marker in self._marker.finditer(data) if self._marker is not None else ():
            found += (data[at : marker.start()], self._special[marker[0]])
            at = marker.end()
        found.append(data[at:])
        return tuple(piece for piece in found if piece != b"")

    def way(self, bottom: Stack, definition: Sub, value: Value, path: Path) -> Iterator[tuple[Place, Path]]:
        """The places on the way of that text through the grammar that begins on `bottom`, last one first.

        `path`: the way behind it. Each place comes with the way from there.
        """
        pieces = self.pieces(definition, value)
        if len(pieces) == 1 and isinstance(pieces[0], bytes) and len(pieces[0]) > LONGEST:
            return
        units = tuple(chain.from_iterable(map(_units, pieces)))
        # For each number of units read: the places that are reached, and from where.
        levels: list[dict[Place, tuple[int, Place] | None]] = [{} for _ in range(len(units) + 1)]
        levels[0][bottom] = None
        end: Place | None = None
        for at, level in enumerate(levels):
            todo = list(level)
            for place in todo:
                for reached, size in self._reads(place, units[at:]):
                    if reached is None:
                        end = place if at == len(units) else end
                    elif reached not in levels[at + size]:
                        levels[at + size][reached] = (at, place)
                        if not size:
                            todo.append(reached)
        if end is None:
            log.error("the shortest text of a grammar is not in it: %r", pieces)
            return
        at, here = len(units), end
        while True:
            yield here, path
            origin = levels[at][here]
            if origin is None:
                return
            for unit in reversed(units[origin[0] : at]):
                path = Path(unit, path)
            at, here = origin

    def _reads(self, place: Place, units: tuple[Piece, ...]) -> Iterator[tuple[Place | None, int]]:
        """Where `units` lead, and how many of them; None where the grammar may be over."""
        if isinstance(place, Stack):
            yield from self._begins(place, units)
            return
        automaton, bound, stack = place.bound.automaton, place.bound, place.stack
        unit = units[0] if units else None
        after: Stack | None = None
        if automaton.special:
            if isinstance(unit, int) and unit in automaton.special:
                after = complete(self._automaton, bound, stack, None)
            if after is not None:
                yield after, 1
            return
        state = automaton.row(place.state)[unit[0]] if isinstance(unit, bytes) else -1
        if state >= 0 and not automaton.final(state):
            yield stack.thread(bound, state), 1
        elif state >= 0 or automaton.accepts(place.state):
            # Over with this byte, or before it.
            after = complete(
                self._automaton, bound, stack, automaton.outcome(state if state >= 0 else place.state)
            )
            if after is not None:
                yield after, int(state >= 0)

    def _begins(self, stack: Stack, units: tuple[Piece, ...]) -> Iterator[tuple[Place | None, int]]:
        automaton = self._automaton
        for number in stack.state.actions:
            if number == END:
                if automaton.parser.leave(stack) is not None:
                    yield None, 0
                continue
            definition = stack.compiled.terminals[number].definition
            if isinstance(definition, Sub):
                after = automaton.parser.shift(stack, number)
                inner = tuple(chain.from_iterable(map(_units, self.pieces(definition, stack.value))))
                if after is not None and units[: len(inner)] == inner:
                    yield after, len(inner)
                continue
            for bound, where in automaton.parser.live_terminal(stack, number).terminals:
                yield where.thread(bound, bound.automaton.start), 0


def _units(piece: Piece) -> Iterator[Piece]:
    """A piece byte by byte."""
    if isinstance(piece, int):
        yield piece
    else:
        yield from (bytes((byte,)) for byte in piece)
