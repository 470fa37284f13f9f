"""Hermes 2/3, Qwen2.5, Qwen3 and many fine-tunes: one JSON object a call.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}
</tool_call>
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from larksong.engine.attributes import Carry
from larksong.engine.grammar import Grammar
from larksong.engine.terminals import Literal, Pattern, Role, Terminal
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.json_rules import json_grammar
from larksong.grammars.schema import Schema
from larksong.grammars.schema.values import json_text
from larksong.grammars.shortest import shortest_json
from larksong.grammars.tools import Tool
from larksong.grammars.wire_format import WireFormat

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


class Hermes(WireFormat):
    """Strings are JSON, so the model's own text is the arguments text."""

    name = "hermes"
    call_marker = OPEN
    function_prefixes = ('\n{"name": "', '{"name": "')
    template = """
calls: call
  | calls SEPARATOR call
call: CALL FUNCTION ARGUMENTS_KEY ARGUMENTS OBJECT_CLOSE CALL_CLOSE

%declare CALL SEPARATOR FUNCTION ARGUMENTS_KEY ARGUMENTS OBJECT_CLOSE CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return {
            "ARGUMENTS_KEY": Terminal("ARGUMENTS_KEY", Literal(', "arguments": '), predicate=Carry()),
            "OBJECT_CLOSE": Terminal("OBJECT_CLOSE", Pattern(r"\}\n?"), Role.CALL_CLOSE),
            "CALL_CLOSE": Terminal("CALL_CLOSE", self.marker(CLOSE, vocabulary)),
        }

    def function_text(self, name: str) -> str:
        return json_text(name)[1:]

    def arguments(self, tool: Tool, parameters: Schema) -> Grammar:
        return json_grammar(parameters, tool.name)

    def shortest_arguments(self, parameters: Schema) -> str:
        return shortest_json(parameters, parameters.shapes)

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        text = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        return f"{OPEN}\n{text}\n{CLOSE}"

    def system_text(self, tools: Sequence[Tool]) -> str:
        lines = [
            json.dumps(
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                },
                ensure_ascii=False,
            )
            for tool in tools
        ]
        return SYSTEM.format(tools="\n".join(lines))


FORMAT = Hermes()
