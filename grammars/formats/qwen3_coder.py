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
from dataclasses import replace
from typing import Any

from larksong.engine.attributes import Close, More, Pick, Predicate, Raw
from larksong.engine.grammar import Grammar
from larksong.engine.languages import Language
from larksong.engine.terminals import Choice, Keys, Literal, Role, Terminal, TextUntil
from larksong.engine.text import Stop
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import InvalidToolName, UnsupportedKeyword
from larksong.grammars.json_rules import MemberRules, RuleBuilder, Shapes, constructors, shared_name
from larksong.grammars.schema import Schema
from larksong.grammars.schema.references import escape
from larksong.grammars.schema.shapes import EnumShape, ObjectShape, StringShape
from larksong.grammars.schema.values import json_text
from larksong.grammars.shortest import shorter, shortest_json, shortest_string
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

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        super().check_names(tool, parameters)
        if ">" in tool.name:
            raise InvalidToolName(
                f"{tool.name!r} cannot be a tool's name in {self.name}: it has a '>'", tool=tool.name
            )
        for shape in objects(parameters):
            for name, _ in shape.properties:
                if not name or ">" in name or not name.isprintable():
                    raise InvalidToolName(
                        f"tool {tool.name!r}: {name!r} cannot be a parameter's name in {self.name}",
                        tool=tool.name,
                        pointer="/properties/" + escape(name),
                    )
            if shape.free:
                raise UnsupportedKeyword(
                    f"tool {tool.name!r}: parameters that are not declared cannot be written in {self.name}",
                    tool=tool.name,
                    pointer="/additionalProperties",
                    keyword="additionalProperties",
                )

    def function_text(self, name: str) -> str:
        return name + ">\n"

    def arguments(self, tool: Tool, parameters: Schema) -> Grammar:
        builder = RuleBuilder(parameters)
        start = builder.names.rule("start")
        every = builder.names.rule(f"{tool.name}_parameters")
        each = builder.names.rule(f"{tool.name}_parameter")
        for name, text, role, predicate in (
            ("PARAMETER", PARAMETER, Role.MARKUP, More()),
            ("PARAMETER_CLOSE", PARAMETER_CLOSE, Role.PARAMETER_CLOSE, None),
            ("FUNCTION_CLOSE", FUNCTION_CLOSE, Role.CALL_CLOSE, Close()),
        ):
            builder.terminal(Terminal(builder.names.terminal(name), Literal(text), role, predicate))
        members = MemberRules(builder, objects(parameters), tool.name)
        by_values: dict[tuple[int, tuple[str, ...]], list[str]] = {}
        for (having, shapes), names in members.names().items():
            values = tuple(_values(builder, shapes, f"{tool.name}__{shared_name(names)}"))
            by_values.setdefault((having, values), []).extend(names)
        alternatives = []
        for (having, values), names in by_values.items():
            words = Keys(tuple((f"{name}>\n", members.member(name)) for name in names))
            key = members.key(f"{tool.name}_{shared_name(names)}_name", words, having)
            name, value = builder.terminal(replace(key, role=Role.PARAMETER_OPEN)), values[0]
            if len(values) > 1:
                # A rule of their own, so that the readings of a value meet again where it is closed.
                value = builder.names.rule(f"{tool.name}_{value}_value")
                builder.rule(value, *((reading,) for reading in values), action=Pick(0))
            alternatives.append(("PARAMETER", name, value, "PARAMETER_CLOSE"))
        builder.rule(start, (every, "FUNCTION_CLOSE"))
        if alternatives:
            builder.rule(every, (), (every, each), action=members.action)
            builder.rule(each, *alternatives, action=Pick(1))
        else:
            builder.rule(every, (), action=members.action)
        return builder.grammar(tool.name)

    def shortest_arguments(self, parameters: Schema) -> str:
        options = []
        for shape in objects(parameters):
            nodes = shape.nodes
            names = [name for name in nodes if name in shape.required]
            names += [name for name in nodes if name not in shape.required][
                : max(shape.minimum - len(names), 0)
            ]
            written = (
                f"{PARAMETER}{name}>\n{_shortest(parameters, parameters.nodes[nodes[name]])}"
                for name in names
            )
            options.append("".join(written) + FUNCTION_CLOSE)
        return shorter(*options)

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


def objects(parameters: Schema) -> tuple[ObjectShape, ...]:
    """What a tool's parameters may look like."""
    return tuple(shape for shape in parameters.shapes if isinstance(shape, ObjectShape))


def _values(builder: RuleBuilder, shapes: Shapes, name: str) -> list[str]:
    """The symbols that read a parameter's value: raw text for strings, JSON for the rest.

    A union keeps both readings; where a text fits both, the typed one holds.
    """
    symbols: list[str] = []
    groups = constructors(shapes)
    for group in groups:
        match group[0]:
            case StringShape(language) if len(groups) == 1:
                symbols.append(_text(builder, language, "VALUE", f"{name}_value", None))
            case StringShape(language):
                symbols.append(_text(builder, language, "RAW_VALUE", f"{name}_raw_value", Raw()))
            case EnumShape(("true", "false")):
                symbols.append(_spelled(builder, "PARAMETER_BOOLEAN", ("true", "false")))
            case EnumShape(("null",)):
                symbols.append(_spelled(builder, "PARAMETER_NULL", ("null",)))
            case EnumShape(texts):
                symbols += _enum(builder, texts, name)
            case _:
                symbols.append(builder.value(group, name))
    return list(dict.fromkeys(symbols))


def _text(
    builder: RuleBuilder, language: Language, plain: str, matched: str, predicate: Predicate | None
) -> str:
    """A terminal of raw strings: `plain` names those that parameters share, `matched` one of its own."""
    if language.wanted or language.unwanted or language.excluded:
        definition = TextUntil(STOPS, before="\n", language=language)
        own = builder.names.terminal(matched)
        return builder.terminal(Terminal(own, definition, Role.TEXT, predicate))
    minimum, maximum = language.minimum, language.maximum
    bounds = "" if language == Language() else f"_{minimum}_{'' if maximum is None else maximum}".rstrip("_")
    counted = TextUntil(STOPS, before="\n", minimum=minimum, maximum=maximum)
    return builder.terminal(Terminal(plain + bounds, counted, Role.TEXT, predicate))


def _shortest(schema: Schema, shapes: Shapes) -> str:
    """The shortest text of a value, its close marker included."""
    found: list[str] = []
    for shape in shapes:
        match shape:
            case StringShape(language):
                text = shortest_string(language)
                # After an empty value the opener's line break is that of the marker too.
                found.append(text + PARAMETER_CLOSE if text else PARAMETER_CLOSE.removeprefix("\n"))
            case EnumShape(("true", "false")):
                found.append("True" + PARAMETER_CLOSE)
            case EnumShape(("null",)):
                found.append("None" + PARAMETER_CLOSE)
            case EnumShape(texts):
                values = (PYTHON_WORDS.get(text) or json.loads(text) for text in texts)
                found += [(v if isinstance(v, str) else json_text(v)) + PARAMETER_CLOSE for v in values]
            case _:
                found.append(shortest_json(schema, (shape,)) + PARAMETER_CLOSE)
    return shorter(*found)


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
