"""Mistral's formats, by the version of its tokenizer.

v3 (Mistral 7B v0.3, Nemo: before v11), one list:
[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "123456789"}]
v11 (Small 3.2), an id for each call:
[TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{"city": "Paris"}[TOOL_CALLS]get_time[CALL_ID]…
v13 (Devstral, Magistral, Ministral 3, Large 3):
[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_time[ARGS]{"tz": "UTC"}

The markers are tokens. Ids are nine letters and digits; they are markup, and a model may leave them out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from larksong.grammars.authoring import (
    JsonFormat,
    Literal,
    Pattern,
    Schema,
    Terminal,
    Tool,
    Vocabulary,
    arguments_text,
    carrying,
    closing,
    ending,
    json_text,
    marker,
    one_more,
    one_of,
    tool_lines,
)

OPEN, ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"

_ID_LENGTH = 9
_WRITTEN_ID = re.compile(r'(?:\[CALL_ID\]|, "id": ")([a-zA-Z0-9]{9})(?:\[ARGS\]|"\})')

# No marker ends a call: it is over when what follows begins.
NOTHING = Pattern("")

SYSTEM = """\
[AVAILABLE_TOOLS][{tools}][/AVAILABLE_TOOLS]
To call tools, answer with nothing but: {example}"""


def call_id(number: int) -> str:
    """An id of a call as these models write them."""
    return f"{number:09d}"


def _nine(id: str) -> str:
    if len(id) == _ID_LENGTH and id.isascii() and id.isalnum():
        return id
    return hashlib.sha256(id.encode(errors="replace")).hexdigest()[:_ID_LENGTH]


class _Mistral(JsonFormat):
    example: str

    def history_ids(self, calls: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Nine letters and digits: the templates refuse others."""
        return {id: _nine(id) for id, _ in calls}

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return self.render_calls([(name, arguments)])

    def written_ids(self, text: str) -> list[str]:
        return _WRITTEN_ID.findall(text)

    def system_text(self, tools: Sequence[Tool]) -> str:
        listed = tool_lines(tools).replace("\n", ", ")
        return SYSTEM.format(tools=listed, example=self.example)


class MistralV3(_Mistral):
    name = "mistral_v3"
    aliases = ("mistral_old",)
    section_start = OPEN
    call_start = '{"name": "'
    call_separator = ", "
    reasoning = None
    root = "section"
    opening = ("SECTION", "LIST_OPEN", "CALL")
    example = OPEN + '[{"name": "NAME", "arguments": {...}}]'
    template = """
section: SECTION LIST_OPEN calls LIST_CLOSE
calls: call
  | calls SEPARATOR call
call: CALL FUNCTION ARGUMENTS_KEY ARGUMENTS OBJECT_CLOSE

%declare SECTION LIST_OPEN LIST_CLOSE SEPARATOR CALL FUNCTION ARGUMENTS_KEY ARGUMENTS OBJECT_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            Terminal("LIST_OPEN", one_of(("[", " ["))),
            ending("LIST_CLOSE", Literal("]")),
            carrying("ARGUMENTS_KEY", Literal(', "arguments": ')),
            closing("OBJECT_CLOSE", Pattern(r'(?:, "id": "[a-zA-Z0-9]{9}")?\}')),
        ]

    def open_markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        blanks = r"\s{0,9}"
        id = rf'{blanks},{blanks}"id"{blanks}:{blanks}"[^"]{{0,64}}"'
        return [
            Terminal("LIST_OPEN", Pattern(rf"{blanks}\[{blanks}")),
            ending("LIST_CLOSE", Pattern(rf"{blanks}\]")),
            one_more("CALL", Pattern(rf'\{{{blanks}"name"{blanks}:{blanks}"')),
            one_more("SEPARATOR", Pattern(rf"{blanks},{blanks}")),
            carrying("ARGUMENTS_KEY", Pattern(rf'{blanks},{blanks}"arguments"{blanks}:{blanks}')),
            closing("OBJECT_CLOSE", Pattern(rf"(?:{id})?{blanks}\}}")),
        ]

    def function_text(self, name: str) -> str:
        return json_text(name)[1:]

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        written = (
            f'{{"name": {json_text(name)}, "arguments": {arguments_text(arguments)}, "id": "{call_id(n)}"}}'
            for n, (name, arguments) in enumerate(calls)
        )
        return f"{OPEN}[{', '.join(written)}]"


class MistralV13(_Mistral):
    name = "mistral_v13"
    aliases: tuple[str, ...] = ("mistral",)
    call_start = OPEN
    reasoning: tuple[str, str] | None = ("[THINK]", "[/THINK]")
    example = f"{OPEN}NAME{ARGUMENTS}{{...}}"
    template = """
calls: call
  | calls call
call: CALL FUNCTION ARGS ARGUMENTS CALL_CLOSE

%declare CALL FUNCTION ARGS ARGUMENTS CALL_CLOSE
"""

    open_template = """
calls: call
  | calls call
call: CALL FUNCTION ARGS BLANKS ARGUMENTS CALL_CLOSE
  | CALL FUNCTION BLANKS ARGUMENTS CALL_CLOSE

%declare CALL FUNCTION ARGS BLANKS ARGUMENTS CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [carrying("ARGS", marker(ARGUMENTS, vocabulary)), closing("CALL_CLOSE", NOTHING)]

    def open_markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [carrying("BLANKS", Pattern(r"\s{0,9}")), closing("CALL_CLOSE", Pattern(r"\s{0,9}"))]

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        super().check_names(tool, parameters)
        self.refuse_name(tool, "[{")

    def function_text(self, name: str) -> str:
        return name

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        return "".join(f"{OPEN}{name}{ARGUMENTS}{arguments_text(given)}" for name, given in calls)


class MistralV11(MistralV13):
    name = "mistral_v11"
    aliases = ()
    reasoning = ("<think>", "</think>")
    example = f"{OPEN}NAME{ID}{call_id(0)}{ARGUMENTS}{{...}}"
    template = """
calls: call
  | calls call
call: CALL FUNCTION CALL_ID ID ARGS ARGUMENTS CALL_CLOSE
  | CALL FUNCTION ARGS ARGUMENTS CALL_CLOSE

%declare CALL FUNCTION CALL_ID ID ARGS ARGUMENTS CALL_CLOSE
"""
    open_template = """
calls: call
  | calls call
call: CALL FUNCTION CALL_ID ID ARGS BLANKS ARGUMENTS CALL_CLOSE
  | CALL FUNCTION ARGS BLANKS ARGUMENTS CALL_CLOSE
  | CALL FUNCTION BLANKS ARGUMENTS CALL_CLOSE

%declare CALL FUNCTION CALL_ID ID ARGS BLANKS ARGUMENTS CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            carrying("CALL_ID", marker(ID, vocabulary)),
            carrying("ID", Pattern("[a-zA-Z0-9]{9}")),
            carrying("ARGS", marker(ARGUMENTS, vocabulary)),
            closing("CALL_CLOSE", NOTHING),
        ]

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        return "".join(
            f"{OPEN}{name}{ID}{call_id(number)}{ARGUMENTS}{arguments_text(given)}"
            for number, (name, given) in enumerate(calls)
        )


FORMATS = (MistralV3(), MistralV11(), MistralV13())
