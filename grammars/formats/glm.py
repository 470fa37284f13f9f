"""GLM 4.5 and 4.6, and GLM 4.7, 5 and their relatives: keys and values between tokens.

    <tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>

4.5 and 4.6 write line breaks between the elements:

    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Paris</arg_value>
    </tool_call>

All markers are tokens of the models' own tokenizers, so a value ends by token id and the same letters are
data. Where a tokenizer lacks them, a value ends where `</arg_value>` is followed by `<arg_key>` or
`</tool_call>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from larksong.grammars.authoring import ElementFormat, Terminal, Tool, Vocabulary, tool_lines

OPEN, CLOSE = "<tool_call>", "</tool_call>"

SYSTEM = """\
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, output the function name and arguments within the following XML format:
{example}"""


class Glm47(ElementFormat):
    name = "glm_4_7"
    aliases: tuple[str, ...] = ("glm47", "glm_5")
    line_break: ClassVar[str] = ""
    text_between_calls = True
    call_start = OPEN
    arg_name_prefix = "<arg_key>"
    arg_name_suffix: tuple[str, ...] = ("</arg_key>", "<arg_value>")
    arg_value_suffix: tuple[str, ...] = ("</arg_value>",)
    function_close = (CLOSE,)
    forbidden_in_names = "<"
    template = """
calls: call
  | calls call
call: CALL FUNCTION ARGUMENTS

%declare CALL FUNCTION ARGUMENTS
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return ()

    def function_text(self, name: str) -> str:
        return name + self.line_break

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return f"{OPEN}{name}{self.line_break}{self.render_parameters(arguments)}"

    def system_text(self, tools: Sequence[Tool]) -> str:
        pairs = "".join(
            f"<arg_key>{{arg-key-{i}}}</arg_key>{self.line_break}"
            f"<arg_value>{{arg-value-{i}}}</arg_value>{self.line_break}"
            for i in (1, 2)
        )
        example = f"{OPEN}{{function-name}}{self.line_break}{pairs}...{self.line_break}{CLOSE}"
        return SYSTEM.format(tools=tool_lines(tools), example=example)


class Glm45(Glm47):
    name = "glm_4_5"
    aliases = ("glm45", "glm_4_6", "poolside_v1")
    line_break = "\n"
    call_separator = "\n"
    arg_name_suffix = ("</arg_key>", "\n", "<arg_value>")
    arg_value_suffix = ("</arg_value>", "\n")
    template = """
calls: call
  | calls SEPARATOR call
call: CALL FUNCTION ARGUMENTS

%declare CALL SEPARATOR FUNCTION ARGUMENTS
"""


FORMATS = (Glm45(), Glm47())
