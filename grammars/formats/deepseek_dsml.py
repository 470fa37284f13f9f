"""DeepSeek's DSML (V3.2, V4, V4.1): elements that say whether a value is text or JSON.

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

V4 calls the section `tool_calls`; V4.1 writes a blank after `｜DSML｜` and `calls`, `invoke`,
`parameter`. The
flag is the schema's: text for strings, JSON for the rest, either for a union of both. A raw value ends where
its close marker is followed by the next parameter's or the end of the call.
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

DSML = "｜DSML｜"

SYSTEM = """\
## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "{section}" block like the following as part of your reply to the user:
{example}

String and scalar parameters should be specified as is without any escaping or quotes, while lists \
and objects \
should use JSON format. The "string" attribute should be set to "true" for string type parameters \
and "false" \
for other types (numbers, booleans, arrays, objects).

Here are the functions available in JSONSchema format:
<functions>
{tools}
</functions>"""


class DeepSeekDsml(ElementFormat):
    """`space`: what stands between the mark and the name of an element."""

    forbidden_in_names = '"<'
    text_between_calls = True
    root = "section"
    template = """
section: SECTION calls SECTION_CLOSE
calls: call
  | calls call
call: CALL FUNCTION ARGUMENTS LINE_BREAK

%declare SECTION SECTION_CLOSE CALL FUNCTION ARGUMENTS LINE_BREAK
"""

    def __init__(self, name: str, section: str, space: str = "", aliases: tuple[str, ...] = ()) -> None:
        open_, close = f"<{DSML}{space}", f"</{DSML}{space}"
        self.name, self.aliases = name, aliases
        self.section_start = f"{open_}{section}>\n"
        self._section_close = f"{close}{section}>"
        self.call_start = f'{open_}invoke name="'
        self.arg_name_prefix = f'{open_}parameter name="'
        self.arg_value_suffix = (f"{close}parameter>\n",)
        self.function_close = (f"{close}invoke>", f"\n{close}invoke>")

    arg_name_suffix = ('" string="true">',)
    json_arg_name_suffix = ('" string="false">',)

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            Terminal("LINE_BREAK", Literal("\n")),
            ending("SECTION_CLOSE", marker(self._section_close, vocabulary)),
        ]

    def function_text(self, name: str) -> str:
        return name + '">\n'

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return self.render_calls([(name, arguments)])

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        invokes = (
            f'{self.call_start}{name}">\n{self.render_parameters(arguments)}\n' for name, arguments in calls
        )
        return f"{self.section_start}{''.join(invokes)}{self._section_close}"

    def system_text(self, tools: Sequence[Tool]) -> str:
        value = "$PARAMETER_VALUE" + self.arg_value_suffix[0]
        parameter = f'{self.arg_name_prefix}$PARAMETER_NAME" string="true|false">{value}'
        example = (
            f'{self.section_start}{self.call_start}$FUNCTION_NAME">\n{parameter}...\n'
            f"{self.function_close[0]}\n{self._section_close}"
        )
        return SYSTEM.format(
            section=self.section_start.strip(), example=example, tools=tool_lines(tools, wrapped=False)
        )


FORMATS = (
    DeepSeekDsml("deepseek_v3_2", "function_calls"),
    DeepSeekDsml("deepseek_v4", "tool_calls", aliases=("dsv4",)),
    DeepSeekDsml("deepseek_v4_1", "calls", space=" "),
)
