"""MiniMax M2, M2.1, M2.5 and M2.7: one section with an element for each call and each parameter.

    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    <parameter name="days">3</parameter>
    </invoke>
    </minimax:tool_call>

The markers of the section and of reasoning are tokens, the elements' tags are text: a raw value ends where
`</parameter>` and a line break are followed by `<parameter name="` or `</invoke>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from larksong.grammars.authoring import (
    ElementFormat,
    Literal,
    Terminal,
    Tool,
    Vocabulary,
    ending,
    marker,
    tool_lines,
)

OPEN, CLOSE = "<minimax:tool_call>", "</minimax:tool_call>"

SYSTEM = """\
# Tools
You may call one or more tools to assist with the user query.
Here are the tools available in JSONSchema format:

<tools>
{tools}
</tools>

When making tool calls, use XML format to invoke tools and pass parameters:

<minimax:tool_call>
<invoke name="tool-name-1">
<parameter name="param-key-1">param-value-1</parameter>
<parameter name="param-key-2">param-value-2</parameter>
...
</invoke>
</minimax:tool_call>"""


class MiniMaxM2(ElementFormat):
    name = "minimax_m2"
    aliases = ("minimax_m2_1", "minimax_m2_5")
    section_start = OPEN
    text_between_calls = True
    call_start = '\n<invoke name="'
    arg_name_prefix = '<parameter name="'
    arg_name_suffix = ('">',)
    arg_value_suffix = ("</parameter>\n",)
    function_close = ("</invoke>",)
    forbidden_in_names = '"<'
    root = "section"
    template = """
section: SECTION calls LINE_BREAK SECTION_CLOSE
calls: call
  | calls call
call: CALL FUNCTION ARGUMENTS

%declare SECTION SECTION_CLOSE LINE_BREAK CALL FUNCTION ARGUMENTS
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            ending("LINE_BREAK", Literal("\n")),
            Terminal("SECTION_CLOSE", marker(CLOSE, vocabulary)),
        ]

    def function_text(self, name: str) -> str:
        return name + '">\n'

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return self.render_calls([(name, arguments)])

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        invokes = (f'\n<invoke name="{name}">\n{self.render_parameters(given)}' for name, given in calls)
        return f"{OPEN}{''.join(invokes)}\n{CLOSE}"

    def system_text(self, tools: Sequence[Tool]) -> str:
        listed = "\n".join(f"<tool>{line}</tool>" for line in tool_lines(tools, wrapped=False).splitlines())
        return SYSTEM.format(tools=listed)


FORMAT = MiniMaxM2()
