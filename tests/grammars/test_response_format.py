"""A turn that is one JSON text of a schema."""

from collections.abc import Sequence

from tokenizers import Tokenizer

from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.response_format import response_grammar

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
