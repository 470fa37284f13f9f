"""A turn that is one JSON text of a schema."""

from collections.abc import Sequence

import pytest
from tokenizers import Tokenizer

from larksong.engine.engine import Engine
from larksong.engine.events import Json
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, format_names, wire_format
from larksong.grammars.answers.response_format import calls_or_answer, response_grammar
from tests.support.vocabularies import vocabulary

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "level": {"enum": ["low", "high"]}},
    "required": ["title"],
    "additionalProperties": False,
}


def _read(vocabulary: Vocabulary, ids: Sequence[int]) -> Matcher:
    matcher = Engine(vocabulary).matcher(response_grammar(SCHEMA, vocabulary))
    for token in [*ids, *vocabulary.eos_ids]:
        matcher.advance(token)
    return matcher


def test_a_text_of_the_schema_is_a_whole_turn(byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary) -> None:
    ids = byte_tokenizer.encode('{"level": "high", "title": "x"}').ids
    assert _read(byte_vocabulary, ids).finished


def test_another_value_is_refused(byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary) -> None:
    ids = byte_tokenizer.encode('{"title": "x", "level": "middle"}').ids
    assert _read(byte_vocabulary, ids).fault is not None


def test_the_turn_cannot_end_before_the_text_does(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    ids = byte_tokenizer.encode('{"title": "x"').ids
    assert _read(byte_vocabulary, ids).fault is not None


def test_one_schema_gives_one_grammar(byte_vocabulary: Vocabulary) -> None:
    assert response_grammar(SCHEMA, byte_vocabulary) is response_grammar(dict(SCHEMA), byte_vocabulary)


@pytest.mark.parametrize("format", format_names())
def test_a_turn_with_tools_is_calls_or_an_answer_by_the_schema(format: str) -> None:
    of = vocabulary()
    engine = Engine(of)
    wire = wire_format(format)
    tools = [Tool("look_up", parameters={"type": "object", "properties": {"days": {"type": "integer"}}})]
    call = wire.render_call("look_up", {"days": 3})
    lead = "<|channel|>final<|message|>" if format == "harmony" else ""

    def accepted(policy: CallPolicy, text: str) -> bool:
        grammar = calls_or_answer(wire.grammar(tools, policy, of), SCHEMA, of)
        assert grammar is calls_or_answer(wire.grammar(tools, policy, of), dict(SCHEMA), of)
        matcher = engine.matcher(grammar)
        for token in [*text.encode(), *of.eos_ids]:
            matcher.advance(token)
        return matcher.finished

    answer = lead + '{"level": "high", "title": "x"}'
    assert accepted(CallPolicy(), answer)
    assert accepted(CallPolicy(), call)
    for wrong in (
        "",
        lead,
        lead + "Hello.",
        lead + '{"level": "high"}',
        lead + "x" + call,
        answer + "\nHello.",
    ):
        assert not accepted(CallPolicy(), wrong), wrong
    assert accepted(CallPolicy(required=True), call)
    assert not accepted(CallPolicy(required=True), answer)


@pytest.mark.parametrize("format", format_names())
def test_nothing_of_an_answer_is_lost_that_might_have_begun_a_call(format: str) -> None:
    of = vocabulary()
    wire = wire_format(format)
    tools = [Tool("look_up", parameters={"type": "object"})]
    lead = "<|channel|>final<|message|>" if format == "harmony" else ""
    for schema, answer in (
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]"),
        (SCHEMA, '{"level": "high", "title": "x"}'),
        ({"enum": ["<a", "[b"]}, '"[b"'),
    ):
        matcher = Engine(of).matcher(calls_or_answer(wire.grammar(tools, CallPolicy(), of), schema, of))
        told = [event for token in (lead + answer).encode() for event in matcher.advance(token)]
        assert b"".join(event.data for event in told if isinstance(event, Json)) == answer.encode(), schema
