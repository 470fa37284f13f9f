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

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import Carry, More
from larksong.engine.grammar.grammar import Rule
from larksong.engine.grammar.terminals import Literal, Role, Special, Terminal, TextUntil
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.schema import Schema
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire.json_format import JsonFormat, arguments_text, carrying, closing

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


class Harmony(JsonFormat):
    name = "harmony"
    aliases = ("gpt_oss",)
    remarks = True
    call_marker = " to=functions."
    separator = f"{START}assistant"
    reasoning = (f"{CHANNEL}analysis{MESSAGE}", END)
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

    def markers(self, vocabulary: Vocabulary) -> Mapping[str, Terminal]:
        return dict(
            [
                ("START", Terminal("START", self.marker(START, vocabulary), predicate=More())),
                ("ASSISTANT", Terminal("ASSISTANT", Literal("assistant"))),
                carrying("CHANNEL", self.marker(CHANNEL, vocabulary)),
                ("TO", Terminal("TO", self.one_of(("commentary to=functions.", "analysis to=functions.")))),
                carrying("COMMENTARY", Literal("commentary")),
                carrying("JSON_WORD", Literal(" json")),
                carrying("BLANK", Literal(" ")),
                carrying("CONSTRAIN", self.marker(CONSTRAIN, vocabulary)),
                carrying("JSON", Literal("json")),
                carrying("MESSAGE", self.marker(MESSAGE, vocabulary)),
                closing("CALL_CLOSE", self.marker(CALL, vocabulary)),
            ]
        )

    def _with_remarks(self, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        return rules  # they are messages of their own

    def turn(
        self,
        policy: CallPolicy,
        vocabulary: Vocabulary,
        terminals: dict[str, Terminal],
        in_reasoning: bool,
    ) -> list[Rule]:
        end_message = self.marker(END, vocabulary)
        stops = () if isinstance(end_message, Special) else (Stop(END.encode(), ("END_MESSAGE",)),)
        terminals["END_MESSAGE"] = Terminal("END_MESSAGE", end_message, predicate=Carry())
        terminals["ANALYSIS"] = Terminal("ANALYSIS", Literal("analysis"))
        terminals["FINAL"] = Terminal("FINAL", Literal("final"))
        terminals["REASONING"] = Terminal("REASONING", TextUntil(stops, open_end=True), Role.REASONING)
        terminals["CONTENT"] = Terminal("CONTENT", TextUntil(stops, open_end=True), Role.CONTENT)
        # `<|call|>` is among the tokens that end a turn; here it ends a call, and more may follow.
        ends = vocabulary.eos_ids - {vocabulary.special.get(CALL, -1)}
        terminals["END"] = replace(terminals["END"], definition=Special(ends or vocabulary.eos_ids, "<end>"))
        next_message = ("END_MESSAGE", "START", "ASSISTANT", "turn")
        turns: list[tuple[str, ...]] = [
            ("calls", "END"),
            ("CHANNEL", "ANALYSIS", "MESSAGE", "REASONING", *next_message),
            ("CHANNEL", "ANALYSIS", "MESSAGE", *next_message),
        ]
        if not policy.required:
            turns.append(("CHANNEL", "COMMENTARY", "MESSAGE", "CONTENT", *next_message))
            if not policy.min_calls:
                turns.append(("CHANNEL", "FINAL", "MESSAGE", "CONTENT", "END"))
                turns.append(("CHANNEL", "FINAL", "MESSAGE", "END"))
        if self.has_remarks(policy) and policy.max_calls is None:
            # The calls behind a message are counted anew.
            turns += [("calls", "START", "ASSISTANT", *each) for each in turns if each[0] == "CHANNEL"]
        starts: list[tuple[str, ...]] = [("turn",)]
        if in_reasoning:
            starts = [("REASONING", *next_message), next_message]
        return [*(Rule("start", each) for each in starts), *(Rule("turn", each) for each in turns)]

    def opened_turn(
        self, rules: tuple[Rule, ...], terminals: dict[str, Terminal], continued: bool
    ) -> tuple[Rule, ...]:
        markers = [("CHANNEL", CHANNEL), ("START", START)]
        stops = [
            Stop(text.encode(), (name,))
            for name, text in markers
            if not isinstance(terminals[name].definition, Special)
        ]
        # Text cannot begin as a call does; further on the same words are text.
        stops.append(Stop(self.call_marker.encode(), ("CALL",), initial=True))
        terminals["PLAIN"] = Terminal("PLAIN", TextUntil(tuple(stops), open_end=True), Role.CONTENT)
        more = [("END",), ("PLAIN", "END"), ("PLAIN", "turn"), ("PLAIN", "START", "ASSISTANT", "turn")]
        begins_anew = Rule("start", ("turn",)) in rules
        found = [*rules, *(Rule("start", each) for each in more if begins_anew)]
        for rule in rules:
            if rule.origin != "turn":
                continue
            if rule.expansion[0] == "CHANNEL":
                found.append(Rule("turn", ("calls", "START", "ASSISTANT", *rule.expansion)))
            if "FINAL" in rule.expansion:
                found.append(Rule("turn", (*rule.expansion[:-1], "END_MESSAGE", "END")))
                found.append(
                    Rule("turn", ("calls", "START", "ASSISTANT", *rule.expansion[:-1], "END_MESSAGE", "END"))
                )
        return tuple(found)

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
        return self.separator.join(self.render_call(*call) for call in calls)

    def system_text(self, tools: Sequence[Tool]) -> str:
        listed = [
            f"### {tool.name}\n{tool.description}\n{json.dumps(tool.parameters, ensure_ascii=False)}"
            for tool in tools
        ]
        return SYSTEM.format(example=self.render_call("NAME", {}), tools="\n\n".join(listed))


FORMAT = Harmony()
