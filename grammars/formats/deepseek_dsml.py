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

from larksong.engine.grammar.terminals import Literal, Terminal
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.tools import Tool
from larksong.grammars.wire.element_format import ElementFormat
from larksong.grammars.wire.wire_format import tool_lines

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

    unfit = '"<'
    remarks = True
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
        self.section_marker = f"{open_}{section}>\n"
        self._section_close = f"{close}{section}>"
        self.call_marker = f'{open_}invoke name="'
        self.key_open = f'{open_}parameter name="'
        self.value_close = (f"{close}parameter>\n",)
        self.function_close = (f"{close}invoke>", f"\n{close}invoke>")

    after_key = ('" string="true">',)
    after_json_key = ('" string="false">',)

    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return {
            "LINE_BREAK": Terminal("LINE_BREAK", Literal("\n")),
            "SECTION_CLOSE": Terminal(
                "SECTION_CLOSE", self.marker(self._section_close, vocabulary), predicate=self.enough()
            ),
        }

    def function_text(self, name: str) -> str:
        return name + '">\n'

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return self.render_calls([(name, arguments)])

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        invokes = (
            f'{self.call_marker}{name}">\n{self.render_parameters(arguments)}\n' for name, arguments in calls
        )
        return f"{self.section_marker}{''.join(invokes)}{self._section_close}"

    def system_text(self, tools: Sequence[Tool]) -> str:
        value = f'{self.key_open}$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE{self.value_close[0]}'
        example = (
            f'{self.section_marker}{self.call_marker}$FUNCTION_NAME">\n{value}...\n'
            f"{self.function_close[0]}\n{self._section_close}"
        )
        return SYSTEM.format(
            section=self.section_marker.strip(), example=example, tools=tool_lines(tools, wrapped=False)
        )


FORMATS = (
    DeepSeekDsml("deepseek_v3_2", "function_calls"),
    DeepSeekDsml("deepseek_v4", "tool_calls", aliases=("dsv4",)),
    DeepSeekDsml("deepseek_v4_1", "calls", space=" "),
)
