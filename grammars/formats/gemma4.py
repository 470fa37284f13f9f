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
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from larksong.engine.automata.languages import Language
from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import Member, More
from larksong.engine.grammar.grammar import Definition, Grammar, Terminal
from larksong.engine.grammar.terminals import (
    Choice,
    JsonString,
    Keys,
    Literal,
    Pattern,
    Role,
    Special,
    TextUntil,
)
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.errors import UnsupportedKeyword
from larksong.grammars.json.members import MemberRules, Shapes, shared_name
from larksong.grammars.json.rules import ANY_SCHEMA, RuleBuilder
from larksong.grammars.json.shortest import Notation, shortest_string, shortest_text
from larksong.grammars.schema import Schema
from larksong.grammars.schema.productive import without_dead_ends
from larksong.grammars.schema.references import escape
from larksong.grammars.schema.shapes import (
    ArrayShape,
    EnumShape,
    FreeMembers,
    ObjectShape,
    Shape,
    StringShape,
)
from larksong.grammars.schema.values import json_text
from larksong.grammars.tools import Tool
from larksong.grammars.wire.markers import closing, marker
from larksong.grammars.wire.rendering import tool_lines
from larksong.grammars.wire.wire_format import WireFormat

OPEN, CLOSE, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
FORBIDDEN = ":{}[],<"
# What names look like that are not declared: they stand bare, and are reported as JSON without escapes.
OTHER_NAME = r"[^\s\x00-\x1f\x7f:{}\[\],<\"\\]{1,64}"
BARE = f"^{OTHER_NAME}$"

SYSTEM = """\
# Tools

{tools}

To call functions, write: {example}"""


class Gemma4(WireFormat):
    name = "gemma4"
    text_between_calls = True
    call_start = OPEN
    function_name_prefix = "call:"
    substitution = (QUOTE, '"')
    reasoning = ("<|channel>", "<channel|>")
    reasoning_lead = Literal("thought\n")
    template = """
calls: call
  | calls call
call: CALL FUNCTION ARGUMENTS CALL_CLOSE

%declare CALL FUNCTION ARGUMENTS CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [closing("CALL_CLOSE", marker(CLOSE, vocabulary))]

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        super().check_names(tool, parameters)
        self.refuse_name(tool, FORBIDDEN)
        shapes = [shape for found in (parameters.shapes, *parameters.nodes.values()) for shape in found]
        for shape in shapes:
            if isinstance(shape, ObjectShape):
                for name, _ in shape.properties:
                    self.refuse_parameter(tool, name, FORBIDDEN + '"\\ ', "/properties/" + escape(name))
            elif isinstance(shape, ArrayShape) and (shape.kinds or shape.distinct):
                keyword = "contains" if shape.kinds else "uniqueItems"
                raise UnsupportedKeyword(
                    f"tool {tool.name!r}: {keyword!r} cannot be enforced in gemma4",
                    tool=tool.name,
                    keyword=keyword,
                )
        if not narrowed(parameters).shapes:
            raise UnsupportedKeyword(
                f"tool {tool.name!r}: an object that has declared members can have no others in gemma4",
                tool=tool.name,
                keyword="minProperties",
            )

    def function_text(self, name: str) -> str:
        return name

    def arguments(self, tool: Tool, parameters: Schema, vocabulary: Vocabulary | None = None) -> Grammar:
        schema = narrowed(parameters)
        return _Rules(schema, marker(QUOTE, vocabulary)).whole(tool.name)

    def open_arguments(self, parameters: Schema | None, vocabulary: Vocabulary | None = None) -> Grammar:
        schema = narrowed(Schema((ObjectShape(),), ANY_SCHEMA.nodes))
        return _OpenRules(schema, marker(QUOTE, vocabulary)).whole("any")

    def shortest_arguments(self, parameters: Schema, vocabulary: Vocabulary | None = None) -> str:
        schema = narrowed(parameters)
        return shortest_text(schema, schema.shapes, NOTATION)

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


@lru_cache(maxsize=1024)
def narrowed(schema: Schema) -> Schema:
    """`schema` without what the format cannot write; no shapes are left where nothing of it can be written.

    A bare name that is not declared could not be told from the beginning of a declared one: objects that have
    declared members have no others.
    """
    root = -1
    nodes = {root: schema.shapes, **schema.nodes}
    nodes = without_dead_ends({node: _narrowed_union(shapes) for node, shapes in nodes.items()})
    return Schema(nodes.pop(root), nodes, schema.widened)


def _narrowed_union(shapes: Shapes) -> Shapes:
    declared = any(shape.properties for shape in shapes if isinstance(shape, ObjectShape))
    found: list[Shape] = []
    for shape in shapes:
        if isinstance(shape, ObjectShape):
            others = () if declared else shape.free
            bare = (replace(each.names, wanted=(*each.names.wanted, BARE)) for each in others)
            free = (
                FreeMembers(names, each.node)
                for names, each in zip(bare, others, strict=True)
                if not names.is_empty()
            )
            shape = replace(shape, free=tuple(free))
        found.append(shape)
    return tuple(found)


class _Rules(RuleBuilder):
    """Shapes → rules for the family's own notation."""

    splits = False
    colon: ClassVar[Definition] = Literal(":")
    before_name: ClassVar[Definition] = Pattern("")

    def __init__(self, schema: Schema, quote: Definition) -> None:
        super().__init__(schema)
        self._whole = schema.shapes
        self.writes_anything()
        self._by_token = isinstance(quote, Special)
        for name in ("QUOTE_OPEN", "QUOTE_CLOSE"):
            self.terminal(Terminal(name, quote, Role.JSON, reported_as='"'))
        self.comma()

    def grammar(self, title: str) -> Grammar:
        used = {symbol for rule in self.rules for symbol in rule.expansion}
        kept = {name: terminal for name, terminal in self.terminals.items() if name in used}
        return replace(super().grammar(title), terminals=kept)

    def whole(self, name: str) -> Grammar:
        """The grammar of a tool's arguments."""
        start = self.names.rule("start")
        self.rule(start, (self.value(self._whole, name),))
        return self.grammar(name)

    def comma(self) -> str:
        return self.terminal(Terminal("COMMA", Literal(","), Role.JSON, More(), reported_as=", "))

    def scalar(self, shape: Shape, name: str) -> str:
        match shape:
            case StringShape(language):
                return self._string(language, name)
            case EnumShape(("null",)):
                return self.json("NULL", Choice((("null", "null"), ("None", "null"))))
            case EnumShape(texts) if any(isinstance(json.loads(text), str) for text in texts):
                return self._enum([json.loads(text) for text in texts], name)
        return super().scalar(shape, name)

    def _string(self, language: Language, name: str) -> str:
        rule = self.names.rule(f"{name}_string")
        stops = tuple(
            Stop((QUOTE + following).encode(), ("QUOTE_CLOSE", closer))
            for following, closer in ((",", "COMMA"), ("}", "RBRACE"), ("]", "RBRACKET"))
        )
        text = TextUntil(() if self._by_token else stops, open_end=self._by_token)
        if language.wanted or language.unwanted or language.excluded:
            text = replace(text, language=language)
        else:
            text = replace(text, minimum=language.minimum, maximum=language.maximum)
        alternatives: list[tuple[str, ...]] = []
        if not self._by_token or not replace(language, minimum=max(language.minimum, 1)).is_empty():
            symbol = self._text(f"{name}_text", text)
            alternatives.append(("QUOTE_OPEN", symbol, "QUOTE_CLOSE"))
        if self._by_token and language.matches(""):
            # A terminal of its own, since other strings of a union may be empty too.
            empty = self._text(f"{name}_empty", Pattern(""))
            alternatives.append(("QUOTE_OPEN", empty, "QUOTE_CLOSE"))
        return self.rule(rule, *alternatives)

    def _text(self, name: str, definition: Definition) -> str:
        return self.terminal(Terminal(self.names.terminal(name), definition, Role.TEXT))

    def _enum(self, values: Sequence[Any], name: str) -> str:
        rule = self.names.rule(name)
        texts = Choice(tuple((value, None) for value in values if isinstance(value, str)))
        alternatives: list[tuple[str, ...]] = [
            ("QUOTE_OPEN", self._text(f"{name}_words", texts), "QUOTE_CLOSE")
        ]
        others = tuple((json_text(value), json_text(value)) for value in values if not isinstance(value, str))
        if None in values:
            others += (("None", "null"),)
        if others:
            alternatives.append((self.json(self.names.terminal(f"{name}_enum"), Choice(others)),))
        return self.rule(rule, *alternatives)

    def members(self, written: MemberRules, name: str) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for (having, shapes), names in written.names().items():
            shared = shared_name(names)
            words = tuple((f"{each}:", _told(written.member(each))) for each in names)
            key = written.key(f"{name}_{shared}_key", Keys(words), having)
            found.append((self.terminal(key), self.value(shapes, f"{name}__{shared}")))
        for (names_of, node), having in written.others.items():
            # What a name begins with comes before it is known which name it is.
            begin = replace(written.key(f"{name}_name_begin", self.before_name, having), reported_as='"')
            plain = names_of == Language(wanted=(BARE,))
            written_name = Pattern(OTHER_NAME) if plain else TextUntil(open_end=True, language=names_of)
            other = self.json(self.names.terminal(f"{name}_name"), written_name)
            colon = Terminal(
                self.names.terminal(f"{name}_name_end"), self.colon, Role.JSON, reported_as='": '
            )
            value = self.value(self.schema.shapes_of(node), f"{name}__other")
            found.append((self.terminal(begin), other, self.terminal(colon), value))
        return found


class _OpenRules(_Rules):
    """Also what nobody constrained: blanks before and after names, strings in plain quotes."""

    colon = Pattern(r":\s{0,9}")
    before_name = Pattern(r"\s{0,9}")

    def _string(self, language: Language, name: str) -> str:
        rule = super()._string(language, name)
        return self.rule(rule, (self.json("PLAIN_STRING", JsonString()),))


def _told(member: Member) -> Member:
    return member._replace(reported_as=f"{json_text(member.name)}: ")


class _Notation(Notation):
    def string(self, language: Language) -> str:
        return QUOTE + shortest_string(language) + QUOTE

    def scalar(self, text: str) -> str:
        return "None" if text == "null" else _written(json.loads(text)) if text.startswith('"') else text

    def key(self, name: str) -> str:
        return name + ":"

    def other_key(self, names: Language) -> str:
        return shortest_string(names) + ":"


NOTATION = _Notation()


def _written(value: Any) -> str:
    """A value in the family's notation."""
    if isinstance(value, str):
        return QUOTE + value + QUOTE
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    return json_text(value)


FORMAT = Gemma4()
