"""What a module that defines a wire format imports (see docs/adding_a_format.md)."""

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.grammar import Definition, Grammar, Rule, Terminal
from larksong.engine.grammar.terminals import Choice, Literal, Pattern, Role, Special, TextUntil
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.schema import Schema
from larksong.grammars.schema.values import json_text
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire.element_format import ElementFormat
from larksong.grammars.wire.json_format import JsonFormat
from larksong.grammars.wire.markers import carrying, closing, ending, marker, one_more, one_of
from larksong.grammars.wire.rendering import arguments_text, tool_lines
from larksong.grammars.wire.turn_rules import TurnRules
from larksong.grammars.wire.wire_format import WireFormat

__all__ = [
    "CallPolicy",
    "Choice",
    "Definition",
    "ElementFormat",
    "Grammar",
    "JsonFormat",
    "Literal",
    "Pattern",
    "Role",
    "Rule",
    "Schema",
    "Special",
    "Stop",
    "Terminal",
    "TextUntil",
    "Tool",
    "TurnRules",
    "Vocabulary",
    "WireFormat",
    "arguments_text",
    "carrying",
    "closing",
    "ending",
    "json_text",
    "marker",
    "one_more",
    "one_of",
    "tool_lines",
]
