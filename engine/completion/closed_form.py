"""Grammars that are entered, by their shortest text: before they are built, and once they are.

A tool's grammar is not built to find out how its arguments could be finished: their shortest text is known in
closed form (`Sub.shortest`). Whoever counted on that text must find it when the grammar is built and entered.
So it is read by the grammar then, byte by byte, and becomes the way from every place on it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain

from larksong.engine.grammar.attributes import Value
from larksong.engine.grammar.grammar import Sub
from larksong.engine.lexing.path import LONGEST, Path, Piece
from larksong.engine.parsing.parser import Parser
from larksong.engine.parsing.stack import Stack, Thread
from larksong.engine.parsing.tables import END

log = logging.getLogger(__name__)

InnerNode = Stack | Thread
"""A place within a grammar: between two terminals, or within one."""


class ClosedForms:
    """The shortest texts of the grammars that a parser can enter.

    `special`: the special tokens by their text.
    """

    def __init__(self, parser: Parser, special: Mapping[str, int]) -> None:
        self._parser = parser
        self._special = special

    @cached_property
    def _marker(self) -> re.Pattern[bytes] | None:
        longest_first = sorted((text.encode() for text in self._special if text), key=len, reverse=True)
        return re.compile(b"|".join(map(re.escape, longest_first))) if longest_first else None

    def pieces(self, definition: Sub, value: Value) -> tuple[Piece, ...]:
        """The shortest text of the grammar that is entered for `value`, its markers by their ids."""
        data, at = definition.shortest(value).encode(), 0
        if len(data) > LONGEST:
            return (data,)
        found: list[Piece] = []
        for marker in self._marker.finditer(data) if self._marker is not None else ():
            found += (data[at : marker.start()], self._special[marker[0].decode()])
            at = marker.end()
        found.append(data[at:])
        return tuple(piece for piece in found if piece != b"")

    def way(
        self, bottom: Stack, definition: Sub, value: Value, path: Path
    ) -> Iterator[tuple[InnerNode, Path]]:
        """The places on the way of that text through the grammar that begins on `bottom`, last one first.

        `path`: the way behind it. Each place comes with the way from there.
        """
        pieces = self.pieces(definition, value)
        if len(pieces) == 1 and isinstance(pieces[0], bytes) and len(pieces[0]) > LONGEST:
            return
        units = tuple(chain.from_iterable(map(_units, pieces)))
        # For each number of units read: the places that are reached, and from where.
        levels: list[dict[InnerNode, tuple[int, InnerNode] | None]] = [{} for _ in range(len(units) + 1)]
        levels[0][bottom] = None
        end: InnerNode | None = None
        for at, level in enumerate(levels):
            todo = list(level)
            for node in todo:
                for reached, size in self._reads(node, units[at:]):
                    if reached is None:
                        end = node if at == len(units) else end
                    elif reached not in levels[at + size]:
                        levels[at + size][reached] = (at, node)
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

    def _reads(self, node: InnerNode, units: tuple[Piece, ...]) -> Iterator[tuple[InnerNode | None, int]]:
        """Where `units` lead, and how many of them; None where the grammar may be over."""
        if isinstance(node, Stack):
            yield from self._begins(node, units)
            return
        automaton, bound, stack = node.bound.automaton, node.bound, node.stack
        unit = units[0] if units else None
        after: Stack | None = None
        if automaton.special:
            if isinstance(unit, int) and unit in automaton.special:
                after = self._parser.complete(stack, bound, None)
            if after is not None:
                yield after, 1
            return
        state = automaton.row(node.state)[unit[0]] if isinstance(unit, bytes) else -1
        if state >= 0 and not automaton.final(state):
            yield stack.thread(bound, state), 1
        elif state >= 0 or automaton.accepts(node.state):
            # Over with this byte, or before it.
            outcome = automaton.outcome(state if state >= 0 else node.state)
            after = self._parser.complete(stack, bound, outcome)
            if after is not None:
                yield after, int(state >= 0)

    def _begins(self, stack: Stack, units: tuple[Piece, ...]) -> Iterator[tuple[InnerNode | None, int]]:
        for number in stack.state.actions:
            if number == END:
                if self._parser.leave(stack) is not None:
                    yield None, 0
                continue
            definition = stack.compiled.terminals[number].definition
            if isinstance(definition, Sub):
                after = self._parser.shift(stack, number)
                inner = tuple(chain.from_iterable(map(_units, self.pieces(definition, stack.value))))
                if after is not None and units[: len(inner)] == inner:
                    yield after, len(inner)
                continue
            for bound, where in self._parser.live_terminal(stack, number).terminals:
                yield where.thread(bound, bound.automaton.start), 0


def _units(piece: Piece) -> Iterator[Piece]:
    """A piece byte by byte."""
    if isinstance(piece, int):
        yield piece
    else:
        yield from (bytes((byte,)) for byte in piece)
