"""Hermes 2/3, Qwen2.5, Qwen3 and many fine-tunes: one JSON object a call.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}
</tool_call>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from larksong.engine.grammar.terminals import Literal, Pattern, Terminal
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.schema.values import json_text
from larksong.grammars.tools import Tool
from larksong.grammars.wire.json_format import JsonFormat, arguments_text, carrying, closing
from larksong.grammars.wire.wire_format import tool_lines

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
    remarks = True
    call_marker = OPEN
    function_prefix = '\n{"name": "'
    open_prefixes = tuple(
        f'{blank}{{{inner}"name":{gap}"'
        for blank in ("\n", "", " ")
        for inner in ("", " ", "\n  ")
        for gap in (" ", "")
    )
    separator = "\n"
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

    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return dict(
            [
                carrying("ARGUMENTS_KEY", Literal(', "arguments": ')),
                closing("OBJECT_CLOSE", Pattern(r"\}\n?")),
                ("CALL_CLOSE", Terminal("CALL_CLOSE", self.marker(CLOSE, vocabulary))),
            ]
        )

    def open_markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return dict(
            [
                carrying("ARGUMENTS_KEY", Pattern(r'\s{0,9},\s{0,9}"arguments"\s{0,9}:\s{0,9}')),
                closing("OBJECT_CLOSE", Pattern(r"\s{0,9}\}\s{0,9}")),
            ]
        )

    def function_text(self, name: str) -> str:
        return json_text(name)[1:]

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return f'{OPEN}\n{{"name": {json_text(name)}, "arguments": {arguments_text(arguments)}}}\n{CLOSE}'

    def system_text(self, tools: Sequence[Tool]) -> str:
        return SYSTEM.format(tools=tool_lines(tools))


FORMAT = Hermes()
