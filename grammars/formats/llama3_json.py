"""Llama 3.1, 3.2 and 3.3: bare JSON objects, `; ` between several.

{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "get_time", "parameters": {"tz": "UTC"}}

There is no marker, and JSON may be an answer too. So text ends where `{"name": "` is followed by the whole
name of one of the request's tools; any other object is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from larksong.grammars.authoring import (
    JsonFormat,
    Literal,
    Pattern,
    Terminal,
    Tool,
    Vocabulary,
    arguments_text,
    carrying,
    closing,
    json_text,
    marker,
    one_more,
    one_of,
    tool_lines,
)

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
    call_start = '{"name": "'
    bare_json = True
    open_openings = (("PYTHON_TAG",),)
    call_separator = "; "
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

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            carrying("PARAMETERS_KEY", Literal(', "parameters": ')),
            closing("OBJECT_CLOSE", Literal("}")),
        ]

    def open_markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            carrying("PARAMETERS_KEY", Pattern(r'\s{0,9},\s{0,9}"(?:parameters|arguments)"\s{0,9}:\s{0,9}')),
            closing("OBJECT_CLOSE", Pattern(r"\s{0,9}\}")),
            Terminal("SEPARATOR", Pattern(r"\s{0,9};\s{0,9}")),
            Terminal("PYTHON_TAG", marker(PYTHON_TAG, vocabulary)),
            one_more("CALL", one_of(OPEN_CALLS)),
        ]

    def function_text(self, name: str) -> str:
        return json_text(name)[1:]

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return f'{{"name": {json_text(name)}, "parameters": {arguments_text(arguments)}}}'

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        return self.call_separator.join(self.render_call(*call) for call in calls)

    def system_text(self, tools: Sequence[Tool]) -> str:
        return SYSTEM.format(tools=tool_lines(tools))


FORMAT = Llama3Json()
