"""The rules of a tool's parameters, each an element: strings as raw text, everything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from larksong.engine.automata.languages import Language
from larksong.engine.grammar.attributes import Carry, Close, Member, More, Named, Pick, Predicate, Raw
from larksong.engine.grammar.grammar import Definition, Grammar, Terminal
from larksong.engine.grammar.terminals import Choice, Keys, Literal, Role, Special, TextUntil
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.json.members import MemberRules, Shapes, shared_name
from larksong.grammars.json.rules import RuleBuilder, constructors
from larksong.grammars.schema import Schema
from larksong.grammars.schema.shapes import EnumShape, ObjectShape, StringShape
from larksong.grammars.wire.elements import PYTHON_WORDS, Elements, letter_stops, merged
from larksong.grammars.wire.markers import marker, one_of

_EMPTY = ""
"""the symbol of an empty raw value, which has no terminal where a token ends values"""


def objects(parameters: Schema) -> tuple[ObjectShape, ...]:
    """What a tool's parameters may look like."""
    return tuple(shape for shape in parameters.shapes if isinstance(shape, ObjectShape))


class ValueSymbol(NamedTuple):
    """A symbol that reads a value, and whether it reads it as raw text."""

    symbol: str
    is_text: bool


class ElementRules:
    """Writes the grammar of one tool's parameters."""

    def __init__(self, of: Elements, vocabulary: Vocabulary | None, parameters: Schema) -> None:
        self.elements = of
        self.builder = RuleBuilder(parameters)
        self.parameters = parameters
        self._vocabulary = vocabulary
        self._value_suffix = self.merged(of.arg_value_suffix)
        self._by_token = isinstance(self._value_suffix[0], Special)
        self._stops = () if self._by_token else letter_stops(of, vocabulary)

    def grammar(self, title: str) -> Grammar:
        """The grammar of the parameters: in any order, none twice, the required ones all."""
        builder = self.builder
        start = builder.names.rule("start")
        every, each = builder.names.rule(f"{title}_parameters"), builder.names.rule(f"{title}_parameter")
        closers = self.markup(more=More(), close=Close())
        members = MemberRules(self.parameters, builder.names, objects(self.parameters), title)
        groups: dict[tuple[int, tuple[ValueSymbol, ...], bool], list[str]] = {}
        for (having, shapes), names in members.names().items():
            values = tuple(dict.fromkeys(self._values(shapes, f"{title}__{shared_name(names)}")))
            for part, is_text in self._parts(values):
                groups.setdefault((having, part, is_text), []).extend(names)
        alternatives: list[tuple[str, ...]] = []
        for (having, values, is_text), names in groups.items():
            name = f"{title}_{shared_name(names)}"
            words = [(each, members.member(each)) for each in names]
            openers = self.openers(name, words, is_text, members.predicate(having))
            alternatives += [
                ("PARAMETER", *openers, *reading, *closers) for reading in self._readings(values, name)
            ]
        builder.rule(start, (every, "FUNCTION_CLOSE"))
        if alternatives:
            builder.rule(every, (), (every, each), action=members.action)
            builder.rule(each, *alternatives, action=Pick(1))
        else:
            builder.rule(every, (), action=members.action)
        return builder.grammar(title)

    # -- what stands around values

    def merged(self, texts: Sequence[str]) -> list[Definition]:
        return merged(texts, self._vocabulary)

    def markup(self, *, more: Predicate | None = None, close: Predicate | None = None) -> list[str]:
        """Adds PARAMETER, FUNCTION_CLOSE and what ends a value: the terminals of that."""
        of = self.elements
        function_close = self.function_close
        self.terminal("PARAMETER", marker(of.arg_name_prefix, self._vocabulary), predicate=more)
        closers = [self.terminal("PARAMETER_CLOSE", self._value_suffix[0], Role.PARAMETER_CLOSE)]
        closers += [self.terminal("PARAMETER_END", each) for each in self._value_suffix[1:]]
        self.terminal("FUNCTION_CLOSE", function_close, Role.CALL_CLOSE, close)
        return closers

    @property
    def function_close(self) -> Definition:
        """What ends the parameters, in one of its spellings."""
        found = marker(self.elements.function_close[0], self._vocabulary)
        return one_of(self.elements.function_close) if isinstance(found, Literal) else found

    def terminal(
        self, name: str, definition: Definition, role: Role = Role.MARKUP, predicate: Predicate | None = None
    ) -> str:
        unique = self.builder.names.terminal(name)
        return self.builder.terminal(Terminal(unique, definition, role, predicate))

    def openers(
        self, name: str, members: Iterable[tuple[str, Member]], is_text: bool, key: Predicate
    ) -> list[str]:
        """The terminals from a name to its value; `key` refuses names that may not come."""
        after = self.merged(self.elements.name_suffix(is_text))
        lead = ""
        if isinstance(after[0], Literal):
            lead, after = after[0].text, after[1:]
        words = Keys(tuple((key + lead, member) for key, member in members))
        if not after:
            return [self.terminal(f"{name}_name", words, Role.PARAMETER_OPEN, key)]
        # A name that is the beginning of another is told by the marker that follows it.
        roles = [Role.MARKUP] * (len(after) - 1) + [Role.PARAMETER_OPEN]
        return [
            self.terminal(f"{name}_name", words, predicate=Named(key)),
            *(self.terminal(f"{name}_after", d, role, Carry()) for d, role in zip(after, roles, strict=True)),
        ]

    def _parts(self, values: tuple[ValueSymbol, ...]) -> list[tuple[tuple[ValueSymbol, ...], bool]]:
        """The readings of a value by what stands before them."""
        if not self.elements.tells_json:
            return [(values, True)]
        parts = [(tuple(value for value in values if value.is_text is kind), kind) for kind in (True, False)]
        return [part for part in parts if part[0]]

    # -- values

    def _readings(self, values: Sequence[ValueSymbol], name: str) -> list[tuple[str, ...]]:
        """The ways to read a value, as symbols."""
        symbols = [value.symbol for value in values if value.symbol != _EMPTY]
        if len(symbols) > 1:
            # A rule of their own, so that the readings of a value meet again where it is closed.
            rule = self.builder.names.rule(f"{name}_value")
            self.builder.rule(rule, *((symbol,) for symbol in symbols), action=Pick(0))
            symbols = [rule]
        found: list[tuple[str, ...]] = [(symbol,) for symbol in symbols]
        return [*found, ()] if any(value.symbol == _EMPTY for value in values) else found

    def _values(self, shapes: Shapes, name: str) -> list[ValueSymbol]:
        """The symbols that read a parameter's value: raw text for strings, JSON for the rest.

        A union keeps both readings; where a text fits both, the typed one holds.
        """
        found: list[ValueSymbol] = []
        groups = constructors(shapes)
        for group in groups:
            match group[0]:
                case StringShape(language) if len(groups) == 1:
                    found += self.text(language, f"{name}_value", "VALUE", None)
                case StringShape(language):
                    found += self.text(language, f"{name}_raw_value", "RAW_VALUE", Raw())
                case EnumShape(("true", "false")):
                    found.append(ValueSymbol(self.spelled("PARAMETER_BOOLEAN", ("true", "false")), False))
                case EnumShape(("null",)):
                    found.append(ValueSymbol(self.spelled("PARAMETER_NULL", ("null",)), False))
                case EnumShape(texts):
                    found += self._enum(texts, name)
                case _:
                    found.append(ValueSymbol(self.builder.value(group, name), False))
        return found

    def text(
        self, language: Language, own: str, plain: str, predicate: Predicate | None
    ) -> list[ValueSymbol]:
        """Raw strings: `plain` names the terminals that many parameters share, `own` this one's."""
        found: list[ValueSymbol] = []
        if self._by_token:
            # A token ends the value at once, so that an empty one has no terminal.
            found = [ValueSymbol(_EMPTY, True)] if language.matches("") else []
            if replace(language, minimum=max(language.minimum, 1)).is_empty():
                return found
        text = TextUntil(self._stops, self.elements.suffix_overlap, open_end=self._by_token)
        if language.wanted or language.unwanted or language.excluded:
            text = replace(text, language=language)
            return [*found, ValueSymbol(self.terminal(own, text, Role.TEXT, predicate), True)]
        minimum, maximum = language.minimum, language.maximum
        bounds = f"_{minimum}_{'' if maximum is None else maximum}".rstrip("_")
        text = replace(text, minimum=minimum, maximum=maximum)
        shared = Terminal(plain if language == Language() else plain + bounds, text, Role.TEXT, predicate)
        return [*found, ValueSymbol(self.builder.terminal(shared), True)]

    def spelled(self, name: str, words: Sequence[str]) -> str:
        """JSON words with the spellings of Python that models write; they are reported as JSON."""
        choice = Choice(tuple((text, word) for word in words for text in (word, PYTHON_WORDS[word])))
        return self.builder.terminal(Terminal(name, choice, Role.JSON))

    def _enum(self, values: Sequence[str], name: str) -> list[ValueSymbol]:
        """An enum's strings are raw text, its other values JSON.

        The words of JSON are reported when they are complete, as everywhere, all else while it is read: two
        readings of a value as JSON must tell the same.
        """
        found = []
        strings = [text for text in (json.loads(value) for value in values) if isinstance(text, str)]
        words = [value for value in values if value in PYTHON_WORDS]
        others = [v for v in values if v not in PYTHON_WORDS and not isinstance(json.loads(v), str)]
        if strings:
            choice = Choice(tuple((text, None) for text in strings))
            found.append(ValueSymbol(self.terminal(f"{name}_text", choice, Role.TEXT, Raw()), True))
        if words:
            found.append(ValueSymbol(self.spelled(self.builder.names.terminal(f"{name}_word"), words), False))
        if others:
            choice = Choice(tuple((text, None) for text in others))
            found.append(ValueSymbol(self.terminal(f"{name}_enum", choice, Role.JSON), False))
        return found
