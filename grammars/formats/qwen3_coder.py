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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from larksong.grammars.authoring import ElementFormat, Literal, Terminal, Tool, Vocabulary, marker

OPEN, CLOSE = "<tool_call>", "</tool_call>"

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


class Qwen3Coder(ElementFormat):
    name = "qwen3_coder"
    aliases = ("qwen3_5", "qwen3_xml", "step3_5")
    text_between_calls = True
    call_start = OPEN
    function_name_prefix = "\n<function="
    open_function_name_prefixes = ("\n<function=", "<function=")
    call_separator = "\n"
    arg_name_prefix = "<parameter="
    arg_name_suffix = (">\n",)
    arg_value_suffix = ("\n</parameter>\n",)
    function_close = ("</function>",)
    suffix_overlap = "\n"
    forbidden_in_names = ">"
    template = """
calls: call
  | calls SEPARATOR call
  | calls call
call: CALL FUNCTION ARGUMENTS LINE_BREAK CALL_CLOSE

%declare CALL SEPARATOR FUNCTION ARGUMENTS LINE_BREAK CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            Terminal("LINE_BREAK", Literal("\n")),
            Terminal("CALL_CLOSE", marker(CLOSE, vocabulary)),
        ]

    def function_text(self, name: str) -> str:
        return name + ">\n"

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return f"{OPEN}\n<function={name}>\n{self.render_parameters(arguments)}\n{CLOSE}"

    def system_text(self, tools: Sequence[Tool]) -> str:
        blocks = []
        for tool in tools:
            parameters = json.dumps(tool.parameters, ensure_ascii=False)
            blocks.append(
                f"<function>\n<name>{tool.name}</name>\n<description>{tool.description}</description>\n"
                f"<parameters>{parameters}</parameters>\n</function>"
            )
        return SYSTEM.format(tools="\n".join(blocks))


FORMAT = Qwen3Coder()
