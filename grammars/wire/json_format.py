"""What the formats share in which a call's arguments are one JSON object, as the model itself writes it."""

from __future__ import annotations

from larksong.engine.grammar.grammar import Grammar
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
