"""A terminal's automaton on a vocabulary: which tokens stay inside it, and where the others leave it.

A `Walk` is what a mask needs to know of one terminal in one state: the tokens that end inside it, and the
merged positions from which the rest of a token belongs to whatever follows. Walks depend on the terminal's
definition and the vocabulary alone, so all requests share them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.dfa import DEAD, DFA, Counted, Except, Row, Words, is_final
from larksong.engine.near import Lengths, json_lengths, without_words
from larksong.engine.terminals import Choice, Readable, Special, TextUntil
from larksong.engine.text import MatchedText, StopText
from larksong.engine.trie import Piece, Position, Trie, clear, union


_UNBOUNDED = 1 << 40


class Walk(NamedTuple):
    """`inside`: tokens that end within the terminal. `crossings`: (outcome, position) of its ends."""

    inside: Piece
    crossings: tuple[tuple[Hashable, Position], ...]


class Lexeme:
    """The lazy DFA of a definition, with its walks over one vocabulary's trie."""

    def __init__(
        self,
        definition: Readable,
        trie: Trie,
        plain_text: Lexeme | None = None,
        unbounded: Lexeme | None = None,
    ) -> None:
        self.definition = definition
        self.special: frozenset[int] = definition.ids if isinstance(definition, Special) else frozenset()
        self.special_piece = Piece(sorted(self.special), None)
        self.dfa: DFA = Words([]) if isinstance(definition, Special) else definition.dfa()
        self.start = self.dfa.start
        self.words = self.dfa if isinstance(self.dfa, Words) else None
        self.text: StopText | None = None
        if isinstance(definition, TextUntil):
            base = self.dfa.dfa if isinstance(self.dfa, Counted | MatchedText) else self.dfa
            assert isinstance(base, StopText)
            self.text = base
        # Literals and finite sets are followed along the trie, everything else is walked level by level.
        self.narrow = self.words is not None and self.words.prefix_free
        self.labelled = isinstance(definition, Choice)
        self._trie = trie
        self._plain_text = plain_text
        self._unbounded = unbounded
        self._lengths: dict[tuple[int, Position], Lengths] = {}
        self._walks: dict[tuple[int, Position], Walk] = {}
        self._final: dict[int, bool] = {}
        self._table: NDArray[np.int32] = np.full((16, 256), DEAD - 1, np.int32)

    def row(self, state: int) -> Row:
        return self.dfa.row(state)

    def accepts(self, state: int) -> bool:
        return self.dfa.accepts(state)

    def final(self, state: int) -> bool:
        """Complete without a look at the next byte."""
        known = self._final.get(state)
        if known is None:
            known = self._final[state] = is_final(self.dfa, state)
        return known

    def outcome(self, state: int) -> Hashable:
        """What the terminal turned out to be: a choice's label, a text's stop (its index), else None."""
        if self.labelled and self.words is not None:
            return self.words.labels[state]
        if self.text is not None:
            return self.text.stop.get(self._text_node(state))
        return None

    def held(self, state: int) -> bytes:
        """The bytes of a text that are held back in `state`, since they may be the start of a stop."""
        if self.text is None:
            return b""
        node = self._text_node(state)
        return self.text.held[node] if node < self.text.nodes else b""

    def released(self, state: int, data: bytes, following: int) -> bytes:
        """The bytes of a text that `data`, read in `state` and leading to `following`, has made certain."""
        if self.text is None:
            return data
        known = self.held(state) + data
        return known[: len(known) - len(self.held(following))]

    def _text_node(self, state: int) -> int:
        return self.dfa.base(state) if isinstance(self.dfa, Counted | MatchedText) else state

    def walk(self, state: int, position: Position) -> Walk:
        """The walk from `state` over the tokens of `position`."""
        key = (state, position)
        walk = self._walks.get(key)
        if walk is None:
            if isinstance(self.dfa, Counted):
                if self._unbounded is not None and self.dfa.is_far(state, self._trie.longest):
                    walk = self._unbounded.walk(self.dfa.base(state), position)
                elif self._unbounded is not None and self.text is None:
                    walk = self._walk_counted(self.dfa, self._unbounded, state, position)
                else:
                    walk = self._walk(state, position)
            elif isinstance(self.dfa, Except) and self._unbounded is not None:
                walk = self._walk_except(self.dfa, self._unbounded, state, position)
            elif self.narrow and self.words is not None:
                walk = self._walk_words(self.words, state, position)
            elif self.text is self.dfa and self._plain_text is not None and self._markers_are_split():
                assert self.text is not None
                walk = self._walk_text(self.text, state, position)
            else:
                walk = self._walk(state, position)
            walk = self._walks.setdefault(key, walk)
        return walk

    def _walk(self, state: int, position: Position) -> Walk:
        """All tokens at once, one trie level after the other."""
        trie, nodes = self._trie, position.nodes
        inside: list[NDArray[np.int64]] = []
        left: dict[Hashable, tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]] = {}

        def leave(at: int, onward: NDArray[np.int64], ended: NDArray[np.int64]) -> None:
            if len(onward) or len(ended):
                group = left.setdefault(self.outcome(at), ([], []))
                group[0].append(onward)
                group[1].append(ended)

        none = np.zeros(0, np.int64)
        states: NDArray[np.int32] = np.full(len(nodes), state, np.int32)
        while len(nodes):
            following = self._rows(states)[states, trie.byte[nodes]]
            dead = following < 0
            for at in np.unique(states[dead]).tolist():
                if self.accepts(at):
                    leave(at, nodes[dead & (states == at)], none)
            nodes, following = nodes[~dead], following[~dead]
            for at in np.unique(following).tolist():
                if self.final(at):
                    here = following == at
                    leave(at, trie.children(nodes[here])[0], trie.tokens(nodes[here])[0])
                    nodes, following = nodes[~here], following[~here]
            inside.append(trie.tokens(nodes)[0])
            nodes, owner = trie.children(nodes)
            states = following[owner]
        crossings = tuple(
            (outcome, Position(trie, np.concatenate(onward), np.concatenate(ended)))
            for outcome, (onward, ended) in left.items()
        )
        return Walk(Piece.of(np.concatenate(inside) if inside else none, trie.words), crossings)

    def _walk_counted(self, dfa: Counted, plain: Lexeme, state: int, position: Position) -> Walk:
        """A JSON string near a bound of its length: of the plain string's walk what keeps to the bounds."""
        base, count = dfa.base(state), dfa.count(state)
        walk = plain.walk(base, position)
        key = (base, position)
        lengths = plain._lengths.get(key)
        if lengths is None:
            made = json_lengths(plain._rows, self._trie, base, position)
            lengths = plain._lengths.setdefault(key, made)
        least = dfa.minimum - count
        most = _UNBOUNDED if dfa.maximum is None else dfa.maximum - count
        inside, fits = walk.inside, lengths.inside_counts <= most
        if not fits.all():
            inside = Piece.of(lengths.inside[fits], self._trie.words)
        nodes = (least <= lengths.onward_counts) & (lengths.onward_counts <= most)
        tokens = (least <= lengths.ended_counts) & (lengths.ended_counts <= most)
        if nodes.all() and tokens.all():
            return Walk(inside, walk.crossings)
        crossed = Position(self._trie, lengths.onward[nodes], lengths.ended[tokens])
        left = len(crossed.nodes) or len(crossed.ids)
        return Walk(inside, ((None, crossed),) if left else ())

    def _walk_except(self, dfa: Except, plain: Lexeme, state: int, position: Position) -> Walk:
        """The plain text's walk without the ends of the words that are excluded."""
        walk = plain.walk(dfa.base(state), position)
        node = dfa.node(state)
        if node == DEAD:
            return walk
        crossings = []
        for outcome, crossed in walk.crossings:
            kept = without_words(dfa.words, node, position, crossed)
            if len(kept.nodes) or len(kept.ids):
                crossings.append((outcome, kept))
        return Walk(walk.inside, tuple(crossings))

    def _walk_words(self, words: Words, state: int, position: Position) -> Walk:
        inside: list[Piece] = []
        crossings: list[tuple[Hashable, Position]] = []
        todo = [(state, position)]
        for node, at in todo:
            for byte, following in words.edges[node].items():
                child = at.child(byte)
                if child is None:
                    continue
                if following in words.labels:
                    crossings.append((words.labels[following], child))
                    continue
                inside.append(child.piece)
                if len(child.nodes):
                    todo.append((following, child))
        if any(piece.words is not None for piece in inside):
            return Walk(Piece([], union(inside, self._trie.words)), tuple(crossings))
        return Walk(Piece([i for piece in inside for i in piece.ids], None), tuple(crossings))

    def _rows(self, states: NDArray[np.int64]) -> NDArray[np.int32]:
        """The transition table, complete for `states`."""
        table: NDArray[np.int32] = self._table
        for state in np.unique(states).tolist():
            while state >= len(table):
                table = np.vstack([table, np.full_like(table, DEAD - 1)])
            if table[state, 0] == DEAD - 1:
                table[state] = self.row(state)
        self._table = table
        return table

    def _markers_are_split(self) -> bool:
        """Whether no token contains a whole stop beyond its first byte (a condition of `_walk_text`)."""
        assert self.text is not None
        for index, stop in enumerate(self.text.stops):
            size = stop.refused_from if index in self.text.refused and stop.refused_from else len(stop.marker)
            if self._trie.inside_a_token(stop.marker[:size]):
                return False
        return True

    def _walk_text(self, text: StopText, state: int, position: Position) -> Walk:
        """Plain text's walk, shared by all texts, less the tokens that run into a stop."""
        assert self._plain_text is not None
        plain = self._plain_text.walk(text.text_state(state), position)
        reached: dict[bytes, tuple[int, Position]] = {}

        def follow(node: int, at: Position, path: bytes) -> None:
            for byte, child in text.edges[node].items():
                following = at.child(byte)
                if following is None:
                    continue
                if child in text.refused or child in text.stop:
                    reached.setdefault(path + bytes([byte]), (child, following))
                else:
                    follow(child, following, path + bytes([byte]))

        if state < text.nodes:
            for node in [*text.chain(state), 0]:
                follow(node, position, b"")
        if not reached:
            return plain
        words = plain.inside.words
        words = np.zeros(self._trie.words, np.uint32) if words is None else words.copy()
        for token in plain.inside.ids:
            words[token >> 5] |= np.uint32(1 << (token & 31))
        crossings: list[tuple[Hashable, Position]] = []
        for path, (node, at) in reached.items():
            if any(path != shorter and path.startswith(shorter) for shorter in reached):
                continue  # the token met another stop before
            clear(words, at.below)
            if node not in text.refused:
                crossings.append((text.stop[node], at))
        return Walk(Piece([], words), tuple(crossings))
