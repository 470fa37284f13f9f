"""The shortest text in closed form is the one that the search over the built grammar finds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.engine import Engine
from larksong.grammars import Tool, wire_format
from larksong.grammars.json.shortest import shortest_json
from larksong.grammars.schema import read_parameters, read_schema
from tests.support.examples import examples
from tests.support.formats import every_format
from tests.support.grammars import ended
from tests.support.schemas import parameters
from tests.support.vocabularies import vocabulary

ENGINE = Engine(vocabulary())


@every_format
@given(parameters(), st.randoms(use_true_random=False))
@examples(15)
def test_closed_form_is_what_the_search_finds(name: str, schema: dict[str, Any], rng: Any) -> None:
    written = wire_format(name)
    properties = list(schema["properties"].items())
    rng.shuffle(properties)
    tool = Tool("t", parameters={**schema, "properties": dict(properties)})
    read = read_parameters(tool.parameters, "t")
    matcher = ENGINE.matcher(ended(written.arguments(tool, read), ENGINE.vocabulary))
    *pieces, end = matcher._budget_masks.completion.shortest(matcher.configuration)
    assert end in ENGINE.vocabulary.eos_ids
    assert b"".join(
        piece for piece in pieces if isinstance(piece, bytes)
    ).decode() == written.shortest_arguments(read)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "minLength": 3}, '"   "'),
        ({"type": ["string", "integer"]}, "0"),
        ({"type": "array", "minItems": 2, "items": {"type": "boolean"}}, "[true,true]"),
        ({"enum": ["yes", "no", 10]}, "10"),
        ({"type": "object", "properties": {"é": {"type": "null"}, "b": {}}, "required": ["é"]}, '{"é":null}'),
        ({}, "0"),
    ],
)
def test_shortest_json(schema: dict[str, Any], text: str) -> None:
    read = read_schema(schema)
    assert shortest_json(read, read.shapes) == text
