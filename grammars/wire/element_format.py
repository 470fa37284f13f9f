"""What the formats share in which each parameter is an element of its own, strings as raw text.

        key_open  name  after_key  value  value_close  …  function_close
        <parameter=city>\n        Paris  \n</parameter>\n  </function>

A marker that the tokenizer holds as a token ends a value by its id: the same letters are data. Where the
close marker is letters, a raw value ends where the marker is followed by the start of the next parameter or
the end of the function; anything else after it is data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from larksong.engine.automata.languages import Language
from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import Carry, Close, Key, Member, More, Named, Pick, Predicate, Raw
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import (
    Choice,
    Definition,
    Keys,
    Literal,
    Pattern,
    Role,
    Special,
    Terminal,
    TextUntil,
)
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import UnsupportedKeyword
from larksong.grammars.json.open_json import OpenJson
from larksong.grammars.json.rules import (
    ANY_SCHEMA,
    MemberRules,
    RuleBuilder,
    Shapes,
    constructors,
    shared_name,
)
from larksong.grammars.json.shortest import joined, shorter, shortest_json, shortest_string
from larksong.grammars.schema import Schema
from larksong.grammars.schema.references import escape
from larksong.grammars.schema.shapes import ArrayShape, EnumShape, NumberShape, ObjectShape, StringShape
from larksong.grammars.schema.values import json_text
from larksong.grammars.tools import Tool
from larksong.grammars.wire.wire_format import WireFormat

_EMPTY = ""
"""the symbol of an empty raw value, which has no terminal where a token ends values"""


PYTHON_WORDS = {"true": "True", "false": "False", "null": "None"}
OTHER_KEY = r"[^\s\x00-\x1f\x7f<>\"=]{1,128}"


_ALL_KINDS = ("object", "array", "string", "number", "boolean", "null", "text")


def _kinds(shapes: Shapes) -> tuple[str, ...]:
    """The kinds of JSON value that a union has, and raw text at last."""
    found: dict[str, None] = {}
    for shape in shapes:
        match shape:
            case EnumShape(texts):
                found |= dict.fromkeys(_KINDS[type(json.loads(text))] for text in texts)
            case NumberShape():
                found["number"] = None
            case ArrayShape():
                found["array"] = None
            case ObjectShape():
                found["object"] = None
    return (*(kind for kind in found if kind != "text"), "text")


_KINDS: dict[type, str] = {
    str: "text", int: "number", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip


def objects(parameters: Schema) -> tuple[ObjectShape, ...]:
    """What a tool's parameters may look like."""
    return tuple(shape for shape in parameters.shapes if isinstance(shape, ObjectShape))


class Value(NamedTuple):
    """A symbol that reads a value, and whether it reads it as raw text."""

    symbol: str
    is_text: bool


class ElementFormat(WireFormat):
    """Strings are raw text, everything else is JSON."""

    key_open: str
    after_key: tuple[str, ...]
    """what stands between a name and its value, marker by marker"""
    after_json_key: ClassVar[tuple[str, ...] | None] = None
    """the same before a value that is JSON, in formats that tell it so"""
    value_close: tuple[str, ...]
    function_close: tuple[str, ...]
    """spellings of what ends the parameters; the first is the usual one"""
    unfit: ClassVar[str]
    """the characters that names cannot have"""
    before: ClassVar[str] = ""
    """the end of `after_key` that may be the start of the close marker"""

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        super().check_names(tool, parameters)
        self.refuse_name(tool, self.unfit)
        for shape in objects(parameters):
            for name, _ in shape.properties:
                self.refuse_parameter(tool, name, self.unfit, "/properties/" + escape(name))
            if shape.free:
                raise UnsupportedKeyword(
                    f"tool {tool.name!r}: parameters that are not declared cannot be written in {self.name}",
                    tool=tool.name,
                    pointer="/additionalProperties",
                    keyword="additionalProperties",
                )

    def arguments(self, tool: Tool, parameters: Schema, vocabulary: Vocabulary | None = None) -> Grammar:
        return _Parameters(self, vocabulary, parameters).grammar(tool)

    def open_arguments(self, parameters: Schema | None, vocabulary: Vocabulary | None = None) -> Grammar:
        return _Parameters(self, vocabulary, parameters or ANY_SCHEMA).open_grammar(parameters is not None)

    def shortest_arguments(self, parameters: Schema, vocabulary: Vocabulary | None = None) -> str:
        options = []
        for shape in objects(parameters):
            nodes = shape.nodes
            names = [name for name in nodes if name in shape.required]
            others = [name for name in nodes if name not in shape.required]
            names += others[: max(shape.minimum - len(names), 0)]
            written = (
                self.key_open + name + self._shortest_value(parameters, parameters.nodes[nodes[name]])
                for name in names
            )
            options.append(joined(written) + min(self.function_close, key=len))
        return shorter(*options)

    def _shortest_value(self, schema: Schema, shapes: Shapes) -> str:
        """The shortest text of a value, with what stands around it."""
        after, after_json = "".join(self.after_key), "".join(self.after_json_key or self.after_key)
        close = "".join(self.value_close)
        found: list[str] = []
        for shape in shapes:
            match shape:
                case StringShape(language):
                    text = shortest_string(language)
                    # After an empty value the opener's end is the marker's start.
                    found.append(after + text + close if text else after + close.removeprefix(self.before))
                case EnumShape(texts):
                    for text in texts:
                        value = PYTHON_WORDS.get(text) or text
                        is_text = text.startswith('"')
                        found.append((after + json.loads(text) if is_text else after_json + value) + close)
                case _:
                    found.append(after_json + shortest_json(schema, (shape,)) + close)
        return shorter(*found)

    def render_parameters(self, arguments: Mapping[str, Any]) -> str:
        """The parameters of a call and what ends them."""
        close = "".join(self.value_close)
        written = []
        for key, value in arguments.items():
            if isinstance(value, str):
                written.append(self.key_open + key + "".join(self.after_key) + value + close)
            else:
                after = "".join(self.after_json_key or self.after_key)
                written.append(self.key_open + key + after + json_text(value) + close)
        return "".join(written) + self.function_close[0]


def letter_stops(of: ElementFormat, vocabulary: Vocabulary | None = None) -> tuple[Stop, ...]:
    """Where a raw value ends whose close marker is letters: at the whole marker and what comes next.

    Where the next piece may not come (no parameter is left, or a required one is missing), it is refused as
    soon as its name stands there. Where what comes next is a token, the marker alone ends the value.
    """
    close = "".join(of.value_close)
    following = (of.marker(text, vocabulary) for text in (of.key_open, of.function_close[0]))
    if any(isinstance(marker, Special) for marker in following):
        return (Stop(close.encode(), ("PARAMETER_CLOSE",)),)
    function = close + of.function_close[0]
    return (
        Stop((close + of.key_open).encode(), ("PARAMETER_CLOSE", "PARAMETER")),
        Stop(
            function.encode(),
            ("PARAMETER_CLOSE", "FUNCTION_CLOSE"),
            refused_from=len(function.encode()) - 1,
        ),
    )


class _Parameters:
    """Writes the grammar of one tool's parameters."""

    def __init__(self, of: ElementFormat, vocabulary: Vocabulary | None, parameters: Schema) -> None:
        self.format = of
        self.builder = RuleBuilder(parameters)
        self._parameters = parameters
        self._vocabulary = vocabulary
        self._closers = self._merged(of.value_close)
        self._by_token = isinstance(self._closers[0], Special)
        self._stops = () if self._by_token else letter_stops(of, vocabulary)

    def _merged(self, texts: Sequence[str]) -> list[Definition]:
        """The markers of `texts`; neighbours in letters are one."""
        found: list[Definition] = []
        markers = [self.format.marker(text, self._vocabulary) for text in texts]
        for is_token, group in groupby(markers, key=lambda marker: isinstance(marker, Special)):
            if is_token:
                found += group
            else:
                found.append(Literal("".join(each.text for each in group if isinstance(each, Literal))))
        return found

    def grammar(self, tool: Tool) -> Grammar:
        builder, of = self.builder, self.format
        start = builder.names.rule("start")
        every = builder.names.rule(f"{tool.name}_parameters")
        each = builder.names.rule(f"{tool.name}_parameter")
        key_open = of.marker(of.key_open, self._vocabulary)
        function_close = of.marker(of.function_close[0], self._vocabulary)
        if isinstance(function_close, Literal):
            function_close = of.one_of(of.function_close)
        self._terminal("PARAMETER", key_open, predicate=More())
        closers = [self._terminal("PARAMETER_CLOSE", self._closers[0], Role.PARAMETER_CLOSE)]
        closers += [self._terminal("PARAMETER_END", each) for each in self._closers[1:]]
        self._terminal("FUNCTION_CLOSE", function_close, Role.CALL_CLOSE, Close())
        members = MemberRules(builder, objects(self._parameters), tool.name)
        groups: dict[tuple[int, tuple[Value, ...], bool], list[str]] = {}
        for (having, shapes), names in members.names().items():
            values = tuple(dict.fromkeys(self._values(shapes, f"{tool.name}__{shared_name(names)}")))
            for part, is_text in self._parts(values):
                groups.setdefault((having, part, is_text), []).extend(names)
        alternatives: list[tuple[str, ...]] = []
        for (having, values, is_text), names in groups.items():
            name = f"{tool.name}_{shared_name(names)}"
            words = [(each, members.member(each)) for each in names]
            openers = self._openers(name, words, is_text, members.predicate(having))
            readings = [value.symbol for value in values if value.symbol != _EMPTY]
            if len(readings) > 1:
                # A rule of their own, so that the readings of a value meet again where it is closed.
                rule = builder.names.rule(f"{name}_value")
                builder.rule(rule, *((reading,) for reading in readings), action=Pick(0))
                readings = [rule]
            alternatives += [("PARAMETER", *openers, reading, *closers) for reading in readings]
            if any(value.symbol == _EMPTY for value in values):
                alternatives.append(("PARAMETER", *openers, *closers))
        builder.rule(start, (every, "FUNCTION_CLOSE"))
        if alternatives:
            builder.rule(every, (), (every, each), action=members.action)
            builder.rule(each, *alternatives, action=Pick(1))
        else:
            builder.rule(every, (), action=members.action)
        return builder.grammar(tool.name)

    def open_grammar(self, is_declared: bool) -> Grammar:
        """Any parameters, in any number; declared ones are read by their types where their text fits.

        A text that is nothing else is a raw string, whatever the schema says.
        """
        builder, of = self.builder, self.format
        json_ = OpenJson(builder)
        self._terminal("PARAMETER", of.marker(of.key_open, self._vocabulary))
        closers = [self._terminal("PARAMETER_CLOSE", self._closers[0], Role.PARAMETER_CLOSE)]
        closers += [self._terminal("PARAMETER_END", each) for each in self._closers[1:]]
        function_close = of.marker(of.function_close[0], self._vocabulary)
        if isinstance(function_close, Literal):
            function_close = of.one_of(of.function_close)
        self._terminal("FUNCTION_CLOSE", function_close, Role.CALL_CLOSE)
        properties: dict[str, Shapes] = {}
        if is_declared and of.after_json_key is None:
            for shape in objects(self._parameters):
                for name, node in shape.properties:
                    properties[name] = properties.get(name, ()) + builder.nodes(node)
        by_kinds: dict[tuple[str, ...], list[tuple[str, Member]]] = {}
        for name, shapes in properties.items():
            by_kinds.setdefault(_kinds(shapes), []).append((name, Member(name, 0)))
        alternatives: list[tuple[str, ...]] = []
        unclosed: list[tuple[str, ...]] = []

        def add(openers: Sequence[str], kinds: Sequence[str]) -> None:
            for kind in kinds:
                symbols = (
                    [value.symbol for value in self._text(Language(), "", "VALUE", None)]
                    if kind == "text"
                    else [self._open_word(json_, kind)]
                )
                if kind != "text" and isinstance(function_close, Literal | Choice):
                    unclosed.extend(("PARAMETER", *openers, symbol) for symbol in symbols)
                alternatives.extend(
                    ("PARAMETER", *openers, *((symbol,) if symbol else ()), *closers) for symbol in symbols
                )

        for kinds, members in by_kinds.items():
            add(self._openers("_".join(kinds), members, True, Key()), kinds)
        known = "|".join(re.escape(name) for name in properties)
        # Where names are told apart from values by quotes, a declared one may look like no other.
        declared = {name for shape in objects(self._parameters) for name, _ in shape.properties}
        odd = sorted(name for name in declared - set(properties) if not re.fullmatch(OTHER_KEY, name))
        others = "|".join([OTHER_KEY, *map(re.escape, odd)]) if is_declared else OTHER_KEY
        self._other_name = self._terminal(
            "OTHER_KEY", Pattern((f"(?!(?:{known})$)" if known else "") + f"(?:{others})"), Role.NAME
        )
        if of.after_json_key is None:
            add(self._other_openers(of.after_key), _ALL_KINDS)
        else:
            add(self._other_openers(of.after_key), ("text",))
            add(self._other_openers(of.after_json_key), _ALL_KINDS)
        builder.rule("start", ("parameters", "FUNCTION_CLOSE"))
        if unclosed:
            # Models forget to close a last value; where it is JSON, its end is certain.
            late = Pattern(r"\n?" + re.escape(of.function_close[0]))
            closed = self._terminal("LATE_FUNCTION_CLOSE", late, Role.CALL_CLOSE)
            builder.rule("start", ("parameters", "unclosed", closed))
            builder.rule("unclosed", *dict.fromkeys(unclosed))
        builder.rule("parameters", (), ("parameters", "parameter"))
        builder.rule("parameter", *dict.fromkeys(alternatives))
        return builder.grammar("any parameters")

    def _open_word(self, json_: OpenJson, kind: str) -> str:
        if kind == "boolean":
            return self._spelled("PARAMETER_BOOLEAN", ("true", "false"))
        if kind == "null":
            return self._spelled("PARAMETER_NULL", ("null",))
        return json_.value(kind)

    def _other_openers(self, after: Sequence[str]) -> list[str]:
        """The terminals of a name that is not declared, up to its value."""
        merged = self._merged(after)
        roles = [Role.MARKUP] * (len(merged) - 1) + [Role.PARAMETER_OPEN]
        return [
            self._other_name,
            *(self._terminal("AFTER_KEY", d, role) for d, role in zip(merged, roles, strict=True)),
        ]

    def _terminal(
        self, name: str, definition: Definition, role: Role = Role.MARKUP, predicate: Predicate | None = None
    ) -> str:
        unique = self.builder.names.terminal(name)
        return self.builder.terminal(Terminal(unique, definition, role, predicate))

    def _parts(self, values: tuple[Value, ...]) -> list[tuple[tuple[Value, ...], bool]]:
        """The readings of a value by what stands before them."""
        if self.format.after_json_key is None:
            return [(values, True)]
        parts = [(tuple(value for value in values if value.is_text is kind), kind) for kind in (True, False)]
        return [part for part in parts if part[0]]

    def _openers(
        self, name: str, members: list[tuple[str, Member]], is_text: bool, key: Predicate
    ) -> list[str]:
        """The terminals from a name to its value; `key` refuses names that may not come."""
        of = self.format
        after = self._merged(of.after_key if is_text else of.after_json_key or of.after_key)
        lead = ""
        if isinstance(after[0], Literal):
            lead, after = after[0].text, after[1:]
        words = Keys(tuple((key + lead, member) for key, member in members))
        if not after:
            return [self._terminal(f"{name}_name", words, Role.PARAMETER_OPEN, key)]
        # A name that is the beginning of another is told by the marker that follows it.
        roles = [Role.MARKUP] * (len(after) - 1) + [Role.PARAMETER_OPEN]
        return [
            self._terminal(f"{name}_name", words, predicate=Named(key)),
            *(
                self._terminal(f"{name}_after", d, role, Carry())
                for d, role in zip(after, roles, strict=True)
            ),
        ]

    # -- values

    def _values(self, shapes: Shapes, name: str) -> list[Value]:
        """The symbols that read a parameter's value: raw text for strings, JSON for the rest.

        A union keeps both readings; where a text fits both, the typed one holds.
        """
        found: list[Value] = []
        groups = constructors(shapes)
        for group in groups:
            match group[0]:
                case StringShape(language) if len(groups) == 1:
                    found += self._text(language, f"{name}_value", "VALUE", None)
                case StringShape(language):
                    found += self._text(language, f"{name}_raw_value", "RAW_VALUE", Raw())
                case EnumShape(("true", "false")):
                    found.append(Value(self._spelled("PARAMETER_BOOLEAN", ("true", "false")), False))
                case EnumShape(("null",)):
                    found.append(Value(self._spelled("PARAMETER_NULL", ("null",)), False))
                case EnumShape(texts):
                    found += self._enum(texts, name)
                case _:
                    found.append(Value(self.builder.value(group, name), False))
        return found

    def _text(self, language: Language, own: str, plain: str, predicate: Predicate | None) -> list[Value]:
        """Raw strings: `plain` names the terminals that many parameters share, `own` this one's."""
        found: list[Value] = []
        if self._by_token:
            # A token ends the value at once, so that an empty one has no terminal.
            found = [Value(_EMPTY, True)] if language.matches("") else []
            if replace(language, minimum=max(language.minimum, 1)).is_empty():
                return found
        text = TextUntil(self._stops, self.format.before, open_end=self._by_token)
        if language.wanted or language.unwanted or language.excluded:
            text = replace(text, language=language)
            return [*found, Value(self._terminal(own, text, Role.TEXT, predicate), True)]
        minimum, maximum = language.minimum, language.maximum
        bounds = f"_{minimum}_{'' if maximum is None else maximum}".rstrip("_")
        text = replace(text, minimum=minimum, maximum=maximum)
        shared = Terminal(plain if language == Language() else plain + bounds, text, Role.TEXT, predicate)
        return [*found, Value(self.builder.terminal(shared), True)]

    def _spelled(self, name: str, words: Sequence[str]) -> str:
        """JSON words with the spellings of Python that models write; they are reported as JSON."""
        choice = Choice(tuple((text, word) for word in words for text in (word, PYTHON_WORDS[word])))
        return self.builder.terminal(Terminal(name, choice, Role.JSON))

    def _enum(self, values: Sequence[str], name: str) -> list[Value]:
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
            found.append(Value(self._terminal(f"{name}_text", choice, Role.TEXT, Raw()), True))
        if words:
            found.append(Value(self._spelled(self.builder.names.terminal(f"{name}_word"), words), False))
        if others:
            choice = Choice(tuple((text, None) for text in others))
            found.append(Value(self._terminal(f"{name}_enum", choice, Role.JSON), False))
        return found
