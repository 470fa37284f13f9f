"""From what a format's author declares to the grammars of whole turns: strict, open, and without calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache

from larksong.engine.grammar.attributes import Action, Close, CountItems, Items
from larksong.engine.grammar.grammar import Grammar, Rule, Sub, Terminal
from larksong.engine.grammar.terminals import Special
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.caching import CacheKey, per_vocabulary
from larksong.grammars.schema import Schema, read_parameters
from larksong.grammars.tools import CallPolicy, Tool
from larksong.grammars.wire.calls import (
    call_stops,
    call_terminals,
    open_call_stops,
    open_call_terminals,
    open_rules,
)
from larksong.grammars.wire.declaration import FormatDeclaration
from larksong.grammars.wire.template import template_rules
from larksong.grammars.wire.text_turn import text_turn
from larksong.grammars.wire.turn_rules import TurnRules

_CACHED_FORMATS = 64
# Of all formats together.
_CACHED_TOOLS = 4096
_CACHED_REQUESTS = 256
# So many tools are made while the request is built, hidden by the prompt's prefill; of more, those called.
_MADE_AT_ONCE = 16

ToolKey = CacheKey[Tool]
ReadTool = CacheKey[tuple[Tool, Schema]]
"""the same key, with what the tool's parameters mean"""
# Behind a call the reader begins anew: what may stand there is what may stand at the beginning.
_ALONE = CallPolicy(text_between_calls=False)


def tool_key(tool: Tool) -> ToolKey:
    """A tool as a key: equal to others of the same name, parameters and options, whatever they describe."""
    return CacheKey(tool, tool.name, json.dumps(tool.parameters), tool.options)


@lru_cache(maxsize=_CACHED_TOOLS)
def parameters_of(format: FormatDeclaration, key: ToolKey) -> Schema:
    """What a tool's parameters mean. Raises `GrammarsError` for a tool that the format cannot carry."""
    tool = key.value
    parameters = read_parameters(tool.parameters, tool.name, tool.options)
    format.check_names(tool, parameters)
    return parameters


class TurnGrammars:
    """The grammars of one format over one vocabulary: the same object for the same request.

    `around`: the rules of what stands around the calls.
    """

    def __init__(self, vocabulary: Vocabulary, format: FormatDeclaration, around: type[TurnRules]) -> None:
        self._vocabulary, self._format, self._around = vocabulary, format, around

    # -- turns

    def strict(self, tools: tuple[ToolKey, ...], policy: CallPolicy, in_reasoning: bool) -> Grammar:
        """The grammar of a turn that a mask keeps."""
        return _turn(self._vocabulary, self._strict, tools, policy, in_reasoning)

    def open(self, tools: tuple[ToolKey, ...], in_reasoning: bool, continued: bool) -> Grammar:
        """The grammar that reads a turn that nobody constrained."""
        return _turn(self._vocabulary, self._open, tools, in_reasoning, continued)

    def text(self, answer: Grammar | None, in_reasoning: bool) -> Grammar:
        """The grammar of a turn without calls."""
        return _turn(self._vocabulary, self._text, answer, in_reasoning)

    def _strict(self, tools: tuple[ToolKey, ...], policy: CallPolicy, in_reasoning: bool) -> Grammar:
        format, by_name = self._format, self._read(tools)
        if len(tools) <= _MADE_AT_ONCE:
            for tool in by_name.values():
                self._arguments(tool)
        arguments = Sub(
            choose=lambda name: self._arguments(by_name[str(name)]),
            shortest=lambda name: self._shortest(by_name[str(name)]),
        )
        terminals = call_terminals(format, self._vocabulary, tuple(by_name), arguments)
        terminals |= self._own(format.markers(self._vocabulary))
        stops = call_stops(format, terminals)
        turn = self._around(format, policy, self._vocabulary, terminals, stops, in_reasoning)
        rules = (*turn.rules(), *turn.calls(template_rules(format.template, format.root)))
        count = Items(policy.min_calls or int(policy.required), policy.max_calls)
        return self._grammar(rules, turn, by_name, {"calls": CountItems(count)} if count.cap else {})

    def _open(self, tools: tuple[ToolKey, ...], in_reasoning: bool, continued: bool) -> Grammar:
        format, by_name = self._format, self._read(tools)
        arguments = Sub(
            choose=lambda name: self._open_arguments(by_name.get(str(name))),
            shortest=lambda name: self._shortest(by_name[str(name)]),
        )
        terminals = open_call_terminals(format, self._vocabulary, tuple(by_name), arguments)
        own = (*format.markers(self._vocabulary), *format.open_markers(self._vocabulary))
        terminals |= self._own(own)
        stops = open_call_stops(format, terminals)
        turn = self._around(format, _ALONE, self._vocabulary, terminals, stops, in_reasoning)
        template = template_rules(format.open_template or format.template, format.root)
        rules = open_rules((*turn.rules(), *template), format, terminals)
        return self._grammar(turn.opened(rules, continued), turn, by_name, {})

    def _text(self, answer: Grammar | None, in_reasoning: bool) -> Grammar:
        nothing = Sub(choose=lambda _: Grammar((), {}), shortest=lambda _: "")
        terminals = call_terminals(self._format, self._vocabulary, (), nothing)
        terminals |= self._own(self._format.markers(self._vocabulary))
        stops = call_stops(self._format, terminals)
        turn = self._around(self._format, _ALONE, self._vocabulary, terminals, stops, in_reasoning)
        return text_turn(turn, answer)

    def _own(self, markers: Iterable[Terminal]) -> dict[str, Terminal]:
        """The format's own terminals, and the end of the turn."""
        end = Terminal("END", Special(self._vocabulary.eos_ids, "<end>"), predicate=Close())
        return {**{each.name: each for each in markers}, "END": end}

    def _grammar(
        self, rules: Sequence[Rule], turn: TurnRules, names: Iterable[str], actions: dict[str, Action]
    ) -> Grammar:
        used = {name for rule in rules for name in rule.expansion}
        kept = {name: terminal for name, terminal in turn.terminals.items() if name in used}
        return Grammar(tuple(rules), kept, actions, title=f"{self._format.name}: {', '.join(names)}")

    # -- arguments

    def _read(self, tools: Iterable[ToolKey]) -> dict[str, ReadTool]:
        """The tools by name."""
        return {key.value.name: key.holding((key.value, parameters_of(self._format, key))) for key in tools}

    def _arguments(self, tool: ReadTool) -> Grammar:
        return _arguments(self._vocabulary, self._format, tool)

    def _open_arguments(self, tool: ReadTool | None) -> Grammar:
        return _open_arguments(self._vocabulary, self._format, tool)

    def _shortest(self, tool: ReadTool) -> str:
        return _shortest(self._vocabulary, self._format, tool)


@per_vocabulary(_CACHED_REQUESTS)
def _turn(vocabulary: Vocabulary, make: Callable[..., Grammar], *asked: Hashable) -> Grammar:
    return make(*asked)


@per_vocabulary(_CACHED_TOOLS)
def _arguments(vocabulary: Vocabulary, format: FormatDeclaration, tool: ReadTool) -> Grammar:
    return format.arguments(*tool.value, vocabulary)


@per_vocabulary(_CACHED_TOOLS)
def _open_arguments(vocabulary: Vocabulary, format: FormatDeclaration, tool: ReadTool | None) -> Grammar:
    return format.open_arguments(tool.value[1] if tool is not None else None, vocabulary)


@per_vocabulary(_CACHED_TOOLS)
def _shortest(vocabulary: Vocabulary, format: FormatDeclaration, tool: ReadTool) -> str:
    return format.shortest_arguments(tool.value[1], vocabulary)


@per_vocabulary(_CACHED_FORMATS)
def turn_grammars(vocabulary: Vocabulary, format: FormatDeclaration, around: type[TurnRules]) -> TurnGrammars:
    """The grammars of a format over a vocabulary, kept with the vocabulary."""
    return TurnGrammars(vocabulary, format, around)
