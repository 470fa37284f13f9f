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
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from larksong.engine.attributes import Carry, Close, CollectMembers, Key, Member, Members, More, Named, Pick
from larksong.engine.grammar import Grammar
from larksong.engine.terminals import (
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
from larksong.engine.text import Stop
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import InvalidToolName, UnsupportedKeyword
from larksong.grammars.json_rules import RuleBuilder
from larksong.grammars.open_json import OpenJson
from larksong.grammars.schema import (
    AnyType,
    BooleanType,
    EnumType,
    NullType,
    ObjectType,
    StringType,
    Type,
    UnionType,
    json_text,
)
from larksong.grammars.shortest import blanks, shorter, shortest_json
from larksong.grammars.tools import Tool
from larksong.grammars.wire_format import WireFormat

_EMPTY = ""
"""the symbol of an empty raw value, which has no terminal where a token ends values"""


OTHER_KEY = r"[^\s\x00-\x1f\x7f<>\"=]{1,128}"


def _kinds(type_: Type) -> tuple[str, ...]:
    """The kinds of JSON value that a type has, and raw text at last."""
    match type_:
        case UnionType(options):
            found = tuple(dict.fromkeys(kind for option in options for kind in _kinds(option)))
            return (*(kind for kind in found if kind != "text"), "text")
        case AnyType():
            return ("object", "array", "string", "number", "boolean", "null", "text")
        case EnumType(values):
            kinds = [_KINDS[type(json.loads(value))] for value in values]
            return (*dict.fromkeys(kind for kind in kinds if kind != "text"), "text")
        case StringType():
            return ("text",)
    names = {"ObjectType": "object", "ArrayType": "array", "NumberType": "number", "BooleanType": "boolean"}
    return (names.get(type(type_).__name__, "null"), "text")


_KINDS: dict[type, str] = {
    dict: "object", list: "array", str: "text", int: "number", float: "number", bool: "boolean",
    type(None): "null",
}  # fmt: skip


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

    def check_names(self, tool: Tool, parameters: ObjectType) -> None:
        super().check_names(tool, parameters)
        self.refuse_name(tool, self.unfit)
        for name, _ in parameters.properties:
            if not name or not name.isprintable() or any(character in name for character in self.unfit):
                raise InvalidToolName(
                    f"tool {tool.name!r}: {name!r} cannot be a parameter's name in {self.name}",
                    tool=tool.name,
                    pointer="/properties/" + name.replace("~", "~0").replace("/", "~1"),
                )
        if parameters.additional is not None:
            raise UnsupportedKeyword(
                f"tool {tool.name!r}: parameters that are not declared cannot be written in {self.name}",
                tool=tool.name,
                pointer="/additionalProperties",
                keyword="additionalProperties",
            )

    def arguments(self, tool: Tool, parameters: ObjectType, vocabulary: Vocabulary | None = None) -> Grammar:
        return _Parameters(self, vocabulary).grammar(tool, parameters)

    def open_arguments(self, parameters: ObjectType | None, vocabulary: Vocabulary | None = None) -> Grammar:
        return _Parameters(self, vocabulary).open_grammar(parameters)

    def shortest_arguments(self, parameters: ObjectType, vocabulary: Vocabulary | None = None) -> str:
        written = (
            self.key_open + name + self._shortest_value(type_)
            for name, type_ in parameters.properties
            if name in parameters.required
        )
        return "".join(written) + min(self.function_close, key=len)

    def _shortest_value(self, type_: Type) -> str:
        """The shortest text of a value, with what stands around it."""
        after, after_json = "".join(self.after_key), "".join(self.after_json_key or self.after_key)
        close = "".join(self.value_close)
        match type_:
            case UnionType(options):
                return shorter(*map(self._shortest_value, options))
            case StringType(0):
                return after + close.removeprefix(self.before)  # the opener's end is the marker's start
            case StringType():
                return after + blanks(type_) + close
            case BooleanType():
                return after_json + "True" + close
            case NullType():
                return after_json + "None" + close
            case EnumType(values):
                texts = [json.loads(value) for value in values]
                return shorter(
                    *(
                        after + text + close
                        if isinstance(text, str)
                        else after_json + json_text(text) + close
                        for text in texts
                    )
                )
            case AnyType():
                return shorter(self._shortest_value(StringType()), after_json + "0" + close)
        return after_json + shortest_json(type_) + close

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


class _Parameters:
    """Writes the grammar of one tool's parameters."""

    def __init__(self, of: ElementFormat, vocabulary: Vocabulary | None) -> None:
        self.format = of
        self.builder = RuleBuilder()
        self._vocabulary = vocabulary
        self._closers = self._merged(of.value_close)
        self._by_token = isinstance(self._closers[0], Special)
        self._stops = () if self._by_token else self._letter_stops()

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

    def _letter_stops(self) -> tuple[Stop, ...]:
        # A raw value commits its end at the whole marker. Where the next piece may not come (no parameter is
        # left, or a required one is missing), it is refused as soon as its name stands there.
        of = self.format
        close = "".join(of.value_close)
        function = close + of.function_close[0]
        return (
            Stop((close + of.key_open).encode(), ("PARAMETER_CLOSE", "PARAMETER")),
            Stop(
                function.encode(),
                ("PARAMETER_CLOSE", "FUNCTION_CLOSE"),
                refused_from=len(function.encode()) - 1,
            ),
        )

    def grammar(self, tool: Tool, parameters: ObjectType) -> Grammar:
        builder, of = self.builder, self.format
        start = builder.names.rule("start")
        every = builder.names.rule(f"{tool.name}_parameters")
        each = builder.names.rule(f"{tool.name}_parameter")
        bits = {name: 1 << i for i, (name, _) in enumerate(parameters.properties)}
        seen = Members(
            sum(bits[name] for name in parameters.required), sum(bits.values()), open=False, names=tuple(bits)
        )
        key_open = of.marker(of.key_open, self._vocabulary)
        function_close = of.marker(of.function_close[0], self._vocabulary)
        if isinstance(function_close, Literal):
            function_close = of.one_of(of.function_close)
        self._terminal("PARAMETER", key_open, predicate=More())
        closers = [self._terminal("PARAMETER_CLOSE", self._closers[0], Role.PARAMETER_CLOSE)]
        closers += [self._terminal("PARAMETER_END", each) for each in self._closers[1:]]
        self._terminal("FUNCTION_CLOSE", function_close, Role.CALL_CLOSE, Close())
        groups: dict[tuple[tuple[Value, ...], bool], list[tuple[str, Member]]] = {}
        for name, type_ in parameters.properties:
            values = tuple(dict.fromkeys(self._values(type_, f"{tool.name}__{name}")))
            for part, is_text in self._parts(values):
                groups.setdefault((part, is_text), []).append((name, Member(name, bits[name])))
        alternatives = []
        for (values, is_text), members in groups.items():
            openers = self._openers(f"{tool.name}_{values[0].symbol or 'empty'}", members, is_text)
            for value in values:
                symbols = (value.symbol,) if value.symbol else ()
                alternatives.append(("PARAMETER", *openers, *symbols, *closers))
        builder.rule(start, (every, "FUNCTION_CLOSE"))
        if alternatives:
            builder.rule(every, (), (every, each), action=CollectMembers(seen))
            builder.rule(each, *alternatives, action=Pick(1))
        else:
            builder.rule(every, (), action=CollectMembers(seen))
        return builder.grammar(tool.name)

    def open_grammar(self, parameters: ObjectType | None) -> Grammar:
        """Any parameters, in any number; those of `parameters` are read by their types where their text fits.

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
        properties = parameters.properties if parameters is not None and of.after_json_key is None else ()
        by_kinds: dict[tuple[str, ...], list[tuple[str, Member]]] = {}
        for name, type_ in properties:
            by_kinds.setdefault(_kinds(type_), []).append((name, Member(name, 0)))
        alternatives: list[tuple[str, ...]] = []
        unclosed: list[tuple[str, ...]] = []

        def add(openers: Sequence[str], kinds: Sequence[str]) -> None:
            for kind in kinds:
                symbols = (
                    [value.symbol for value in self._text(StringType())]
                    if kind == "text"
                    else [self._open_word(json_, kind)]
                )
                if kind != "text" and isinstance(function_close, Literal | Choice):
                    unclosed.extend(("PARAMETER", *openers, symbol) for symbol in symbols)
                alternatives.extend(
                    ("PARAMETER", *openers, *((symbol,) if symbol else ()), *closers) for symbol in symbols
                )

        for kinds, members in by_kinds.items():
            add(self._openers("_".join(kinds), members, True), kinds)
        known = "|".join(re.escape(name) for name, _ in properties)
        self._other_name = self._terminal(
            "OTHER_KEY", Pattern((f"(?!(?:{known})$)" if known else "") + OTHER_KEY), Role.NAME
        )
        if of.after_json_key is None:
            add(
                self._other_openers(of.after_key),
                ("object", "array", "string", "number", "boolean", "null", "text"),
            )
        else:
            add(self._other_openers(of.after_key), ("text",))
            kinds = ("object", "array", "string", "number", "boolean", "null", "text")
            add(self._other_openers(of.after_json_key), kinds)
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
            return self._spelled("PARAMETER_BOOLEAN", ("true", "false", "True", "False"))
        if kind == "null":
            return self._spelled("PARAMETER_NULL", ("null", "None"))
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
        self, name: str, definition: Definition, role: Role = Role.MARKUP, predicate: Any = None
    ) -> str:
        unique = self.builder.names.terminal(name)
        return self.builder.terminal(Terminal(unique, definition, role, predicate))

    def _parts(self, values: tuple[Value, ...]) -> list[tuple[tuple[Value, ...], bool]]:
        """The readings of a value by what stands before them."""
        if self.format.after_json_key is None:
            return [(values, True)]
        parts = [(tuple(value for value in values if value.is_text is kind), kind) for kind in (True, False)]
        return [part for part in parts if part[0]]

    def _openers(self, name: str, members: list[tuple[str, Member]], is_text: bool) -> list[str]:
        """The terminals from a name to its value."""
        of = self.format
        after = self._merged(of.after_key if is_text else of.after_json_key or of.after_key)
        lead = ""
        if isinstance(after[0], Literal):
            lead, after = after[0].text, after[1:]
        words = Keys(tuple((key + lead, member) for key, member in members))
        if not after:
            return [self._terminal(f"{name}_name", words, Role.PARAMETER_OPEN, Key())]
        # A name that is the beginning of another is told by the marker that follows it.
        roles = [Role.MARKUP] * (len(after) - 1) + [Role.PARAMETER_OPEN]
        return [
            self._terminal(f"{name}_name", words, predicate=Named()),
            *(
                self._terminal(f"{name}_after", d, role, Carry())
                for d, role in zip(after, roles, strict=True)
            ),
        ]

    # -- values

    def _values(self, type_: Type, name: str) -> list[Value]:
        """The symbols that read a parameter's value: raw text for strings, JSON for the rest.

        A union keeps both readings; where a text fits both, the typed one holds.
        """
        found: list[Value] = []
        for option in type_.options if isinstance(type_, UnionType) else (type_,):
            match option:
                case AnyType():
                    found += [*self._text(StringType()), Value(self.builder.value(option, name), False)]
                case StringType():
                    found += self._text(option)
                case EnumType(values):
                    found += self._enum(values, name)
                case BooleanType():
                    words = ("true", "false", "True", "False")
                    found.append(Value(self._spelled("PARAMETER_BOOLEAN", words), False))
                case NullType():
                    found.append(Value(self._spelled("PARAMETER_NULL", ("null", "None")), False))
                case _:
                    found.append(Value(self.builder.value(option, name), False))
        return found

    def _text(self, type_: StringType) -> list[Value]:
        bounds = "" if type_ == StringType() else f"_{type_.minimum}_{type_.maximum or ''}".rstrip("_")
        if not self._by_token:
            text = TextUntil(self._stops, self.format.before, minimum=type_.minimum, maximum=type_.maximum)
            return [Value(self.builder.terminal(Terminal(f"VALUE{bounds}", text, Role.TEXT)), True)]
        found = [] if type_.minimum else [Value(_EMPTY, True)]
        if type_.maximum != 0:
            text = TextUntil(open_end=True, minimum=type_.minimum, maximum=type_.maximum)
            found.append(Value(self.builder.terminal(Terminal(f"VALUE{bounds}", text, Role.TEXT)), True))
        return found

    def _spelled(self, name: str, words: Sequence[str]) -> str:
        """JSON words with the spellings of Python that models write; they are reported as JSON."""
        spellings = {"True": "true", "False": "false", "None": "null"}
        choice = Choice(tuple((word, spellings.get(word, word)) for word in words))
        return self.builder.terminal(Terminal(name, choice, Role.JSON))

    def _enum(self, values: Sequence[str], name: str) -> list[Value]:
        """An enum's strings are raw text, its other values JSON."""
        found = []
        strings = [text for text in (json.loads(value) for value in values) if isinstance(text, str)]
        others = [value for value in values if not isinstance(json.loads(value), str)]
        if strings:
            choice = Choice(tuple((text, None) for text in strings))
            found.append(Value(self._terminal(f"{name}_text", choice, Role.TEXT), True))
        if others:
            choice = Choice(tuple((text, None) for text in others))
            found.append(Value(self._terminal(f"{name}_enum", choice, Role.JSON), False))
        return found
