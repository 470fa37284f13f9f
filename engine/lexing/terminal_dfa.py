"""The byte automaton of a terminal's definition, and what its states mean to whoever reads the terminal."""

from __future__ import annotations

from collections.abc import Hashable

from larksong.engine.automata.dfa import DFA, Counted, Words, is_final
from larksong.engine.automata.text_until import AhoCorasick, MatchedText
from larksong.engine.grammar.terminals import Choice, Readable, Special, TextUntil


class TerminalDFA:
    """The lazy DFA of a definition; without a vocabulary, so a special token has no text here."""

    def __init__(self, definition: Readable) -> None:
        self.definition = definition
        self.dfa: DFA = Words([]) if isinstance(definition, Special) else definition.dfa()
        self.start = self.dfa.start
        self.row = self.dfa.row
        self.accepts = self.dfa.accepts
        self.words = self.dfa if isinstance(self.dfa, Words) else None
        self.text: AhoCorasick | None = None
        if isinstance(definition, TextUntil):
            base = self.dfa.dfa if isinstance(self.dfa, Counted | MatchedText) else self.dfa
            assert isinstance(base, AhoCorasick)
            self.text = base
        self.narrow = self.words is not None and self.words.prefix_free
        """a literal or finite set that is complete without a look at the next byte"""
        self.labelled = isinstance(definition, Choice)
        self._final: dict[int, bool] = {}

    def final(self, state: int) -> bool:
        """Complete without a look at the next byte."""
        known = self._final.get(state)
        if known is None:
            known = self._final[state] = is_final(self.dfa, state)
        return known

    def outcome(self, state: int) -> Hashable:
        """What the terminal turned out to be: a choice's label, a text's stop (its index), else None."""
        return self.base_outcome(self.base(state))

    def base_outcome(self, base: int) -> Hashable:
        """The same for a state of the automaton without its bounds (see `base`)."""
        if self.labelled and self.words is not None:
            return self.words.labels[base]
        return self.text.stop.get(base) if self.text is not None else None

    def base(self, state: int) -> int:
        """The state without bounds on the length or conditions on the value: of a text that of its stops."""
        if isinstance(self.dfa, Counted | MatchedText):
            return self.dfa.pair(state)[0]
        return state

    def held(self, state: int) -> bytes:
        """The bytes of a text that are held back in `state`, since they may be the start of a stop."""
        if self.text is None:
            return b""
        node = self.base(state)
        return self.text.held[node] if node < self.text.nodes else b""

    def released(self, state: int, data: bytes, following: int) -> bytes:
        """The bytes of a text that `data`, read in `state` and leading to `following`, has made certain."""
        if self.text is None:
            return data
        known = self.held(state) + data
        return known[: len(known) - len(self.held(following))]
