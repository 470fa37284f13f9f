"""A turn without calls: the wire format's reasoning, then free text or an answer with its own grammar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from larksong.engine.grammar.attributes import Action, Close
from larksong.engine.grammar.grammar import Grammar, Rule
from larksong.engine.grammar.terminals import Special, Terminal, TextUntil
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.tools import CallPolicy
from larksong.grammars.wire.wire_format import WireFormat

_CACHED = 256
_ANSWERED = "answered"  # the rule of an answer that has a grammar


@lru_cache(maxsize=_CACHED)
def text_grammar(
    wire_format: WireFormat,
    vocabulary: Vocabulary,
    answer: Grammar | None = None,
    *,
    in_reasoning: bool = False,
) -> Grammar:
    """The grammar of a turn of reasoning, where the format has any, and an answer without calls.

    `answer`: a grammar of whole turns (`start: … END`); None for free text, in which a call's markers are
    text unless they are tokens. It is the same object for the same arguments. `in_reasoning`: the prompt ends
    inside reasoning.
    """
    terminals = {
        **wire_format._known_terminals({}, vocabulary, False),
        **wire_format.markers(vocabulary),
        "END": Terminal("END", Special(vocabulary.eos_ids, "<end>"), predicate=Close()),
    }
    rules = wire_format.turn(CallPolicy(remarks=False), vocabulary, terminals, in_reasoning)
    calls = {wire_format.root, "calls"}
    rules = [rule for rule in rules if calls.isdisjoint(rule.expansion)]
    actions: Mapping[str, Action] = {}
    if answer is not None:
        rules = [replaced for rule in rules for replaced in _with_answer(rule)]
        rules += [_moved(rule) for rule in answer.rules]
        terminals |= {name: each for name, each in answer.terminals.items() if name != "END"}
        actions = answer.actions
    terminals["END"] = replace(terminals["END"], predicate=None)
    used = {name for rule in rules for name in rule.expansion}
    kept = {name: _without_calls(each, used) for name, each in terminals.items() if name in used}
    title = f"{wire_format.name}: {answer.title if answer is not None else 'text'}"
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
