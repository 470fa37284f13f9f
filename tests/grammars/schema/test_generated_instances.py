"""Valid instances of random schemas, and those with one change, against jsonschema.

They come from schemathesis's generator, which knows nothing of this project. (hypothesis-jsonschema, its
forerunner, calls an interface that hypothesis no longer has.)
"""

import json
import random
from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis.core.errors import UnsupportedSchema
from schemathesis.generation.jsonschema.builder import build

from larksong.engine.engine import Engine
from larksong.grammars import InvalidSchema, Unenforceable
from larksong.grammars.answers.response_format import response_grammar
from tests.support.examples import examples
from tests.support.random_schemas import schema
from tests.support.schemas import near_misses
from tests.support.vocabularies import vocabulary

VOCABULARY = vocabulary()
ENGINE = Engine(VOCABULARY)
_VALUES = 3  # of each schema, and as many with a change


@given(st.data(), st.integers(0, 2**32))
@examples(200)
def test_generated_instances_and_their_mutations_are_judged_as_jsonschema_does(
    data: st.DataObject, seed: int
) -> None:
    drawn = schema(random.Random(seed), 3)
    check = Draft202012Validator(drawn)
    try:
        strategy = build(drawn, draft=jsonschema_rs.Draft202012, formats={})
    except UnsupportedSchema:
        return
    if strategy.is_empty:
        return
    valid = data.draw(st.lists(strategy, min_size=_VALUES, max_size=_VALUES))
    values = [*valid, *(data.draw(near_misses(value)) for value in valid)]
    try:
        grammar = response_grammar(drawn, VOCABULARY)
    except Unenforceable:
        return
    except InvalidSchema:
        assert not any(map(check.is_valid, values)), drawn
        return
    for value in values:
        if _is_plainly_spelled(value):
            text = json.dumps(value, ensure_ascii=False)
            assert _takes(grammar, text) == check.is_valid(value), (drawn, text)


def _takes(grammar: Any, text: str) -> bool:
    matcher = ENGINE.matcher(grammar)
    for byte in text.encode(errors="surrogatepass"):
        if not matcher.allows(byte):
            return False
        matcher.advance(byte)
    return bool(matcher.complete)


def _is_plainly_spelled(value: Any) -> bool:
    """Whether all numbers are written in the one way that docs/json_schema.md says."""
    if isinstance(value, dict):
        return all(map(_is_plainly_spelled, value.values()))
    if isinstance(value, list):
        return all(map(_is_plainly_spelled, value))
    if isinstance(value, float):
        return not value.is_integer() and "e" not in repr(value) and len(repr(value)) < 17
    return not isinstance(value, int) or abs(value) < 10**15
