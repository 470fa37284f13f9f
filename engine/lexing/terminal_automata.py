"""The automata of terminals on a vocabulary, shared by all grammars."""

from __future__ import annotations

from larksong.engine.grammar.terminals import JsonKey, JsonString, JsonText, Readable, TextUntil
from larksong.engine.lexing.meter import Meter
from larksong.engine.lexing.terminal_automaton import TerminalAutomaton
from larksong.engine.lexing.trie import Trie


class TerminalAutomata:
    """The terminals' automata of a vocabulary, by definition: shared by all grammars."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.meter = Meter()
        self.shared = {
            "text": TerminalAutomaton(TextUntil(), trie, self.meter),
            "string": TerminalAutomaton(JsonString(), trie, self.meter),
            "key": TerminalAutomaton(JsonKey(()), trie, self.meter),
        }
        """what every request reads, by the name under which it is kept on disk"""
        self._known = self._core()

    def _core(self) -> dict[Readable, TerminalAutomaton]:
        return {automaton.definition: automaton for automaton in self.shared.values()}

    def get(self, definition: Readable) -> TerminalAutomaton:
        """The automaton of a definition."""
        automaton = self._known.get(definition)
        if automaton is None:
            basis = (
                definition.basis()
                if isinstance(definition, JsonString | JsonKey | JsonText | TextUntil)
                else None
            )
            made = TerminalAutomaton(
                definition, self.trie, self.meter, self.get(basis) if basis is not None else None
            )
            automaton = self._known.setdefault(definition, made)
        return automaton

    def warm_up(self) -> None:
        """Make the walks that every request needs."""
        for automaton in self.shared.values():
            automaton.walk_all_states()

    def forget(self) -> None:
        """Begin anew with what every request needs; grammars in use keep the automata that they have."""
        for automaton in self.shared.values():
            automaton.forget()
        self._known = self._core()
        self.meter.bytes = 0
