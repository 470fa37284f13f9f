"""Llama 3.1, 3.2 and 3.3: bare JSON objects, `; ` between several.

{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "get_time", "parameters": {"tz": "UTC"}}

There is no marker, and JSON may be an answer too. So text ends where `{"name": "` is followed by the whole
name of one of the request's tools; any other object is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import More
from larksong.engine.grammar.terminals import Choice, Literal, Pattern, Terminal
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.schema.values import json_text
from larksong.grammars.tools import Tool
from larksong.grammars.wire.json_format import JsonFormat, arguments_text, carrying, closing
from larksong.grammars.wire.wire_format import spellings, tool_lines

SYSTEM = """\
Given the following functions, please respond with a JSON for a function call with its proper arguments that \
best answers the given prompt.

Respond in the format {{"name": function name, "parameters": dictionary of argument name and its value}}. \
Do not use variables.

{tools}"""


PYTHON_TAG = "<|python_tag|>"
OPEN_CALLS = ('{"name": "', '{"name":"', '{ "name": "', '{"type": "function", "name": "')


class Llama3Json(JsonFormat):
    name = "llama3_json"
    call_marker = '{"name": "'
    bare_calls = True
    separator = "; "
    reasoning = None
    template = """
calls: call
  | calls SEPARATOR call
call: CALL FUNCTION PARAMETERS_KEY ARGUMENTS OBJECT_CLOSE

%declare CALL SEPARATOR FUNCTION PARAMETERS_KEY ARGUMENTS OBJECT_CLOSE
"""

    open_template = """
calls: call
  | PYTHON_TAG call
  | calls SEPARATOR call
call: CALL FUNCTION PARAMETERS_KEY ARGUMENTS OBJECT_CLOSE
  | CALL FUNCTION OBJECT_CLOSE

%declare PYTHON_TAG CALL SEPARATOR FUNCTION PARAMETERS_KEY ARGUMENTS OBJECT_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return dict(
            [
                carrying("PARAMETERS_KEY", Literal(', "parameters": ')),
                closing("OBJECT_CLOSE", Literal("}")),
            ]
        )

    def open_markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return dict(
            [
                carrying(
                    "PARAMETERS_KEY", Pattern(r'\s{0,9},\s{0,9}"(?:parameters|arguments)"\s{0,9}:\s{0,9}')
                ),
                closing("OBJECT_CLOSE", Pattern(r"\s{0,9}\}")),
                ("SEPARATOR", Terminal("SEPARATOR", Pattern(r"\s{0,9};\s{0,9}"))),
                ("PYTHON_TAG", Terminal("PYTHON_TAG", self.marker(PYTHON_TAG, vocabulary))),
                ("CALL", Terminal("CALL", self.one_of(OPEN_CALLS), predicate=More())),
            ]
        )

    def stops(self, terminals: Mapping[str, Terminal]) -> tuple[Stop, ...]:
        if "OTHER_NAME" in terminals:
            tag = spellings(terminals["PYTHON_TAG"].definition)
            return (*super().stops(terminals), *(Stop(text.encode(), ("PYTHON_TAG",)) for text in tag))
        functions = terminals["FUNCTION"].definition
        assert isinstance(functions, Choice)
        words = [text.encode() for text, _ in functions.words]
        return tuple(
            Stop(
                self.call_marker.encode() + word,
                ("CALL", "FUNCTION"),
                # At the beginning of a turn such a text is a call, from the byte that makes its name certain.
                refused_from=len(self.call_marker) + _certain(word, words),
                label=name,
            )
            for word, (_, name) in zip(words, functions.words, strict=True)
        )

    def function_text(self, name: str) -> str:
        return json_text(name)[1:]

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return f'{{"name": {json_text(name)}, "parameters": {arguments_text(arguments)}}}'

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        return self.separator.join(self.render_call(*call) for call in calls)

    def system_text(self, tools: Sequence[Tool]) -> str:
        return SYSTEM.format(tools=tool_lines(tools))


def _certain(word: bytes, words: Sequence[bytes]) -> int:
    """The number of bytes of `word` with which none of the other words begins."""
    others = [other for other in words if other != word]
    return next(n for n in range(len(word) + 1) if not any(other.startswith(word[:n]) for other in others))


FORMAT = Llama3Json()
