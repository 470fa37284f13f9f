"""What an author writes a template's terminals with: markers, and what terminals mean to the calls' rules."""

from __future__ import annotations

from collections.abc import Sequence

from larksong.engine.grammar.attributes import Carry, Close, More
from larksong.engine.grammar.grammar import Definition, Terminal
from larksong.engine.grammar.terminals import Choice, Literal, Role, Special
from larksong.engine.vocabulary import Vocabulary


def marker(text: str, vocabulary: Vocabulary | None) -> Definition:
    """A marker: by token id where the tokenizer holds it as a token of its own, else by its letters."""
    token = vocabulary.special.get(text) if vocabulary is not None else None
    return Literal(text) if token is None else Special(frozenset({token}), text)


def one_of(texts: Sequence[str]) -> Definition:
    """One of some spellings."""
    return Literal(texts[0]) if len(texts) == 1 else Choice(tuple((text, None) for text in texts))


def spellings(definition: Definition) -> list[str]:
    """The texts of a literal or a choice; none of a token."""
    if isinstance(definition, Literal):
        return [definition.text]
    if isinstance(definition, Choice):
        return [definition.prefix + text for text, _ in definition.words]
    return []


def one_more(name: str, definition: Definition) -> Terminal:
    """The terminal that begins one more call: refused where no more may come."""
    return Terminal(name, definition, predicate=More())


def carrying(name: str, definition: Definition) -> Terminal:
    """A terminal between a function's name and its arguments: the name stays on top."""
    return Terminal(name, definition, predicate=Carry())


def closing(name: str, definition: Definition) -> Terminal:
    """The terminal that ends a call."""
    return Terminal(name, definition, Role.CALL_CLOSE)


def ending(name: str, definition: Definition) -> Terminal:
    """The terminal that ends the section of calls: refused while calls are missing."""
    return Terminal(name, definition, predicate=Close())
