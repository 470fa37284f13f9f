"""Hermes 2/3, Qwen2.5, Qwen3 and many fine-tunes: one JSON object a call.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}
</tool_call>
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
    tool_lines,
)

OPEN, CLOSE = "<tool_call>", "</tool_call>"

SYSTEM = """\
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


class Hermes(JsonFormat):
    name = "hermes"
    aliases = ("qwen3_json",)
    text_between_calls = True
    call_start = OPEN
    function_name_prefix = '\n{"name": "'
    open_function_name_prefixes = tuple(
        f'{blank}{{{inner}"name":{gap}"'
        for blank in ("\n", "", " ")
        for inner in ("", " ", "\n  ")
        for gap in (" ", "")
    )
    call_separator = "\n"
    template = """
calls: call
  | calls SEPARATOR call
  | calls call
call: CALL FUNCTION ARGUMENTS_KEY ARGUMENTS OBJECT_CLOSE CALL_CLOSE

%declare CALL SEPARATOR FUNCTION ARGUMENTS_KEY ARGUMENTS OBJECT_CLOSE CALL_CLOSE
"""

    open_template = """
calls: call
  | calls SEPARATOR call
  | calls call
call: CALL FUNCTION ARGUMENTS_KEY ARGUMENTS OBJECT_CLOSE CALL_CLOSE
  | CALL FUNCTION OBJECT_CLOSE CALL_CLOSE

%declare CALL SEPARATOR FUNCTION ARGUMENTS_KEY ARGUMENTS OBJECT_CLOSE CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            carrying("ARGUMENTS_KEY", Literal(', "arguments": ')),
            closing("OBJECT_CLOSE", Pattern(r"\}\n?")),
            Terminal("CALL_CLOSE", marker(CLOSE, vocabulary)),
        ]

    def open_markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            carrying("ARGUMENTS_KEY", Pattern(r'\s{0,9},\s{0,9}"arguments"\s{0,9}:\s{0,9}')),
            closing("OBJECT_CLOSE", Pattern(r"\s{0,9}\}\s{0,9}")),
        ]

    def function_text(self, name: str) -> str:
        return json_text(name)[1:]

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return f'{OPEN}\n{{"name": {json_text(name)}, "arguments": {arguments_text(arguments)}}}\n{CLOSE}'

    def system_text(self, tools: Sequence[Tool]) -> str:
        return SYSTEM.format(tools=tool_lines(tools))


FORMAT = Hermes()
