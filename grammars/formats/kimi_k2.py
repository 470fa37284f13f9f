"""Kimi K2, K2-Thinking, K2.5 and K2.7-Code: a section of calls whose headers are the calls' ids.

<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": \
"Paris"}<|tool_call_end|><|tool_calls_section_end|>

All markers are tokens. The number after the name counts the calls of the whole chat; the model writes it, and
it is markup. Clients get ids of Larksong's own; the chat's history has the model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from larksong.grammars.authoring import (
    JsonFormat,
    Pattern,
    Schema,
    Terminal,
    Tool,
    Vocabulary,
    arguments_text,
    carrying,
    closing,
    ending,
    marker,
    tool_lines,
)
from larksong.grammars.errors import InvalidToolName

SECTION, SECTION_CLOSE = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
OPEN, CLOSE = "<|tool_call_begin|>", "<|tool_call_end|>"
ARGUMENT = "<|tool_call_argument_begin|>"

_HISTORY_ID = re.compile(r"functions\.[^\s:<]+:[0-9]+")
_WRITTEN_ID = re.compile(re.escape(OPEN) + r"\s*((?:functions\.)?[^\s:<]+:[0-9]+)\s*" + re.escape(ARGUMENT))

SYSTEM = """\
# Tools

{tools}

To call functions, write one section with all calls, each with the function's name, a number that counts the \
calls, and its arguments as JSON:
{example}"""


class KimiK2(JsonFormat):
    name = "kimi_k2"
    section_start = SECTION
    text_between_calls = True
    call_start = OPEN
    function_name_prefix = "functions."
    open_function_name_prefixes = ("functions.", " functions.", "")
    open_openings = (("CALL",),)  # the section's marker may be missing
    root = "section"
    template = """
section: SECTION calls SECTION_CLOSE
calls: call
  | calls call
call: CALL FUNCTION NUMBER ARGUMENT ARGUMENTS CALL_CLOSE

%declare SECTION SECTION_CLOSE CALL FUNCTION NUMBER ARGUMENT ARGUMENTS CALL_CLOSE
"""

    open_template = """
section: SECTION calls SECTION_CLOSE
  | SECTION calls
  | calls
calls: call
  | calls call
call: CALL FUNCTION NUMBER ARGUMENT ARGUMENTS CALL_CLOSE

%declare SECTION SECTION_CLOSE CALL FUNCTION NUMBER ARGUMENT ARGUMENTS CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            carrying("NUMBER", Pattern("[0-9]{1,6}")),
            carrying("ARGUMENT", marker(ARGUMENT, vocabulary)),
            closing("CALL_CLOSE", marker(CLOSE, vocabulary)),
            ending("SECTION_CLOSE", marker(SECTION_CLOSE, vocabulary)),
        ]

    def open_markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        blanks = r"\s{0,9}"
        return [
            carrying("NUMBER", Pattern(rf"[0-9]{{1,9}}{blanks}")),
            Terminal("SECTION_CLOSE", marker(SECTION_CLOSE, vocabulary)),
        ]

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        super().check_names(tool, parameters)
        self.refuse_name(tool, ":<")
        if tool.name.startswith(self.function_name_prefix):
            # Models leave the prefix out: such a name could not be told from that of another tool.
            raise InvalidToolName(
                f"{tool.name!r} cannot be a tool's name in {self.name}: it begins with "
                f"{self.function_name_prefix!r}, which stands before every name; rename it without",
                tool=tool.name,
            )

    def function_text(self, name: str) -> str:
        return name + ":"

    def history_ids(self, calls: Sequence[tuple[str, str]]) -> dict[str, str]:
        """`functions.NAME:N`, where N counts the calls of the whole chat: the model goes on counting."""
        return {
            id: id if _HISTORY_ID.fullmatch(id) else f"functions.{name}:{number}"
            for number, (id, name) in enumerate(calls)
        }

    def written_ids(self, text: str) -> list[str]:
        return _WRITTEN_ID.findall(text)

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return self.render_calls([(name, arguments)])

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        written = (
            f"{OPEN}functions.{name}:{number}{ARGUMENT}{arguments_text(arguments)}{CLOSE}"
            for number, (name, arguments) in enumerate(calls)
        )
        return f"{SECTION}{''.join(written)}{SECTION_CLOSE}"

    def system_text(self, tools: Sequence[Tool]) -> str:
        example = f"{SECTION}{OPEN}functions.NAME:0{ARGUMENT}{{...}}{CLOSE}{SECTION_CLOSE}"
        return SYSTEM.format(tools=tool_lines(tools), example=example)


FORMAT = KimiK2()
