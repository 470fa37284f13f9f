"""gpt-oss: messages in channels; a call is a message to a function.

<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather \
<|constrain|>json<|message|>{"city": "Paris"}<|call|>

The recipient may also stand before the channel, as the family's own chat template writes it:

<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}<|call|>

All markers are tokens. The prompt ends with `<|start|>assistant`. The `analysis` channel is reasoning,
`final`
and messages to nobody on `commentary` are visible text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from larksong.grammars.authoring import (
    JsonFormat,
    Literal,
    Role,
    Rule,
    Schema,
    Special,
    Stop,
    Terminal,
    TextUntil,
    Tool,
    TurnRules,
    Vocabulary,
    arguments_text,
    carrying,
    closing,
    marker,
    one_more,
    one_of,
)

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
END, CALL = "<|end|>", "<|call|>"

SYSTEM = """\
# Tools

Calls to these tools must go to the commentary channel: 'functions'. A call is a message of its \
own, with the \
arguments as JSON:
{example}

## functions

{tools}"""


class HarmonyTurn(TurnRules):
    """A turn of messages in channels."""

    def calls(self, template: tuple[Rule, ...]) -> tuple[Rule, ...]:
        return template  # text between calls is a message of its own

    def rules(self) -> list[Rule]:
        self._add_terminals()
        next_message = ("END_MESSAGE", "START", "ASSISTANT", "turn")
        turns: list[tuple[str, ...]] = [
            ("calls", "END"),
            ("CHANNEL", "ANALYSIS", "MESSAGE", "REASONING", *next_message),
            ("CHANNEL", "ANALYSIS", "MESSAGE", *next_message),
        ]
        if not self.policy.required:
            turns.append(("CHANNEL", "COMMENTARY", "MESSAGE", "CONTENT", *next_message))
            if not self.policy.min_calls:
                turns.append(("CHANNEL", "FINAL", "MESSAGE", "CONTENT", "END"))
                turns.append(("CHANNEL", "FINAL", "MESSAGE", "END"))
        if self.has_text_between_calls and self.policy.max_calls is None:
            # The calls behind a message are counted anew.
            turns += [("calls", "START", "ASSISTANT", *each) for each in turns if each[0] == "CHANNEL"]
        starts: list[tuple[str, ...]] = [("turn",)]
        if self.in_reasoning:
            starts = [("REASONING", *next_message), next_message]
        return [*(Rule("start", each) for each in starts), *(Rule("turn", each) for each in turns)]

    def _add_terminals(self) -> None:
        end_message = marker(END, self.vocabulary)
        stops = () if isinstance(end_message, Special) else (Stop(END.encode(), ("END_MESSAGE",)),)
        text = TextUntil(stops, open_end=True)
        # `<|call|>` is among the tokens that end a turn; here it ends a call, and more may follow.
        ends = self.vocabulary.eos_ids - {self.vocabulary.special.get(CALL, -1)}
        end = Special(ends or self.vocabulary.eos_ids, "<end>")
        self.terminals |= {
            "END_MESSAGE": carrying("END_MESSAGE", end_message),
            "ANALYSIS": Terminal("ANALYSIS", Literal("analysis")),
            "FINAL": Terminal("FINAL", Literal("final")),
            "REASONING": Terminal("REASONING", text, Role.REASONING),
            "CONTENT": Terminal("CONTENT", text, Role.CONTENT),
            "END": replace(self.terminals["END"], definition=end),
        }

    def opened(self, rules: Sequence[Rule], continued: bool) -> Sequence[Rule]:
        stops = [
            Stop(text.encode(), (name,))
            for name, text in (("CHANNEL", CHANNEL), ("START", START))
            if not isinstance(self.terminals[name].definition, Special)
        ]
        # Text cannot begin as a call does; further on the same words are text.
        stops.append(Stop(self.format.call_start.encode(), ("CALL",), initial=True))
        self.terminals["PLAIN"] = Terminal("PLAIN", TextUntil(tuple(stops), open_end=True), Role.CONTENT)
        more = [("END",), ("PLAIN", "END"), ("PLAIN", "turn"), ("PLAIN", "START", "ASSISTANT", "turn")]
        begins_anew = Rule("start", ("turn",)) in rules
        found = [*rules, *(Rule("start", each) for each in more if begins_anew)]
        for rule in rules:
            if rule.origin != "turn":
                continue
            if rule.expansion[0] == "CHANNEL":
                found.append(Rule("turn", ("calls", "START", "ASSISTANT", *rule.expansion)))
            if "FINAL" in rule.expansion:
                closed = (*rule.expansion[:-1], "END_MESSAGE", "END")
                found += [Rule("turn", closed), Rule("turn", ("calls", "START", "ASSISTANT", *closed))]
        return found


class Harmony(JsonFormat):
    name = "harmony"
    aliases = ("gpt_oss",)
    text_between_calls = True
    call_start = " to=functions."
    call_separator = f"{START}assistant"
    reasoning = (f"{CHANNEL}analysis{MESSAGE}", END)
    turn_rules = HarmonyTurn
    template = """
calls: call
  | calls START ASSISTANT call
call: CHANNEL TO FUNCTION MESSAGE ARGUMENTS CALL_CLOSE
  | CHANNEL TO FUNCTION JSON_WORD MESSAGE ARGUMENTS CALL_CLOSE
  | CHANNEL TO FUNCTION BLANK CONSTRAIN JSON MESSAGE ARGUMENTS CALL_CLOSE
  | CHANNEL TO FUNCTION CONSTRAIN JSON MESSAGE ARGUMENTS CALL_CLOSE
  | CALL FUNCTION CHANNEL COMMENTARY MESSAGE ARGUMENTS CALL_CLOSE
  | CALL FUNCTION CHANNEL COMMENTARY JSON_WORD MESSAGE ARGUMENTS CALL_CLOSE
  | CALL FUNCTION CHANNEL COMMENTARY BLANK CONSTRAIN JSON MESSAGE ARGUMENTS CALL_CLOSE

%declare START ASSISTANT CHANNEL TO CALL FUNCTION COMMENTARY JSON_WORD BLANK CONSTRAIN JSON MESSAGE ARGUMENTS
%declare CALL_CLOSE
"""

    def markers(self, vocabulary: Vocabulary) -> Iterable[Terminal]:
        return [
            one_more("START", marker(START, vocabulary)),
            Terminal("ASSISTANT", Literal("assistant")),
            carrying("CHANNEL", marker(CHANNEL, vocabulary)),
            Terminal("TO", one_of(("commentary to=functions.", "analysis to=functions."))),
            carrying("COMMENTARY", Literal("commentary")),
            carrying("JSON_WORD", Literal(" json")),
            carrying("BLANK", Literal(" ")),
            carrying("CONSTRAIN", marker(CONSTRAIN, vocabulary)),
            carrying("JSON", Literal("json")),
            carrying("MESSAGE", marker(MESSAGE, vocabulary)),
            closing("CALL_CLOSE", marker(CALL, vocabulary)),
        ]

    def reasons(self, vocabulary: Vocabulary) -> bool:
        """Always: text without a channel is no turn."""
        return True

    def check_names(self, tool: Tool, parameters: Schema) -> None:
        super().check_names(tool, parameters)
        self.refuse_name(tool, " <")

    def function_text(self, name: str) -> str:
        return name

    def render_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        header = f"{CHANNEL}commentary to=functions.{name} {CONSTRAIN}json{MESSAGE}"
        return f"{header}{arguments_text(arguments)}{CALL}"

    def render_calls(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
        return self.call_separator.join(self.render_call(*call) for call in calls)

    def system_text(self, tools: Sequence[Tool]) -> str:
        listed = [
            f"### {tool.name}\n{tool.description}\n{json.dumps(tool.parameters, ensure_ascii=False)}"
            for tool in tools
        ]
        return SYSTEM.format(example=self.render_call("NAME", {}), tools="\n\n".join(listed))


FORMAT = Harmony()
