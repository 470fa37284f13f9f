"""A automaton: the automaton of a terminal's definition on a vocabulary, with its walks."""

from __future__ import annotations

from collections.abc import Hashable

from larksong.engine.automata.dfa import DFA, Counted, Quoted, StringsExcept, Words, is_final
from larksong.engine.automata.languages import BoundedText
from larksong.engine.automata.text_until import AhoCorasick, MatchedText
from larksong.engine.grammar.terminals import Choice, Readable, Special, TextUntil
from larksong.engine.lexing import walks
from larksong.engine.lexing.sweep import Sweeper
from larksong.engine.lexing.trie import Position, TokenSet, Trie
from larksong.engine.lexing.walks import LengthProfile, Walk


class Meter:
    """Counts roughly how many bytes are kept."""

    def __init__(self) -> None:
        self.bytes = 0


# Measured with tracemalloc, rounded up: an entry of a cache with its key; a state of words with its row.
_ENTRY_BYTES = 400
_STATE_BYTES = 900


class TerminalAutomaton:
    """The lazy DFA of a definition, with its walks over one vocabulary's trie.

    `basis`: the automaton from whose walks this one's are made: plain text of text with stops, any string of
    strings other than some, the unbounded one of a bounded one. `meter` counts what is kept.
    """

    def __init__(
        self, definition: Readable, trie: Trie, meter: Meter, basis: TerminalAutomaton | None = None
    ) -> None:
        self._meter = meter
        meter.bytes += 5 * _ENTRY_BYTES
        self.definition = definition
        self.special: frozenset[int] = definition.ids if isinstance(definition, Special) else frozenset()
        self.special_tokens = TokenSet(sorted(self.special), None)
        self.dfa: DFA = Words([]) if isinstance(definition, Special) else definition.dfa()
        self.start = self.dfa.start
        self.row = self.dfa.row
        self.accepts = self.dfa.accepts
        self.words = self.dfa if isinstance(self.dfa, Words) else None
        if self.words is not None:
            meter.bytes += _STATE_BYTES * len(self.words.edges)
        self.text: AhoCorasick | None = None
        if isinstance(definition, TextUntil):
            base = self.dfa.dfa if isinstance(self.dfa, Counted | MatchedText) else self.dfa
            assert isinstance(base, AhoCorasick)
            self.text = base
        self.narrow = self.words is not None and self.words.prefix_free
        """a literal or finite set that is complete without a look at the next byte"""
        self.labelled = isinstance(definition, Choice)
        self._trie = trie
        self._basis = basis
        self._walks: dict[tuple[int, Position], Walk] = {}
        self._profiles: dict[tuple[int, Position], LengthProfile] = {}
        self._final: dict[int, bool] = {}
        self._inside: dict[tuple[int, bytes], tuple[int, bytes] | None] = {}
        self._sweeper = Sweeper(self.dfa)
        self._counting: Sweeper | None = None

    # -- reading bytes

    def final(self, state: int) -> bool:
        """Complete without a look at the next byte."""
        known = self._final.get(state)
        if known is None:
            known = self._final[state] = is_final(self.dfa, state)
        return known

    def outcome(self, state: int) -> Hashable:
        """What the terminal turned out to be: a choice's label, a text's stop (its index), else None."""
        return self._outcome(self._base(state))

    def _outcome(self, base: int) -> Hashable:
        if self.labelled and self.words is not None:
            return self.words.labels[base]
        return self.text.stop.get(base) if self.text is not None else None

    def held(self, state: int) -> bytes:
        """The bytes of a text that are held back in `state`, since they may be the start of a stop."""
        if self.text is None:
            return b""
        node = self._base(state)
        return self.text.held[node] if node < self.text.nodes else b""

    def node(self, state: int) -> int:
        """The state of the text's own automaton (see `AhoCorasick`)."""
        return self._base(state)

    def released(self, state: int, data: bytes, following: int) -> bytes:
        """The bytes of a text that `data`, read in `state` and leading to `following`, has made certain."""
        if self.text is None:
            return data
        known = self.held(state) + data
        return known[: len(known) - len(self.held(following))]

    def _base(self, state: int) -> int:
        if isinstance(self.dfa, Counted | MatchedText):
            return self.dfa.pair(state)[0]
        return state

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
            self._meter.bytes += _ENTRY_BYTES
            return self._inside.setdefault(key, found)

    # -- walks

    def walk(self, state: int, position: Position) -> Walk:
        """The walk from `state` over the tokens of `position`."""
        key = (state, position)
        walk = self._walks.get(key)
        if walk is None:
            walk = self._walks.setdefault(key, self._walk(state, position))
            self._meter.bytes += _ENTRY_BYTES + self._dense_bytes(walk.inside)
        return walk

    def _dense_bytes(self, tokens: TokenSet) -> int:
        return 0 if tokens.words is None else 4 * self._trie.words

    def _walk(self, state: int, position: Position) -> Walk:
        dfa, basis, trie = self.dfa, self._basis, self._trie
        if self.narrow and self.words is not None:
            return walks.of_words(self.words, state, position)
        if basis is not None:
            if isinstance(dfa, Counted):
                base, count = dfa.pair(state)
                if dfa.is_far(state, trie.longest):
                    return basis.walk(base, position)
                profile = basis.profile(dfa, base, position)
                return walks.of_profile(profile, dfa, count, trie, self._outcome)
            if isinstance(dfa, Quoted) and isinstance(dfa.inside, BoundedText):
                far = dfa.inside.far_state(state - 2 if state else dfa.inside.start, trie.longest)
                if far is not None:
                    return basis.walk(far + 2 if state else state, position)
            if isinstance(dfa, StringsExcept):
                any_string = basis.walk(dfa.string_state(state), position)
                return walks.of_other_strings(dfa, any_string, state, position)
            if self.text is not None and self._stops_are_split(self.text):
                plain = basis.walk(self.text.text_state(state), position)
                return walks.of_text(self.text, plain, state, position)
        return walks.of_sweep(self._sweeper.sweep(state, position, ends=False), trie, self.outcome)

    def _stops_are_split(self, text: AhoCorasick) -> bool:
        """Whether no token has a whole stop, or what is refused of one, beyond its first byte."""
        return not any(
            self._trie.inside_a_token(
                stop.marker[: stop.refused_from or None] if index in text.refused else stop.marker
            )
            for index, stop in enumerate(text.stops)
        )

    def profile(self, dfa: Counted, state: int, position: Position) -> LengthProfile:
        """The tokens of `position` by where they end and how many characters, as `dfa` counts, they have."""
        key = (state, position)
        profile = self._profiles.get(key)
        if profile is None:
            profile = self._profiles.setdefault(key, self._profile(dfa, state, position))
            self._meter.bytes += sum(
                _ENTRY_BYTES + self._dense_bytes(tokens) for _, _, tokens in profile.inside
            )
        return profile

    def _profile(self, dfa: Counted, state: int, position: Position) -> LengthProfile:
        text = self.text
        holds_back = text is not None and state != 0 and text.text_state(state) == 0
        if text is not None and holds_back and self._stops_are_split(text):
            return walks.held_profile(text, self.profile(dfa, 0, position), state, position)
        if self._counting is None:
            self._counting = Sweeper(self.dfa, dfa.begins)
        return walks.profile_of(self._counting.sweep(state, position), self._trie)

    # -- what is kept

    def walk_all_states(self) -> None:
        """Make the walks of every state from the root of the trie (for an automaton of few states)."""
        todo = [self.start]
        for state in todo:
            self.walk(state, self._trie.root)
            todo += [other for other in set(self.row(state)) if other >= 0 and other not in todo]

    def root_walks(self) -> list[tuple[int, Walk]]:
        """The walks from the root of the trie, by state."""
        return [(state, walk) for (state, at), walk in self._walks.copy().items() if at is self._trie.root]

    def set_root_walk(self, state: int, walk: Walk) -> None:
        """Take over a walk from the root of the trie that was made before."""
        self._walks.setdefault((state, self._trie.root), walk)

    def forget(self) -> None:
        """Drop what can be made again, except the walks from the root."""
        root = self._trie.root
        # A copy, since other threads go on adding walks.
        self._walks = {(state, at): walk for (state, at), walk in self._walks.copy().items() if at is root}
        self._profiles.clear()
        self._inside.clear()
