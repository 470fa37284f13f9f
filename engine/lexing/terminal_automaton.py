"""A terminal's automaton on a vocabulary: the DFA of its definition, with what it knows of the tokens."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from larksong.engine.automata.dfa import Counted, Quoted, StringsExcept
from larksong.engine.automata.languages import BoundedText
from larksong.engine.automata.text_until import AhoCorasick
from larksong.engine.grammar.terminals import Readable, Special
from larksong.engine.lexing import endings, walks
from larksong.engine.lexing.endings import Ending
from larksong.engine.lexing.meter import ENTRY_BYTES, Meter, bytes_of
from larksong.engine.lexing.shortest import ShortestEnds
from larksong.engine.lexing.sweep import Sweeper
from larksong.engine.lexing.terminal_dfa import TerminalDFA
from larksong.engine.lexing.trie import Position, TokenSet, Trie
from larksong.engine.lexing.walks import LengthProfile, Walk

# Measured with tracemalloc, rounded up: a state of words with its row.
_STATE_BYTES = 900


class TerminalAutomaton(TerminalDFA):
    """The lazy DFA of a definition, with its walks over one vocabulary's trie.

    `basis`: the automaton from whose walks this one's are made: plain text of text with stops, any string of
    strings other than some, the unbounded one of a bounded one. `meter` counts what is kept.
    """

    def __init__(
        self, definition: Readable, trie: Trie, meter: Meter, basis: TerminalAutomaton | None = None
    ) -> None:
        super().__init__(definition)
        self._meter = meter
        meter.bytes += 5 * ENTRY_BYTES
        if self.words is not None:
            meter.bytes += _STATE_BYTES * len(self.words.edges)
        self.special: frozenset[int] = definition.ids if isinstance(definition, Special) else frozenset()
        self.special_tokens = TokenSet(sorted(self.special), None)
        self._trie = trie
        self._basis = basis
        self._walks: dict[tuple[int, Position], Walk] = {}
        self._profiles: dict[tuple[int, Position], LengthProfile] = {}
        self._endings: dict[int, list[Ending]] = {}
        self._inside: dict[tuple[int, bytes], tuple[int, bytes] | None] = {}
        self._sweeper = Sweeper(self.dfa)
        self._counting: Sweeper | None = None

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
            self._meter.bytes += ENTRY_BYTES
            return self._inside.setdefault(key, found)

    # -- walks

    def walk(self, state: int, position: Position) -> Walk:
        """The walk from `state` over the tokens of `position`."""
        key = (state, position)
        walk = self._walks.get(key)
        if walk is None:
            walk = self._walks.setdefault(key, self._walk(state, position))
            self._meter.bytes += ENTRY_BYTES + bytes_of(walk.inside)
        return walk

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
                return walks.of_profile(profile, dfa, count, trie, self.base_outcome)
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
            self._meter.bytes += sum(ENTRY_BYTES + bytes_of(tokens) for _, _, tokens in profile.inside)
        return profile

    def _profile(self, dfa: Counted, state: int, position: Position) -> LengthProfile:
        text = self.text
        holds_back = text is not None and state != 0 and text.text_state(state) == 0
        if text is not None and holds_back and self._stops_are_split(text):
            return walks.held_profile(text, self.profile(dfa, 0, position), state, position)
        if self._counting is None:
            self._counting = Sweeper(self.dfa, dfa.begins)
        return walks.profile_of(self._counting.sweep(state, position), self._trie)

    # -- where tokens and texts end

    def endings(self, state: int, position: Position) -> list[Ending]:
        """The tokens of `position` that end in the terminal when they are read from `state`, by end state.

        At least those `inside` a `walk`; perhaps also those that end exactly where it is complete.
        """
        if position is not self._trie.root:
            return list(self._find_endings(state, position))
        found = self._endings.get(state)
        if found is None:
            found = self._endings.setdefault(state, list(self._find_endings(state, position)))
            self._meter.bytes += sum(ENTRY_BYTES + bytes_of(tokens) for _, tokens in found)
        return found

    def _find_endings(self, state: int, position: Position) -> Iterator[Ending]:
        dfa, text, basis = self.dfa, self.text, self._basis
        if self.narrow and self.words is not None:
            return endings.of_words(self.words, state, position)
        if isinstance(dfa, Counted) and basis is not None:
            base, count = dfa.pair(state)
            return endings.of_profile(basis.profile(dfa, base, position), dfa, count)
        if text is not None and basis is not None and state < text.nodes and text.text_state(state) == 0:
            plain, inside = basis.endings(0, position), self.walk(state, position).inside
            return endings.of_text(text, plain, inside, state, position)
        return endings.of_sweep(Sweeper(dfa).sweep(state, position), self._trie)

    @cached_property
    def shortest(self) -> ShortestEnds:
        """The shortest ways out of the terminal; made for the first sequence with a budget."""
        return ShortestEnds(self, self._meter)

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
        self._endings.clear()
        self._inside.clear()
        self.__dict__.pop("shortest", None)
