"""The lexemes of a vocabulary, shared by all grammars."""

from __future__ import annotations

from larksong.engine.lexeme import Lexeme, Meter
from larksong.engine.terminals import JsonKey, JsonString, JsonText, Readable, TextUntil
from larksong.engine.trie import Trie


class Lexemes:
    """The lexemes of a vocabulary, by definition: shared by all grammars."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.meter = Meter()
        self.shared = {
            "text": Lexeme(TextUntil(), trie, self.meter),
            "string": Lexeme(JsonString(), trie, self.meter),
            "key": Lexeme(JsonKey(()), trie, self.meter),
        }
        """what every request reads, by the name under which it is kept on disk"""
        self._known = self._core()

    def _core(self) -> dict[Readable, Lexeme]:
        return {lexeme.definition: lexeme for lexeme in self.shared.values()}

    def get(self, definition: Readable) -> Lexeme:
        """The lexeme of a definition."""
        lexeme = self._known.get(definition)
        if lexeme is None:
            basis = (
                definition.basis()
                if isinstance(definition, JsonString | JsonKey | JsonText | TextUntil)
                else None
            )
            made = Lexeme(definition, self.trie, self.meter, self.get(basis) if basis is not None else None)
            lexeme = self._known.setdefault(definition, made)
        return lexeme

    def forget(self) -> None:
        """Begin anew with what every request needs; grammars in use keep the lexemes that they have."""
        for lexeme in self.shared.values():
            lexeme.forget()
        self._known = self._core()
        self.meter.bytes = 0
