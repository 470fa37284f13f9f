"""The JSON texts that a grammar accepts are those of the values that jsonschema accepts."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from larksong.engine.engine import Engine
from larksong.engine.grammar.grammar import Grammar
from larksong.grammars.answers.response_format import response_grammar
from larksong.grammars.json.rules import json_grammar
from larksong.grammars.schema import DEFAULT_LIMITS, read_parameters
from tests.support.examples import examples
from tests.support.grammars import ended
from tests.support.schemas import (
    all_ascii,
    conforms,
    has_composite_constants,
    instances,
    load_members,
    meaning,
    near_misses,
    parameters,
    plain,
    repeats,
    schemas,
    spell,
)
from tests.support.vocabularies import vocabulary

VOCABULARY = vocabulary()
ENGINE = Engine(VOCABULARY)


def tool_grammar(schema: dict[str, Any]) -> Grammar:
    return ended(json_grammar(read_parameters(schema, "tool"), "tool"), VOCABULARY)


def accepts(part: Grammar, text: str) -> bool:
    matcher = ENGINE.matcher(part)
    for byte in text.encode():
        if not matcher.allows(byte):
            return False
        matcher.advance(byte)
    return matcher.complete


def check(part: Grammar, schema: Any, text: str) -> bool:
    """The grammar takes the text if and only if the schema takes what it says; returns which."""
    members = load_members(text)
    expected = conforms(schema, members)
    if not repeats(members):  # then our oracle must say what jsonschema does
        assert expected == Draft202012Validator(schema).is_valid(plain(members))
    assert accepts(part, text) == expected, text
    return expected


@st.composite
def spelling(draw: st.DrawFn, schema: Any, value: Any) -> str:
    ascii_only = draw(st.booleans()) and all_ascii(schema, value)
    compact = draw(st.booleans()) and not has_composite_constants(schema)
    return spell(value, Random(draw(st.integers(0, 2**32))), compact=compact, ascii_only=ascii_only)


@given(parameters(), st.data())
@examples(100)
def test_the_arguments_of_a_tool_are_accepted_if_its_schema_accepts_them(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    part, wanted = tool_grammar(schema), meaning(schema, closed=True)
    valid = data.draw(instances(wanted))
    assert Draft202012Validator(wanted).is_valid(valid)
    assert accepts(part, json.dumps(valid, ensure_ascii=False))
    check(part, wanted, data.draw(spelling(schema, valid)))
    for _ in range(3):
        changed = data.draw(near_misses(valid))
        if isinstance(changed, dict):
            event(f"a changed one is valid: {check(part, wanted, data.draw(spelling(schema, changed)))}")
        else:
            assert not accepts(part, json.dumps(changed, ensure_ascii=False))


@given(schemas(), st.data())
@examples(100)
def test_an_answer_is_accepted_if_its_schema_accepts_it(schema: dict[str, Any], data: st.DataObject) -> None:
    part, wanted = response_grammar(schema, VOCABULARY), meaning(schema)
    valid = data.draw(instances(wanted))
    check(part, wanted, data.draw(spelling(schema, valid)))
    for _ in range(3):
        changed = data.draw(spelling(schema, data.draw(near_misses(valid))))
        event(f"a changed one is valid: {check(part, wanted, changed)}")


@given(parameters(depth=1), st.data())
@examples(30)
def test_members_come_in_any_order(schema: dict[str, Any], data: st.DataObject) -> None:
    part, wanted = tool_grammar(schema), meaning(schema, closed=True)
    members = list(data.draw(instances(wanted)).items())
    assume(len(members) > 1)
    for rotation in range(len(members)):
        turned = members[rotation:] + members[:rotation]
        for order in (turned, turned[::-1]):
            assert accepts(part, json.dumps(dict(order), ensure_ascii=False))


def response(schema: Any) -> Grammar:
    return response_grammar(schema, VOCABULARY)


ACCEPTED: dict[str, tuple[Any, list[str], list[str]]] = {
    "string": ({"type": "string"}, ['""', '"a"', '"\\u00e9\\/"', '"é😀"', '"\\ud83d\\ude00"'], ["a", '"', '"\n"', '"\\x"', '"\\ud83d"', "'a'"]),
    "integer": ({"type": "integer"}, ["0", "-0", "-12", "9" * 18], ["01", "+1", "1.5", "-", "1e5", "9" * 19, ""]),
    "number": ({"type": "number"}, ["0", "-1.5", "1e5", "1E-05", "1.25e+99", "12"], [".5", "1.", "1e", "NaN", "Infinity", "0x1", "1e100", "--1"]),
    "boolean": ({"type": "boolean"}, ["true", "false"], ["True", "1", '"true"', "tru"]),
    "null": ({"type": "null"}, ["null"], ["None", "", '""']),
    "separators": ({"type": "array"}, ["[1,2]", "[1, 2]", "[]"], ["[1 ,2]", "[1,  2]", "[1,]", "[,1]", "[ ]", "[1,\n2]"]),
    "members": ({"type": "object"}, ['{"a":1}', '{"a": 1, "b": 2}', "{}", '{"": {}}'], ['{"a" :1}', "{a:1}", '{"a":1,}', "{,}", '{"a"}']),
    "any nesting": ({}, ['[[{"a": [null, {}]}]]', "1", '"x"'], ["[[]", "{]"]),
    "maxLength": ({"type": "string", "maxLength": 2}, ['""', '"ab"', '"é😀"', '"\\n\\u0041"', '"\\ud83d\\ude00a"'], ['"abc"', '"\\n\\n\\n"']),
    "maxItems": ({"type": "array", "maxItems": 1}, ["[]", "[1]", "[[1, 2]]"], ["[1, 2]"]),
    "no items": ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    "enum": ({"enum": ["a", "ab", 1, 12, None]}, ['"a"', '"ab"', "1", "12", "null"], ['"abc"', "2", "11", '"1"', '"\\u0061"']),
    "const": ({"const": {"a": [1]}}, ['{"a": [1]}'], ['{"a": [2]}', "{}"]),
    "nullable": ({"type": "integer", "nullable": True}, ["1", "null"], ['"1"']),
    "a union": ({"type": ["integer", "string", "null"]}, ["1", '"1"', "null"], ["1.5", "true", "[]"]),
    "overlapping objects": (
        {"anyOf": [
            {"type": "object", "properties": {"k": {"const": 1}, "v": {"type": "string"}}, "required": ["k", "v"], "additionalProperties": False},
            {"type": "object", "properties": {"k": {"const": 2}, "v": {"type": "integer"}}, "required": ["k", "v"], "additionalProperties": False},
        ]},
        ['{"k": 1, "v": "x"}', '{"v": 5, "k": 2}'],
        ['{"k": 1, "v": 5}', '{"v": 5, "k": 1}', '{"k": 1}', '{"k": 1, "k": 1, "v": "x"}'],
    ),
    "overlapping arrays": (
        {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "integer"}, "maxItems": 2}]},
        ["[]", '["a", "b", "c"]', "[1, 2]"],
        ["[1, 2, 3]", '["a", 1]', '[1, "a"]'],
    ),
    "a declared name that is also a free one": (
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        ['{"a": 1, "b": "x"}', '{"aa": "x"}', '{"": "x"}', '{"b": "x", "b": "y"}'],
        ['{"a": "x"}', '{"\\u0061": "x"}', '{"b": 1}', '{"a": 1, "a": 2}'],
    ),
    "names with escapes": (
        {"type": "object", "properties": {'q"\n\\é': {"type": "null"}}, "additionalProperties": False},
        ['{"q\\"\\n\\\\é": null}'],
        ['{"q\\"\\n\\\\\\u00e9": null}', "{\"q'\": null}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "taken", "refused"), ACCEPTED.values(), ids=ACCEPTED)
def test_texts_that_are_accepted_and_refused(schema: Any, taken: list[str], refused: list[str]) -> None:
    part = response(schema)
    for text in taken:
        assert accepts(part, text), text
    for text in refused:
        assert not accepts(part, text), text


@given(st.integers(2, 40), st.integers(0, 2**32))
@example(40, 0)
@examples(5)
def test_a_tool_may_have_many_parameters(size: int, seed: int) -> None:
    rng = Random(seed)
    types = ["string", "integer", "boolean", "null", "object"]
    properties = {f"parameter_{i}": {"type": rng.choice(types)} for i in range(size)}
    required = rng.sample(sorted(properties), size // 2)
    part = tool_grammar({"properties": properties, "required": required})
    values = {"string": "x", "integer": 1, "boolean": True, "null": None, "object": {}}
    everything = {name: values[sub["type"]] for name, sub in rng.sample(sorted(properties.items()), size)}
    assert accepts(part, json.dumps(everything))
    assert accepts(part, json.dumps({name: everything[name] for name in required}))
    assert not accepts(part, json.dumps({name: everything[name] for name in required[1:]}))
    assert not accepts(part, json.dumps(everything)[:-1] + f', "{required[0]}": null}}')


@pytest.mark.parametrize("wrap", ["array", "object", "both"])
def test_the_deepest_schema_that_is_read_makes_a_grammar_too(wrap: str) -> None:
    """Even where the caller is deep in its own stack, as a server is."""
    schema: Any = {"type": "string"}
    value: Any = "x"
    left = DEFAULT_LIMITS.depth - 2  # the parameter itself takes two steps
    while left >= (1 if wrap == "array" else 2):
        if wrap == "array" or (wrap == "both" and left % 3 == 0):
            schema, value, left = {"type": "array", "items": schema}, [value], left - 1
        else:
            schema, value, left = {"type": "object", "properties": {"a": schema}}, {"a": value}, left - 2

    def below(frames: int) -> None:
        if frames:
            below(frames - 1)
            return
        part = tool_grammar({"properties": {"top": schema}})
        assert accepts(part, json.dumps({"top": value}))
        assert not accepts(part, json.dumps({"top": value}).replace('"x"', "1"))

    below(250)
