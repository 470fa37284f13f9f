"""The terminals of a format's calls: strict, of declared tools alone, and open, where any name may come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import More
from larksong.engine.grammar.grammar import Definition, Rule, Sub, Terminal
from larksong.engine.grammar.terminals import Choice, Literal, Pattern, Role, Special
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.wire.declaration import FormatDeclaration
from larksong.grammars.wire.markers import marker, one_more, one_of, spellings
from larksong.grammars.wire.other_names import ended_by

# What names look like that no request declares. They hold no blanks and none of the characters that end one.
OTHER_NAME = r"[^\s\x00-\x1f\x7f<>\"'{}\[\],:=]{1,128}"

# Stands for a name, to see what a format writes around it.
_PLACE = "\ue000"


def call_terminals(
    format: FormatDeclaration, vocabulary: Vocabulary, names: Sequence[str], arguments: Sub
) -> dict[str, Terminal]:
    """The known terminals of a template, for the functions `names`."""
    start = marker(format.call_start, vocabulary)
    prefix = format.function_name_prefix
    if not isinstance(start, Special):
        # In letters, what follows the marker belongs to it: the marker alone may be the words of a text.
        start, prefix = Literal(format.call_start + prefix), ""
    return _terminals(format, vocabulary, start, _functions(format, names, prefix), arguments)


def open_call_terminals(
    format: FormatDeclaration, vocabulary: Vocabulary, names: Sequence[str], arguments: Sub
) -> dict[str, Terminal]:
    """The same where other functions may come, too: what stands before a name is a terminal of its own then.

    It is read before it is known whether the name is declared.
    """
    start = marker(format.call_start, vocabulary)
    prefixes = format.open_function_name_prefixes or (format.function_name_prefix,)
    optional = "" in prefixes
    if not isinstance(start, Special) and not optional:
        start = one_of([format.call_start + prefix for prefix in prefixes])
        prefixes = ()
    before = [each for each in prefixes if each]
    found: dict[str, Terminal] = {}
    if before:
        role = Role.BEFORE_NAME if optional else Role.MARKUP
        found["BEFORE_NAME"] = Terminal("BEFORE_NAME", one_of(before), role)
    known = [re.escape(name) for name in names]
    if optional:
        known += [re.escape(each) + ".*" for each in before]
    guard = f"(?!(?:{'|'.join(known)})$)" if known else ""
    _, after = format.function_text(_PLACE).split(_PLACE)
    found["OTHER_NAME"] = Terminal("OTHER_NAME", Pattern(guard + ended_by(OTHER_NAME, [after])), Role.NAME)
    found["NAME_END"] = Terminal("NAME_END", Literal(after) if after else Pattern(""), Role.NAME_END)
    return found | _terminals(format, vocabulary, start, _functions(format, names, ""), arguments)


def _functions(format: FormatDeclaration, names: Iterable[str], prefix: str) -> Choice:
    return Choice(tuple((format.function_text(name), name) for name in names), prefix)


def _terminals(
    format: FormatDeclaration, vocabulary: Vocabulary, start: Definition, functions: Choice, arguments: Sub
) -> dict[str, Terminal]:
    return {
        "SECTION": Terminal("SECTION", marker(format.section_start, vocabulary)),
        "CALL": one_more("CALL", start),
        "SEPARATOR": Terminal("SEPARATOR", Literal(format.call_separator), predicate=More()),
        "FUNCTION": Terminal("FUNCTION", functions, Role.FUNCTION_OPEN),
        "ARGUMENTS": Terminal("ARGUMENTS", arguments),
    }


def open_rules(
    rules: Iterable[Rule], format: FormatDeclaration, terminals: Mapping[str, Terminal]
) -> list[Rule]:
    """The rules of a turn with any other name beside the declared ones."""
    before: list[tuple[str, ...]] = [("BEFORE_NAME",)] if "BEFORE_NAME" in terminals else [()]
    if "" in format.open_function_name_prefixes:
        before.append(())
    functions = terminals["FUNCTION"].definition
    declared = isinstance(functions, Choice) and bool(functions.words)
    names = [*([("FUNCTION",)] if declared else []), ("OTHER_NAME", "NAME_END")]
    found: dict[Rule, None] = {}
    for rule in rules:
        if "FUNCTION" not in rule.expansion:
            found[rule] = None
            continue
        at = rule.expansion.index("FUNCTION")
        head, tail = rule.expansion[:at], rule.expansion[at + 1 :]
        for each in before:
            found |= dict.fromkeys(Rule(rule.origin, (*head, *each, *name, *tail)) for name in names)
    return list(found)


def call_stops(format: FormatDeclaration, terminals: Mapping[str, Terminal]) -> tuple[Stop, ...]:
    """Where text ends because calls begin: nowhere if their first marker is a token, whose id ends it."""
    if format.bare_json:
        return tuple(_at_names(format, terminals["FUNCTION"].definition))
    return tuple(_at_opening(_opening(format), terminals))


def open_call_stops(format: FormatDeclaration, terminals: Mapping[str, Terminal]) -> tuple[Stop, ...]:
    """The same for text that nobody constrained."""
    openings = (_opening(format), *format.open_openings)
    return tuple(stop for opening in openings for stop in _at_opening(opening, terminals))


def _opening(format: FormatDeclaration) -> tuple[str, ...]:
    return format.opening or (("SECTION", "CALL") if format.section_start else ("CALL",))


def _at_opening(names: tuple[str, ...], terminals: Mapping[str, Terminal]) -> Iterator[Stop]:
    texts = [spellings(terminals[name].definition) for name in names]
    if not all(texts):
        names, texts = names[:1], texts[:1]
    for words in product(*texts):
        yield Stop("".join(words).encode(), names)


def _at_names(format: FormatDeclaration, functions: Definition) -> Iterator[Stop]:
    """Text ends where what begins a call is followed by the whole name of a declared function."""
    assert isinstance(functions, Choice)
    words = [text.encode() for text, _ in functions.words]
    for word, (_, name) in zip(words, functions.words, strict=True):
        yield Stop(
            format.call_start.encode() + word,
            ("CALL", "FUNCTION"),
            # At the beginning of a turn such a text is a call, from the byte that makes its name certain.
            refused_from=len(format.call_start) + _certain(word, words),
            label=name,
        )


def _certain(word: bytes, words: Sequence[bytes]) -> int:
    """The number of bytes of `word` with which none of the other words begins."""
    others = [other for other in words if other != word]
    return next(n for n in range(len(word) + 1) if not any(other.startswith(word[:n]) for other in others))
