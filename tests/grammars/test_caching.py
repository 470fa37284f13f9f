"""Equal requests get the same grammar; grammars and vocabularies are gone when nobody has them any more."""

import copy
import gc
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest

from larksong.engine.engine import Engine
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, format_names, wire_format
from larksong.grammars.answers.constraints import choice_grammar, lark_grammar, regex_grammar
from larksong.grammars.answers.response_format import calls_or_answer, response_grammar
from larksong.grammars.explain import Request, explain_turn
from larksong.grammars.wire.turn_grammars import parameters_of
from tests.support.markers import MARKERS
from tests.support.turns import CALLS, TOOLS
from tests.support.vocabularies import BYTES, cut_with_markers

SCHEMA = {"type": "object", "properties": {"level": {"enum": ["high", "low"]}}, "required": ["level"]}


def new_vocabulary() -> Vocabulary:
    """One that nothing else has; with the markers of all formats."""
    special = {marker: 256 + i for i, marker in enumerate((*MARKERS, "<end>"))}
    return Vocabulary(
        tokens=(*BYTES, *[b""] * len(special)),
        special=special,
        eos_ids=frozenset({special["<end>"]}),
        width=256 + len(special),
    )


def of_format(name: str, of: Vocabulary) -> Iterator[Grammar]:
    wire = wire_format(name)
    yield wire.grammar(TOOLS, CallPolicy(), of)
    yield wire.grammar(TOOLS, CallPolicy(required=True), of, in_reasoning=True)
    yield wire.open_grammar(TOOLS, of)
    yield wire.open_grammar([], of, continued=True)
    yield wire.text_grammar(of)
    yield wire.text_grammar(of, regex_grammar("[0-9]+", of))
    yield calls_or_answer(wire.grammar(TOOLS, CallPolicy(), of), SCHEMA, of)


def of_answers(of: Vocabulary) -> Iterator[Grammar]:
    yield response_grammar(SCHEMA, of)
    yield regex_grammar("a+", of)
    yield choice_grammar(["a", "b"], of)
    yield lark_grammar('start: "a" start | "b"', of)


def used(engine: Engine, grammar: Grammar, text: bytes = b"") -> None:
    """Walks a little, so that caches fill."""
    matcher = engine.matcher(grammar)
    for token in cut_with_markers(engine.vocabulary, text):
        matcher.mask()
        matcher.advance(token)


def gone(use: Callable[[Vocabulary], list[Any]]) -> bool:
    """Whether a vocabulary and all that `use` returns are collected, once nobody has them."""
    of = new_vocabulary()
    watched = [ref(of), *map(ref, use(of))]
    del of
    gc.collect()
    return not any(each() for each in watched)


@pytest.mark.parametrize("name", format_names())
def test_the_grammars_of_a_format_go_with_their_vocabulary(name: str) -> None:
    def use(of: Vocabulary) -> list[Any]:
        engine = Engine(of)
        made = list(of_format(name, of))
        text = wire_format(name).render_call(*CALLS[0]).encode()
        for grammar in made:
            used(engine, grammar, text)
        assert engine.matcher(made[0]).needed()
        return [engine, *made]

    assert gone(use)


def test_the_grammars_of_answers_go_with_their_vocabulary() -> None:
    def use(of: Vocabulary) -> list[Any]:
        engine = Engine(of)
        made = list(of_answers(of))
        for grammar in made:
            used(engine, grammar)
        return [engine, *made]

    assert gone(use)


def test_what_explains_a_refusal_goes_with_its_vocabulary() -> None:
    def use(of: Vocabulary) -> list[Any]:
        engine = Engine(of)
        request = Request(wire_format("hermes"), tuple(TOOLS))
        tokens = cut_with_markers(of, b'<tool_call>\n{"name": "get_weather", "arguments": {"unit": "k')
        assert explain_turn(request, engine, tokens).wanted
        return [engine, request.grammar(of)]

    assert gone(use)


@pytest.mark.parametrize("name", format_names())
def test_equal_requests_have_the_same_grammar(name: str) -> None:
    of = new_vocabulary()
    first, again = list(of_format(name, of)), list(of_format(name, of))
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert len({id(each) for each in first}) == len(first)


def test_a_tool_is_known_by_its_content() -> None:
    of = new_vocabulary()
    wire = wire_format("hermes")

    def grammar(tool: Tool) -> Grammar:
        return wire.grammar([tool], CallPolicy(), of)

    one = grammar(Tool("f", "What it does.", {"properties": {"a": {"type": "string"}}}))
    assert grammar(Tool("f", "Said otherwise.", {"properties": {"a": {"type": "string"}}})) is one
    assert grammar(Tool("f", "What it does.", {"properties": {"a": {"type": "integer"}}})) is not one
    assert grammar(Tool("g", "What it does.", {"properties": {"a": {"type": "string"}}})) is not one


def test_equal_answers_have_the_same_grammar() -> None:
    of = new_vocabulary()
    assert all(one is other for one, other in zip(of_answers(of), of_answers(of), strict=True))


def test_what_is_kept_of_requests_is_bounded_for_all_formats_together() -> None:
    of = new_vocabulary()
    made: list[ref[Grammar]] = []
    for number in range(60):
        tool = Tool(f"f{number}")
        made += [ref(wire_format(name).grammar([tool], CallPolicy(), of)) for name in format_names()]
    gc.collect()
    assert sum(grammar() is not None for grammar in made) <= 256


def test_a_schema_that_its_owner_changes_later_is_asked_for_as_it_was() -> None:
    of = new_vocabulary()
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    changing = Tool("f", parameters=schema)
    # So many tools that arguments are made when they are needed, and may be made anew.
    wire, others = wire_format("hermes"), [Tool(f"g{number}") for number in range(20)]
    matcher = Engine(of).matcher(wire.grammar([changing, *others], CallPolicy(required=True), of))
    schema["properties"] = {"a": {"type": "integer"}}
    of.kept.clear()
    parameters_of.cache_clear()
    for token in cut_with_markers(of, wire.render_call("f", {"a": "text"}).encode()):
        assert matcher.allows(token)
        matcher.advance(token)


def test_a_copy_of_a_vocabulary_has_nothing_that_was_made_for_it() -> None:
    of = new_vocabulary()
    wire_format("hermes").grammar([Tool("f")], CallPolicy(), of)
    assert of.kept
    for twin in (copy.copy(of), replace(of), pickle.loads(pickle.dumps(of))):
        assert (twin.tokens, twin.special, twin.width) == (of.tokens, of.special, of.width)
        assert twin.kept == {}
