"""Gemma 4: objects with bare names, strings between tokens.

<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>

Strings are raw text between `<|"|>` tokens, with no escaping; numbers, `true`, `false` and `null` are bare;
objects and arrays nest. The arguments are reported as JSON. A tokenizer without `<|"|>` ends a string
where the
marker is followed by `,`, `}` or `]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from larksong.engine.attributes import (
    Close,
    CollectMembers,
    CountItems,
    Items,
    Key,
    Member,
    Members,
    More,
    Pick,
)
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
from larksong.grammars.json_format import closing
from larksong.grammars.json_rules import INTEGER, NUMBER, RuleBuilder
from larksong.grammars.schema import (
    AnyType,
    ArrayType,
    BooleanType,
    EnumType,
    NullType,
    NumberType,
    ObjectType,
    StringType,
    Type,
    UnionType,
    json_text,
)
from larksong.grammars.shortest import blanks, shorter
from larksong.grammars.tools import Tool
from larksong.grammars.wire_format import WireFormat, tool_lines

OPEN, CLOSE, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
UNFIT = ":{}[],<"

SYSTEM = """\
# Tools

{tools}

To call functions, write: {example}"""


class Gemma4(WireFormat):
    name = "gemma4"
    call_marker = OPEN
    function_prefixes = ("call:",)
    spelled = (QUOTE, '"')
    reasoning = ("<|channel>", "<channel|>")
    reasoning_lead = Literal("thought\n")
    template = """
calls: call
  | calls call
call: CALL FUNCTION ARGUMENTS CALL_CLOSE

%declare CALL FUNCTION ARGUMENTS CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return dict([closing("CALL_CLOSE", self.marker(CLOSE, vocabulary))])

    def check_names(self, tool: Tool, parameters: ObjectType) -> None:
        super().check_names(tool, parameters)
        self.refuse_name(tool, UNFIT)

    def function_text(self, name: str) -> str:
        return name

    def arguments(self, tool: Tool, parameters: ObjectType, vocabulary: Vocabulary | None = None) -> Grammar:
        rules = _Rules(tool.name, self.marker(QUOTE, vocabulary))
        start = rules.builder.names.rule("start")
        rules.builder.rule(start, (rules.value(parameters, tool.name),))
        return rules.builder.grammar(tool.name)

    def open_arguments(self, parameters: ObjectType | None, vocabulary: Vocabulary | None = None) -> Grammar:
        everything = ObjectType((), frozenset(), AnyType())
        return self.arguments(Tool("any"), everything, vocabulary)

    def shortest_arguments(self, parameters: ObjectType, vocabulary: Vocabulary | None = None) -> str:
        return _shortest(parameters)

    def ends_in_reasoning(self, prompt: str) -> bool:
        opened = "<|channel>thought\n"
        return prompt.endswith(opened)

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return f"{OPEN}call:{name}{_written(dict(arguments))}{CLOSE}"

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        return "".join(self.render_call(*call) for call in calls)

    def system_text(self, tools: Sequence[Tool]) -> str:
        example = self.render_call("NAME", {"text": "value", "number": 3})
        return SYSTEM.format(tools=tool_lines(tools), example=example)


class _Rules:
    """Types → rules for the family's own notation; equal types share one symbol."""

    def __init__(self, tool: str, quote: Definition) -> None:
        self.builder = RuleBuilder()
        self._tool = tool
        self._symbols: dict[Type, str] = {}
        self._by_token = isinstance(quote, Special)
        for name in ("QUOTE_OPEN", "QUOTE_CLOSE"):
            self._terminal(name, quote, says='"')
        for name, text, predicate in (
            ("LBRACE", "{", None), ("RBRACE", "}", Close()),
            ("LBRACKET", "[", None), ("RBRACKET", "]", Close()),
        ):  # fmt: skip
            self._terminal(name, Literal(text), predicate=predicate)
        self._terminal("COMMA", Literal(","), predicate=More(), says=", ")

    def _terminal(self, name: str, definition: Definition, **options: Any) -> str:
        return self.builder.terminal(
            Terminal(self.builder.names.terminal(name), definition, Role.JSON, **options)
        )

    def value(self, type_: Type, name: str) -> str:
        symbol = self._symbols.get(type_)
        if symbol is None:
            match type_:
                case ObjectType():
                    return self._object(type_, name)
                case ArrayType():
                    return self._array(type_, name)
                case AnyType():
                    return self._any()
                case UnionType(options):
                    symbol = self.builder.names.rule(name)
                    symbols = [self.value(option, f"{name}_{i}") for i, option in enumerate(options)]
                    self.builder.rule(symbol, *((each,) for each in dict.fromkeys(symbols)))
                case _:
                    symbol = self._scalar(type_, name)
            self._symbols[type_] = symbol
        return symbol

    def _scalar(self, type_: Type, name: str) -> str:
        match type_:
            case StringType():
                return self._string(type_, name)
            case NumberType(integer):
                return self._terminal(
                    "INTEGER" if integer else "NUMBER", Pattern(INTEGER if integer else NUMBER)
                )
            case BooleanType():
                return self._terminal("BOOLEAN", Choice((("true", None), ("false", None))))
            case NullType():
                return self._terminal("NULL", Choice((("null", "null"), ("None", "null"))))
            case EnumType(values):
                return self._enum([json.loads(value) for value in values], name)
        raise TypeError(f"not a scalar type: {type_!r}")

    def _string(self, type_: StringType, name: str) -> str:
        rule = self.builder.names.rule(f"{name}_string")
        bounds: dict[str, Any] = {"minimum": type_.minimum, "maximum": type_.maximum}
        if self._by_token:
            text = TextUntil(open_end=True, **bounds)
        else:
            stops = tuple(
                Stop((QUOTE + following).encode(), ("QUOTE_CLOSE", closer))
                for following, closer in ((",", "COMMA"), ("}", "RBRACE"), ("]", "RBRACKET"))
            )
            text = TextUntil(stops, **bounds)
        alternatives: list[tuple[str, ...]] = []
        if type_.maximum != 0 or not self._by_token:
            name = self.builder.names.terminal(f"{name}_text")
            symbol = self.builder.terminal(Terminal(name, text, Role.TEXT))
            alternatives.append(("QUOTE_OPEN", symbol, "QUOTE_CLOSE"))
        if type_.minimum == 0 and self._by_token:
            alternatives.append(("QUOTE_OPEN", "QUOTE_CLOSE"))
        return self.builder.rule(rule, *alternatives)

    def _enum(self, values: Sequence[Any], name: str) -> str:
        rule = self.builder.names.rule(name)
        alternatives: list[tuple[str, ...]] = []
        texts = [value for value in values if isinstance(value, str)]
        others = [value for value in values if not isinstance(value, str)]
        if any(isinstance(value, dict | list) for value in others):
            raise UnsupportedKeyword(
                f"tool {self._tool!r}: objects and arrays in an enum cannot be written in gemma4",
                tool=self._tool,
                keyword="enum",
            )
        if texts:
            words = Choice(tuple((text, None) for text in texts))
            symbol = self.builder.names.terminal(f"{name}_words")
            self.builder.terminal(Terminal(symbol, words, Role.TEXT))
            alternatives.append(("QUOTE_OPEN", symbol, "QUOTE_CLOSE"))
        if others:
            words = Choice(tuple((json_text(value), None) for value in others))
            alternatives.append((self._terminal(f"{name}_enum", words),))
        return self.builder.rule(rule, *alternatives)

    def _object(self, type_: ObjectType, name: str) -> str:
        rule = self._symbols[type_] = self.builder.names.rule(name)
        opener = self._terminal(f"{name}_lbrace", Literal("{"))
        bits = {key: 1 << i for i, (key, _) in enumerate(type_.properties)}
        # A bare name that is not declared could not be told from the beginning of a declared one: what has
        # declared members has no others.
        others = type_.additional if not bits else None
        required = sum(bits[key] for key in type_.required)
        seen = Members(required, sum(bits.values()), open=others is not None, names=tuple(bits))
        members, member = (
            self.builder.names.rule(f"{name}_members"),
            self.builder.names.rule(f"{name}_member"),
        )
        by_symbol: dict[str, list[tuple[str, Member]]] = {}
        for key, value in type_.properties:
            self._check_key(key)
            symbol = self.value(value, f"{name}__{key}")
            by_symbol.setdefault(symbol, []).append(
                (key + ":", Member(key, bits[key], f"{json_text(key)}: "))
            )
        alternatives: list[tuple[str, ...]] = []
        for symbol, words in by_symbol.items():
            keys = self._terminal(f"{name}_{symbol}_key", Keys(tuple(words)), predicate=Key())
            alternatives.append((keys, symbol))
        if others is not None:
            begin = self._terminal(f"{name}_name_begin", Pattern(""), predicate=Key(), says='"')
            other = self._terminal(f"{name}_name", Pattern(r'[^\s:{}\[\],<"\\]{1,64}'))
            end = self._terminal(f"{name}_name_end", Literal(":"), says='": ')
            alternatives.append((begin, other, end, self.value(others, f"{name}__other")))
        shapes: list[tuple[str, ...]] = [] if type_.required else [(opener, "RBRACE")]
        if alternatives:
            shapes.append((opener, members, "RBRACE"))
        self.builder.rule(rule, *shapes)
        if alternatives:
            separated = (members, "COMMA", member)
            self.builder.rule(members, (member,), separated, action=CollectMembers(seen))
            self.builder.rule(member, *alternatives, action=Pick(0))
        return rule

    def _array(self, type_: ArrayType, name: str) -> str:
        rule = self._symbols[type_] = self.builder.names.rule(name)
        counted = Items(type_.minimum, type_.maximum)
        opener = self._terminal(f"{name}_lbracket", Literal("["))
        shapes: list[tuple[str, ...]] = [] if type_.minimum else [(opener, "RBRACKET")]
        if type_.maximum != 0:
            items = self.builder.names.rule(f"{name}_items")
            item = self.value(type_.items, f"{name}_item")
            action = CountItems(counted) if counted.cap else None
            self.builder.rule(items, (item,), (items, "COMMA", item), action=action)
            shapes.append((opener, items, "RBRACKET"))
        return self.builder.rule(rule, *shapes)

    def _any(self) -> str:
        known = self._symbols[AnyType()] = self.builder.names.rule("any_value")
        kinds: tuple[Type, ...] = (
            StringType(), NumberType(integer=False), BooleanType(), NullType(),
            ObjectType((), frozenset(), AnyType()), ArrayType(AnyType()),
        )  # fmt: skip
        self.builder.rule(known, *((self.value(kind, "any"),) for kind in kinds))
        return known

    def _check_key(self, key: str) -> None:
        if not key or not key.isprintable() or any(character in key for character in UNFIT + '"\\ '):
            raise InvalidToolName(
                f"tool {self._tool!r}: {key!r} cannot be a parameter's name in gemma4",
                tool=self._tool,
                pointer="/properties/" + key.replace("~", "~0").replace("/", "~1"),
            )


def _written(value: Any) -> str:
    """A value in the family's notation."""
    if isinstance(value, str):
        return QUOTE + value + QUOTE
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    return json_text(value)


def _shortest(type_: Type) -> str:
    """The shortest text of a type."""
    match type_:
        case AnyType() | NumberType():
            return "0"
        case StringType():
            return QUOTE + blanks(type_) + QUOTE
        case BooleanType():
            return "true"
        case NullType():
            return "None"
        case EnumType(values):
            return shorter(*(_written(json.loads(value)) for value in values))
        case ArrayType(items, minimum):
            return f"[{','.join([_shortest(items)] * minimum)}]"
        case ObjectType(properties, required):
            return (
                "{"
                + ",".join(f"{key}:{_shortest(value)}" for key, value in properties if key in required)
                + "}"
            )
        case UnionType(options):
            return shorter(*map(_shortest, options))


FORMAT = Gemma4()
