"""A turn without calls: the wire format's reasoning, then free text or an answer with its own grammar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from larksong.engine.grammar.attributes import Action
from larksong.engine.grammar.grammar import Grammar, Rule, Terminal
from larksong.engine.grammar.terminals import TextUntil
from larksong.grammars.wire.turn_rules import TurnRules

_ANSWERED = "answered"  # the rule of an answer that has a grammar


def text_turn(turn: TurnRules, answer: Grammar | None) -> Grammar:
    """The grammar of a turn without its calls. `answer`: a grammar of whole turns, or None for free text."""
    calls = {turn.format.root, "calls"}
    rules = [rule for rule in turn.rules() if calls.isdisjoint(rule.expansion)]
    terminals = dict(turn.terminals)
    actions: Mapping[str, Action] = {}
    if answer is not None:
        rules = [replaced for rule in rules for replaced in _with_answer(rule)]
        rules += [_moved(rule) for rule in answer.rules]
        terminals |= {name: each for name, each in answer.terminals.items() if name != "END"}
        actions = answer.actions
    terminals["END"] = replace(terminals["END"], predicate=None)
    used = {name for rule in rules for name in rule.expansion}
    kept = {name: _without_calls(each, used) for name, each in terminals.items() if name in used}
    title = f"{turn.format.name}: {answer.title if answer is not None else 'text'}"
    return Grammar(tuple(rules), kept, actions, title=title)


def _with_answer(rule: Rule) -> list[Rule]:
    """The rule with the answer in the place of text; none where text is elsewhere or there is no answer."""
    if rule.expansion[-2:] == ("CONTENT", "END"):
        return [Rule(rule.origin, (*rule.expansion[:-2], _ANSWERED))]
    return [] if "CONTENT" in rule.expansion or "END" in rule.expansion else [rule]


def _moved(rule: Rule) -> Rule:
    return Rule(_ANSWERED, rule.expansion) if rule.origin == "start" else rule


def _without_calls(terminal: Terminal, used: set[str]) -> Terminal:
    """Text does not end where calls would begin."""
    definition = terminal.definition
    if not isinstance(definition, TextUntil):
        return terminal
    stops = tuple(stop for stop in definition.stops if used.issuperset(stop.terminals))
    return replace(terminal, definition=replace(definition, stops=stops))
