"""What the formats share in which a call's arguments are one JSON object, as the model itself writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from larksong.engine.grammar.attributes import Carry
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import Definition, Role, Terminal
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.json.open_json import OpenJson
from larksong.grammars.json.rules import json_grammar
from larksong.grammars.json.shortest import shortest_json
from larksong.grammars.schema import Schema
from larksong.grammars.tools import Tool
from larksong.grammars.wire.wire_format import WireFormat


class JsonFormat(WireFormat):
    """Strings are JSON, so the model's own text is the arguments text."""

    def arguments(self, tool: Tool, parameters: Schema, vocabulary: Vocabulary | None = None) -> Grammar:
        return json_grammar(parameters, tool.name)

    def open_arguments(self, parameters: Schema | None, vocabulary: Vocabulary | None = None) -> Grammar:
        return OpenJson().grammar("object")

    def shortest_arguments(self, parameters: Schema, vocabulary: Vocabulary | None = None) -> str:
        return shortest_json(parameters, parameters.shapes)


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call as chat templates write them."""
    return json.dumps(arguments, ensure_ascii=False)


def carrying(name: str, definition: Definition) -> tuple[str, Terminal]:
    """A terminal between a function's name and its arguments: the name stays on top."""
    return name, Terminal(name, definition, predicate=Carry())


def closing(name: str, definition: Definition) -> tuple[str, Terminal]:
    """The terminal that ends a call."""
    return name, Terminal(name, definition, Role.CALL_CLOSE)
