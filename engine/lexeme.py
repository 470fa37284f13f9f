"""A terminal's automaton on a vocabulary: which tokens stay inside it, and where the others leave it.

A `Walk` is what a mask needs to know of one terminal in one state: the tokens that end inside it, and the
merged positions from which the rest of a token belongs to whatever follows. Walks depend on the terminal's
definition and the vocabulary alone, so all requests share them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from larksong.engine.dfa import DFA, Counted, Words, is_final
from larksong.engine.sweep import Exit, Sweeper, groups
from larksong.engine.terminals import Choice, Readable, Special, TextUntil
from larksong.engine.text import StopText
from larksong.engine.trie import Piece, Position, Trie, clear, union


class Walk(NamedTuple):
    """`inside`: tokens that end within the terminal. `crossings`: (outcome, position) of its ends."""

    inside: Piece
    crossings: tuple[tuple[Hashable, Position], ...]


class Profile(NamedTuple):
    """A walk taken apart by number of characters: `inside` as (end state, characters, tokens), and the exits.

    `walks`: what was put together again for some bounds, by the parts that they allow.
    """

    inside: list[tuple[int, int, Piece]]
    exits: list[Exit]
    walks: dict[tuple[tuple[int, ...], tuple[int, ...]], Walk]


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
        self.row = self.dfa.row
        self.accepts = self.dfa.accepts
        self.words = self.dfa if isinstance(self.dfa, Words) else None
        self.text: StopText | None = None
        if isinstance(definition, TextUntil):
            base = self.dfa.dfa if isinstance(self.dfa, Counted) else self.dfa
            assert isinstance(base, StopText)
            self.text = base
        # Literals and finite sets are followed along the trie, everything else is walked level by level.
        self.narrow = self.words is not None and self.words.prefix_free
        self.labelled = isinstance(definition, Choice)
        self._trie = trie
        self._plain_text = plain_text
        self._unbounded = unbounded
        self._walks: dict[tuple[int, Position], Walk] = {}
        self._final: dict[int, bool] = {}
        self._inside: dict[tuple[int, bytes], tuple[int, bytes] | None] = {}
        self._sweeper = Sweeper(self.dfa)
        self._counting: Sweeper | None = None
        self._profiles: dict[tuple[int, Position], Profile] = {}

    def final(self, state: int) -> bool:
        """Complete without a look at the next byte."""
        known = self._final.get(state)
        if known is None:
            known = self._final[state] = is_final(self.dfa, state)
        return known

    def outcome(self, state: int) -> Hashable:
        """What the terminal turned out to be: a choice's label, a text's stop (its index), else None."""
        return self._outcome_of(self._text_node(state))

    def _outcome_of(self, state: int) -> Hashable:
        if self.labelled and self.words is not None:
            return self.words.labels[state]
        return self.text.stop.get(state) if self.text is not None else None

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
        return self.dfa.pair(state)[0] if isinstance(self.dfa, Counted) else state

    def inside(self, state: int, data: bytes) -> tuple[int, bytes] | None:
        """Where `data` leads when all of it stays inside the terminal, and what it releases; else None.

        Kept, since texts repeat their tokens: most tokens of a long value are found here.
        """
        key = (state, data)
        try:
            return self._inside[key]
        except KeyError:
            found: tuple[int, bytes] | None = None
            following = state
            for byte in data:
                following = self.row(following)[byte]
                if following < 0 or self.final(following):
                    break
            else:
                found = (following, self.released(state, data, following))
            return self._inside.setdefault(key, found)

    def walk(self, state: int, position: Position) -> Walk:
        """The walk from `state` over the tokens of `position`."""
        key = (state, position)
        walk = self._walks.get(key)
        if walk is None:
            if isinstance(self.dfa, Counted) and self._unbounded is not None:
                if self.dfa.is_far(state, self._trie.longest):
                    walk = self._unbounded.walk(self.dfa.pair(state)[0], position)
                else:
                    walk = self._walk_counted(self.dfa, self._unbounded, state, position)
            elif self.narrow and self.words is not None:
                walk = self._walk_words(self.words, state, position)
            elif self.text is not None and self._plain_text is not None and self._markers_are_split():
                walk = self._walk_text(self.text, state, position)
            else:
                walk = self._walk(state, position)
            walk = self._walks.setdefault(key, walk)
        return walk

    def _walk(self, state: int, position: Position) -> Walk:
        sweep = self._sweeper.sweep(state, position)
        return Walk(Piece.of(sweep.ids, self._trie.words), self._crossings(sweep.exits))

    def _crossings(self, exits: Iterable[Exit]) -> tuple[tuple[Hashable, Position], ...]:
        """Exits with the same outcome are one position: what may follow is explored once for all of them."""
        by_outcome: dict[Hashable, list[Exit]] = {}
        for each in exits:
            by_outcome.setdefault(self._outcome_of(each.state), []).append(each)
        return tuple(
            (
                outcome,
                Position(
                    self._trie,
                    np.concatenate([each.nodes for each in group]),
                    np.concatenate([each.ids for each in group]),
                ),
            )
            for outcome, group in by_outcome.items()
        )

    def _walk_counted(self, dfa: Counted, unbounded: Lexeme, state: int, position: Position) -> Walk:
        """Near a bound: the walk without bounds, less the tokens with too many or too few characters."""
        base, count = dfa.pair(state)
        profile = unbounded.profile(dfa, base, position)
        allowed = [i for i, (end, more, _) in enumerate(profile.inside) if dfa.bound(end, count + more) >= 0]
        exits = [
            i for i, each in enumerate(profile.exits) if dfa.bound(each.state, count + each.characters) >= 0
        ]
        key = (tuple(allowed), tuple(exits))
        walk = profile.walks.get(key)
        if walk is None:
            pieces = [profile.inside[i][2] for i in allowed]
            inside = Piece([], union(pieces, self._trie.words)) if pieces else Piece([], None)
            walk = Walk(inside, unbounded._crossings(profile.exits[i] for i in exits))
            profile.walks.setdefault(key, walk)
        return walk

    def profile(self, dfa: Counted, state: int, position: Position) -> Profile:
        """The tokens of `position` by where they end and how many characters they have."""
        key = (state, position)
        profile = self._profiles.get(key)
        if profile is None:
            if self._counting is None:
                self._counting = Sweeper(self.dfa, dfa.begins)
            sweep = self._counting.sweep(state, position)
            inside = [(end, count, Piece.of(ids, self._trie.words)) for end, count, ids in groups(sweep)]
            profile = self._profiles.setdefault(key, Profile(inside, sweep.exits, {}))
        return profile

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

        for node in text.chain(state):
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
