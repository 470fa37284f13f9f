"""Masks: the tokens that a configuration allows, composed of walks and what follows behind their ends."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from larksong.engine.attributes import Value
from larksong.engine.edges import Edges
from larksong.engine.parser import Parser
from larksong.engine.stack import Configuration, Fill, Scope, Stack, Thread
from larksong.engine.tables import State
from larksong.engine.trie import Piece, Position, Trie, union

log = logging.getLogger(__name__)


class Masks:
    """Makes the masks of one automaton and keeps them: the same object for the same set of tokens.

    `end`: the tokens that end a sequence. `title`: the grammar's, for the log.
    """

    def __init__(self, parser: Parser, edges: Edges, trie: Trie, end: Piece, title: str) -> None:
        self._parser = parser
        self._edges = edges
        self._trie = trie
        self._title = title
        self._known: dict[frozenset[Piece], NDArray[np.int32]] = {}
        self._distinct: dict[bytes, NDArray[np.int32]] = {}
        """by their own words, which they share"""
        self.end = self.union([end])

    def size(self) -> int:
        """The bytes that the masks take."""
        return len(self._distinct) * self._trie.words * 4

    def of(self, configuration: Configuration) -> NDArray[np.int32]:
        """The tokens that may follow: packed words, read-only, the same object for the same set."""
        mask = configuration.mask
        if mask is None:
            mask = self.end
            if not configuration.end:
                pieces: list[Piece] = []
                self._fill(configuration.threads, self._trie.root, pieces)
                if pieces:
                    mask = self.union(pieces)
                else:
                    log.error("dead end in the grammar %r: the sequence ends", self._title)
            configuration.mask = mask
        return mask

    def union(self, pieces: Sequence[Piece]) -> NDArray[np.int32]:
        """The mask of several sets of tokens."""
        # The same pieces make the same mask: most masks are found without making their words again.
        key = frozenset(pieces)
        mask = self._known.get(key)
        if mask is None:
            words = union(key, self._trie.words).tobytes()
            mask = self._distinct.setdefault(words, np.frombuffer(words, "<i4"))
            mask = self._known.setdefault(key, mask)
        return mask

    def _fill(self, threads: Iterable[Thread], position: Position, pieces: list[Piece]) -> None:
        """Collect the tokens of `position` that the threads can read."""
        at_root = position is self._trie.root
        for thread in threads:
            lexeme = thread.bound.lexeme
            if lexeme.special:
                if at_root:
                    pieces.append(lexeme.special_piece)
                continue
            walk = lexeme.walk(thread.state, position)
            if walk.inside.some:
                pieces.append(walk.inside)
            for outcome, crossed in walk.crossings:
                pieces += self._after(thread, outcome, crossed)
            if at_root and not lexeme.narrow and lexeme.accepts(thread.state):
                pieces += self._specials(thread)

    def _specials(self, thread: Thread) -> list[Piece]:
        """Special tokens that may come where the terminal of `thread` may end."""
        stack, _ = self._edges.complete(thread, thread.state, ())
        found: list[Piece] = []
        for begun, _ in self._edges.fresh(stack) if stack is not None else ():
            lexeme = begun.bound.lexeme
            if lexeme.special:
                found.append(lexeme.special_piece)
            elif not lexeme.narrow and lexeme.accepts(begun.state):
                found += self._specials(begun)
        return found

    def _after(self, thread: Thread, outcome: Value, position: Position) -> list[Piece]:
        """What may follow the terminal of `thread`, which is complete at `position`."""
        if not len(position.nodes):
            return [position.piece] if position.piece.some else []
        bound = thread.bound
        text = bound.lexeme.text
        label = bound.label if bound.label is not None or text is not None else outcome
        scope = thread.stack.scope
        following = thread.stack.state.actions.get(bound.number)
        if text is None and isinstance(following, State) and scope.is_plain(following):
            fill = self._plain_fill(scope, following, position)
            if not fill.tails:
                return fill.pieces
        stack = self._parser.shift(thread.stack, bound.number, label)
        if text is not None and isinstance(outcome, int):
            stack = self._parser.shift_all(stack, text.stops[outcome])
        return self._fill_stack(stack, position) if stack is not None else []

    def _fill_stack(self, stack: Stack, position: Position) -> list[Piece]:
        """The tokens of `position` that can be read from `stack` on."""
        known = stack.fills.get(position)
        if known is None:
            if stack.scope.is_plain(stack.state):
                fill = self._plain_fill(stack.scope, stack.state, position)
                known = list(fill.pieces)
                for path, behind in fill.tails:
                    reached: Stack | None = stack
                    for number, label in path:
                        reached = self._parser.shift(reached, number, label) if reached is not None else None
                    known += self._fill_stack(reached, behind) if reached is not None else []
            else:
                known = [position.piece]
                self._fill([begun for begun, _ in self._edges.fresh(stack)], position, known)
            known = stack.fills.setdefault(position, [piece for piece in known if piece.some])
        return known

    def _plain_fill(self, scope: Scope, state: State, position: Position) -> Fill:
        """What `_fill_stack` finds for every stack in a plain state: after a name mostly all of it."""
        known = scope.fills.get((state, position))
        if known is None:
            pieces = [position.piece]
            tails: list[tuple[tuple[tuple[int, Value], ...], Position]] = []
            for number, following in state.actions.items():
                (bound,) = self._parser.bind(scope, number, scope.terminals[number])
                walk = bound.lexeme.walk(bound.lexeme.start, position)
                pieces.append(walk.inside)
                for outcome, crossed in walk.crossings:
                    if not len(crossed.nodes):
                        pieces.append(crossed.piece)
                    elif isinstance(following, State) and scope.is_plain(following):
                        further = self._plain_fill(scope, following, crossed)
                        pieces += further.pieces
                        tails += [(((number, outcome), *path), behind) for path, behind in further.tails]
                    else:
                        tails.append((((number, outcome),), crossed))
            known = Fill([piece for piece in pieces if piece.some], tails)
            scope.fills[state, position] = known
        return known
