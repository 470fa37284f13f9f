"""Answers that are JSON of a given schema: the whole turn, or the text of a turn that may have calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from larksong.engine.grammar.grammar import Grammar, Rule, Sub, Terminal
from larksong.engine.grammar.terminals import Role, Special
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.caching import CacheKey, per_vocabulary
from larksong.grammars.json.rules import RuleBuilder
from larksong.grammars.json.shortest import shortest_json
from larksong.grammars.schema import DEFAULT_OPTIONS, Options, Schema, Widened, read_schema

_CACHED_SCHEMAS = 256
_ANSWER = "ANSWER"

SchemaKey = CacheKey[Mapping[str, Any] | bool]

JSON_OBJECT: Mapping[str, Any] = {"type": "object"}
"""the schema of the response format `json_object`"""


def response_grammar(
    schema: Mapping[str, Any] | bool, vocabulary: Vocabulary, options: Options = DEFAULT_OPTIONS
) -> Grammar:
    """The grammar of a turn that is one JSON text of `schema`; the same object for the same schema."""
    return _response_grammar(vocabulary, _key(schema), options)


def response_widened(
    schema: Mapping[str, Any] | bool, options: Options = DEFAULT_OPTIONS
) -> tuple[Widened, ...]:
    """The keywords that the grammar of `schema` does not enforce: the answer is to be validated."""
    return _response_schema(_key(schema), options).widened


def calls_or_answer(
    calls: Grammar,
    schema: Mapping[str, Any] | bool,
    vocabulary: Vocabulary,
    options: Options = DEFAULT_OPTIONS,
) -> Grammar:
    """The grammar `calls` of a turn with tools, with a JSON text of `schema` in the place of its free text.

    Reasoning stays. No text comes before calls, since it would not be of the schema; where calls are required
    there is no answer. The same object for the same arguments.
    """
    return _calls_or_answer(vocabulary, calls, _key(schema), options)


def _key(schema: Mapping[str, Any] | bool) -> SchemaKey:
    return CacheKey(schema, json.dumps(schema))


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _response_schema(key: SchemaKey, options: Options) -> Schema:
    return read_schema(key.value, options)


@per_vocabulary(_CACHED_SCHEMAS)
def _response_grammar(vocabulary: Vocabulary, key: SchemaKey, options: Options) -> Grammar:
    schema = _response_schema(key, options)
    builder = RuleBuilder(schema)
    start = builder.names.rule("start")
    answer = builder.value(schema.shapes, "response")
    end = builder.terminal(Terminal("END", Special(vocabulary.eos_ids, "<end>")))
    builder.rule(start, (answer, end))
    return builder.grammar("response_format")


@per_vocabulary(_CACHED_SCHEMAS)
def _calls_or_answer(vocabulary: Vocabulary, calls: Grammar, key: SchemaKey, options: Options) -> Grammar:
    schema = _response_schema(key, options)
    rules = tuple(replaced for rule in calls.rules for replaced in _with_answer(rule))
    used = {name for rule in rules for name in rule.expansion}
    terminals = {name: terminal for name, terminal in calls.terminals.items() if name in used}
    # What begins a call may begin an answer, too: `[` of a list, `{"` of an object. Both are kept apart until
    # one is left, as names that are not declared are.
    terminals |= {
        name: replace(terminals[name], role=Role.BEFORE_NAME)
        for name in _openers(rules, calls) & terminals.keys()
    }
    if _ANSWER in used:
        read = key.holding(schema)
        entered = Sub(
            lambda _: _value_grammar(vocabulary, read, options),
            lambda _: shortest_json(schema, schema.shapes),
        )
        terminals[_ANSWER] = Terminal(_ANSWER, entered)
    return Grammar(rules, terminals, calls.actions, calls.start, f"{calls.title}, or an answer by schema")


@per_vocabulary(_CACHED_SCHEMAS)
def _value_grammar(vocabulary: Vocabulary, key: CacheKey[Schema], options: Options) -> Grammar:
    """The grammar of an answer in the place of text: no vocabulary is in it, but it goes with one."""
    builder = RuleBuilder(key.value)
    start = builder.names.rule("start")
    builder.rule(start, (builder.value(key.value.shapes, "response"),))
    return builder.grammar("answer")


def _openers(rules: Sequence[Rule], calls: Grammar) -> set[str]:
    """The markers with which the turn's first call may begin, those behind one that may be empty, too."""
    found: set[str] = set()
    rest, seen = [calls.start], set[str]()
    while rest:
        origin = rest.pop()
        seen.add(origin)
        for rule in rules:
            for name in rule.expansion if rule.origin == origin else ():
                if name not in calls.terminals:
                    rest += [] if name in seen else [name]
                    break
                if calls.terminals[name].role is not Role.MARKUP:
                    break
                found.add(name)
    return found


def _with_answer(rule: Rule) -> list[Rule]:
    """A rule of a turn with an answer where it ends with text, and without any other text."""
    *before, last = rule.expansion or ("",)
    if last == "END" and before and before[-1] == "CONTENT":
        return [Rule(rule.origin, (*before[:-1], _ANSWER, last))]
    if "THINK_OPEN" in before or last == "THINK_OPEN":
        # In letters, what opens reasoning is found in text; before an answer there is no text.
        return [Rule(rule.origin, tuple(name for name in rule.expansion if name != "CONTENT"))]
    empty = last == "END" and rule.origin in ("answer", "turn") and not _calls(before)
    return [] if empty or "CONTENT" in rule.expansion else [rule]


def _calls(symbols: list[str]) -> bool:
    """Whether a turn has calls: they are its only rules."""
    return any(name.islower() for name in symbols)
