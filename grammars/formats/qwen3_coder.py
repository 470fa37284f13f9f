"""Qwen3-Coder and its relatives: one element a parameter, values as raw text.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    <parameter=days>
    3
    </parameter>
    </function>
    </tool_call>

Exactly one line break before and after a value is markup. A raw string value ends where its close marker is
followed by the start of the next parameter or the end of the function; any other `</parameter>` is data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from larksong.engine.attributes import (
    Close,
    CollectMembers,
    Key,
    Member,
    Members,
    More,
    Pick,
    Predicate,
    Raw,
)
from larksong.engine.grammar import Grammar
from larksong.engine.terminals import Choice, Keys, Literal, Role, Terminal, TextUntil
from larksong.engine.text import Stop
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import InvalidToolName, UnsupportedKeyword
from larksong.grammars.json_rules import RuleBuilder
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

OPEN, CLOSE = "<tool_call>", "</tool_call>"
PARAMETER, PARAMETER_CLOSE = "<parameter=", "\n</parameter>\n"
FUNCTION_CLOSE = "</function>"
PYTHON_WORDS = {"true": "True", "false": "False", "null": "None"}

# A raw value commits its end at the whole marker. Where the next piece may not come (no parameter is left, or
# a required one is missing), it is refused as soon as its name stands there.
STOPS = (
    Stop((PARAMETER_CLOSE + PARAMETER).encode(), ("PARAMETER_CLOSE", "PARAMETER")),
    Stop(
        (PARAMETER_CLOSE + FUNCTION_CLOSE).encode(),
        ("PARAMETER_CLOSE", "FUNCTION_CLOSE"),
        refused_from=len(PARAMETER_CLOSE + FUNCTION_CLOSE) - 1,
    ),
)

SYSTEM = """\
# Tools

You have access to the following functions:

<tools>
{tools}
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>"""


class Qwen3Coder(WireFormat):
    """Strings are raw text, everything else is JSON."""

    name = "qwen3_coder"
    call_marker = OPEN
    function_prefixes = ("\n<function=", "<function=")
    template = """
calls: call
  | calls SEPARATOR call
call: CALL FUNCTION ARGUMENTS LINE_BREAK CALL_CLOSE

%declare CALL SEPARATOR FUNCTION ARGUMENTS LINE_BREAK CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return {
            "LINE_BREAK": Terminal("LINE_BREAK", Literal("\n")),
            "CALL_CLOSE": Terminal("CALL_CLOSE", self.marker(CLOSE, vocabulary)),
        }

    def check_names(self, tool: Tool, parameters: ObjectType) -> None:
        super().check_names(tool, parameters)
        if ">" in tool.name:
            raise InvalidToolName(
                f"{tool.name!r} cannot be a tool's name in {self.name}: it has a '>'", tool=tool.name
            )
        for name, _ in parameters.properties:
            if not name or ">" in name or not name.isprintable():
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

    def function_text(self, name: str) -> str:
        return name + ">\n"

    def arguments(self, tool: Tool, parameters: ObjectType) -> Grammar:
        builder = RuleBuilder()
        start = builder.names.rule("start")
        every = builder.names.rule(f"{tool.name}_parameters")
        each = builder.names.rule(f"{tool.name}_parameter")
        bits = {name: 1 << i for i, (name, _) in enumerate(parameters.properties)}
        seen = Members(
            sum(bits[name] for name in parameters.required), sum(bits.values()), open=False, names=tuple(bits)
        )
        for name, text, role, predicate in (
            ("PARAMETER", PARAMETER, Role.MARKUP, More()),
            ("PARAMETER_CLOSE", PARAMETER_CLOSE, Role.PARAMETER_CLOSE, None),
            ("FUNCTION_CLOSE", FUNCTION_CLOSE, Role.CALL_CLOSE, Close()),
        ):
            builder.terminal(Terminal(builder.names.terminal(name), Literal(text), role, predicate))
        by_values: dict[tuple[str, ...], list[tuple[str, Member]]] = {}
        for name, type_ in parameters.properties:
            values = tuple(_values(builder, type_, f"{tool.name}__{name}"))
            by_values.setdefault(values, []).append((name + ">\n", Member(name, bits[name])))
        alternatives = []
        for values, words in by_values.items():
            names = Terminal(
                builder.names.terminal(f"{tool.name}_{values[0]}_name"),
                Keys(tuple(words)),
                Role.PARAMETER_OPEN,
                Key(),
            )
            name, value = builder.terminal(names), values[0]
            if len(values) > 1:
                # A rule of their own, so that the readings of a value meet again where it is closed.
                value = builder.names.rule(f"{tool.name}_{value}_value")
                builder.rule(value, *((reading,) for reading in values), action=Pick(0))
            alternatives.append(("PARAMETER", name, value, "PARAMETER_CLOSE"))
        builder.rule(start, (every, "FUNCTION_CLOSE"))
        if alternatives:
            builder.rule(every, (), (every, each), action=CollectMembers(seen))
            builder.rule(each, *alternatives, action=Pick(1))
        else:
            builder.rule(every, (), action=CollectMembers(seen))
        return builder.grammar(tool.name)

    def shortest_arguments(self, parameters: ObjectType) -> str:
        written = (
            f"{PARAMETER}{name}>\n{_shortest(type_)}"
            for name, type_ in parameters.properties
            if name in parameters.required
        )
        return "".join(written) + FUNCTION_CLOSE

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        parameters = "".join(
            f"{PARAMETER}{key}>\n{value if isinstance(value, str) else json_text(value)}{PARAMETER_CLOSE}"
            for key, value in arguments.items()
        )
        return f"{OPEN}\n<function={name}>\n{parameters}{FUNCTION_CLOSE}\n{CLOSE}"

    def system_text(self, tools: Sequence[Tool]) -> str:
        blocks = []
        for tool in tools:
            parameters = json.dumps(tool.parameters, ensure_ascii=False)
            blocks.append(
                f"<function>\n<name>{tool.name}</name>\n<description>{tool.description}</description>\n"
                f"<parameters>{parameters}</parameters>\n</function>"
            )
        return SYSTEM.format(tools="\n".join(blocks))


def _values(builder: RuleBuilder, type_: Type, name: str) -> list[str]:
    """The symbols that read a parameter's value: raw text for strings, JSON for the rest.

    A union keeps both readings; where a text fits both, the typed one holds.
    """
    symbols: list[str] = []
    for option in type_.options if isinstance(type_, UnionType) else (type_,):
        match option:
            case AnyType():
                symbols += [_text(builder, StringType(), "RAW_VALUE", Raw()), builder.value(option, name)]
            case StringType() if option is type_:
                symbols.append(_text(builder, option, "VALUE", None))
            case StringType():
                symbols.append(_text(builder, option, "RAW_VALUE", Raw()))
            case EnumType(values):
                symbols += _enum(builder, values, name)
            case BooleanType():
                symbols.append(_spelled(builder, "PARAMETER_BOOLEAN", ("true", "false")))
            case NullType():
                symbols.append(_spelled(builder, "PARAMETER_NULL", ("null",)))
            case _:
                symbols.append(builder.value(option, name))
    return list(dict.fromkeys(symbols))


def _text(builder: RuleBuilder, type_: StringType, name: str, predicate: Predicate | None) -> str:
    bounds = "" if type_ == StringType() else f"_{type_.minimum}_{type_.maximum or ''}".rstrip("_")
    definition = TextUntil(STOPS, before="\n", minimum=type_.minimum, maximum=type_.maximum)
    return builder.terminal(Terminal(name + bounds, definition, Role.TEXT, predicate))


def _shortest(type_: Type) -> str:
    """The shortest text of a value, its close marker included."""
    match type_:
        case UnionType(options):
            return shorter(*map(_shortest, options))
        case StringType(0):
            return PARAMETER_CLOSE.removeprefix("\n")  # the opener's line break is that of the marker too
        case StringType():
            value = blanks(type_)
        case BooleanType():
            value = "True"
        case NullType():
            value = "None"
        case EnumType(values):
            texts = (PYTHON_WORDS.get(text) or json.loads(text) for text in values)
            value = shorter(*(text if isinstance(text, str) else json_text(text) for text in texts))
        case AnyType():
            return shorter(_shortest(StringType()), "0" + PARAMETER_CLOSE)
        case _:
            value = shortest_json(type_)
    return value + PARAMETER_CLOSE


def _spelled(builder: RuleBuilder, name: str, words: Sequence[str]) -> str:
    """JSON words with the spellings of Python that models write; they are reported as JSON."""
    choice = Choice(tuple((text, word) for word in words for text in (word, PYTHON_WORDS[word])))
    return builder.terminal(Terminal(name, choice, Role.JSON))


def _enum(builder: RuleBuilder, values: Sequence[str], name: str) -> list[str]:
    """An enum's strings are raw text, its other values JSON.

    The words of JSON are reported when they are complete, as everywhere, all else while it is read: two
    readings of a value as JSON must tell the same.
    """
    symbols = []
    strings = [text for text in (json.loads(value) for value in values) if isinstance(text, str)]
    words = [value for value in values if value in PYTHON_WORDS]
    others = [v for v in values if v not in PYTHON_WORDS and not isinstance(json.loads(v), str)]
    if strings:
        choice = Choice(tuple((text, None) for text in strings))
        texts = Terminal(builder.names.terminal(f"{name}_text"), choice, Role.TEXT, Raw())
        symbols.append(builder.terminal(texts))
    if words:
        symbols.append(_spelled(builder, builder.names.terminal(f"{name}_word"), words))
    if others:
        choice = Choice(tuple((text, None) for text in others))
        symbols.append(builder.terminal(Terminal(builder.names.terminal(f"{name}_enum"), choice, Role.JSON)))
    return symbols


FORMAT = Qwen3Coder()
