"""JSON Schema: what each keyword accepts, what is refused or widened, what hostile schemas cost."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from larksong.engine.engine import Engine
from larksong.grammars import (
    CallPolicy,
    InvalidSchema,
    Options,
    Tool,
    Unenforceable,
    UnsupportedKeyword,
    wire_format,
)
from larksong.grammars.answers.response_format import response_grammar, response_widened
from larksong.grammars.schema import read_parameters
from tests.support.examples import examples
from tests.support.hostile_schemas import HOSTILE, Cost, costs
from tests.support.random_schemas import instance, schema
from tests.support.vocabularies import vocabulary

VOCABULARY = vocabulary()
ENGINE = Engine(VOCABULARY)
EXACT, WIDEN = Options(), Options(widen=True)


def accepts(schema_: Any, text: str, options: Options = EXACT) -> bool:
    return takes(ENGINE.matcher(response_grammar(schema_, VOCABULARY, options)), text)


def takes(matcher: Any, text: str) -> bool:
    for byte in text.encode():
        if not matcher.allows(byte):
            return False
        matcher.advance(byte)
    return bool(matcher.complete)


CASES: dict[str, tuple[Any, list[str], list[str]]] = {
    "pattern": ({"type": "string", "pattern": "^a+$"}, ['"a"', '"aaa"'], ['""', '"b"', "1"]),
    "pattern is a search": ({"type": "string", "pattern": "x"}, ['"axb"'], ['"ab"']),
    "pattern and length": ({"type": "string", "pattern": "^a", "maxLength": 2}, ['"a"', '"ab"'], ['"abc"', '"b"']),
    "a long bound": ({"type": "string", "maxLength": 65536}, ['"' + "x" * 65536 + '"'], ['"' + "x" * 65537 + '"']),
    "date": ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"', '"2023-13-01"']),
    "unknown format": ({"type": "string", "format": "colour"}, ['"red"'], ["1"]),
    "minimum": ({"type": "integer", "minimum": -5, "maximum": 12}, ["-5", "0", "12"], ["-6", "13", "1.5"]),
    "exclusive": ({"type": "number", "exclusiveMinimum": 0}, ["0.1", "1e5", "12"], ["0", "-1", "0.0"]),
    "draft 4 exclusive": ({"type": "number", "minimum": 2, "exclusiveMinimum": True}, ["2.1", "3"], ["2", "1"]),
    "multipleOf": ({"type": "number", "multipleOf": 0.25}, ["0.5", "-0.75", "12", "1.50"], ["0.3", "0.1"]),
    "tuple": (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 1},
        ['["a"]', '["a", 1]'],
        ["[]", "[1]", '["a", 1, 2]', '["a", "b"]'],
    ),
    "contains": (
        {"type": "array", "contains": {"type": "integer"}, "maxContains": 2, "maxItems": 3},
        ["[1]", '["a", 1]', '[1, "a", 2]'],
        ["[]", '["a"]', "[1, 2, 3]", '["a", "b", "c"]'],
    ),
    "uniqueItems": (
        {"type": "array", "items": {"enum": ["a", "b", 1]}, "uniqueItems": True, "minItems": 1},
        ['["a"]', '["b", 1, "a"]'],
        ["[]", '["a", "a"]', '["a", 1, "a"]'],
    ),
    "patternProperties": (
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
        ["{}", '{"xa": 1}'],
        ['{"xa": "b"}', '{"a": 1}'],
    ),
    "propertyNames": ({"type": "object", "propertyNames": {"maxLength": 2}}, ['{"ab": 1}'], ['{"abc": 1}']),
    "member counts": (
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False, "minProperties": 1, "maxProperties": 2},
        ['{"a": 1}', '{"c": 1, "a": 2}'],
        ["{}", '{"a": 1, "b": 2, "c": 3}'],
    ),
    "dependentRequired": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}},
        ["{}", '{"b": 1}', '{"a": 1, "b": 1}', '{"b": 1, "a": 1}'],
        ['{"a": 1}'],
    ),
    "allOf": (
        {"allOf": [{"type": "object", "properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"type": "integer"}}}], "required": ["a"]},
        ['{"a": 1}'],
        ['{"a": 0}', '{"a": "x"}', "{}"],
    ),
    "oneOf of numbers": ({"oneOf": [{"type": "integer"}, {"minimum": 2}], "type": "number"}, ["1", "2.5"], ["3", "1.5"]),
    "oneOf of required": (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a": 1}', '{"b": 1, "c": 2}'],
        ["{}", '{"a": 1, "b": 2}', '{"b": 1, "a": 2}'],
    ),
    "not": ({"not": {"type": ["string", "object"]}}, ["1", "null", "[]"], ['"a"', "{}"]),
    "not required": ({"type": "object", "not": {"required": ["a", "b"]}}, ["{}", '{"a": 1}'], ['{"a": 1, "b": 2}']),
    "not enum": ({"type": "string", "not": {"enum": ["a", "ab"]}}, ['"b"', '"abc"', '""'], ['"a"', '"ab"']),
    "if": (
        {"if": {"properties": {"k": {"const": 1}}, "required": ["k"]}, "then": {"required": ["v"]}, "type": "object"},
        ["{}", '{"k": 2}', '{"k": 1, "v": 2}', '{"v": 2, "k": 1}'],
        ['{"k": 1}'],
    ),
    "recursion": (
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False},
        ["{}", '{"next": {"next": {}}}'],
        ['{"next": 1}', '{"next": {"other": {}}}'],
    ),
    "a reference without its sign": ({"$ref": "/$defs/n", "$defs": {"n": {"type": "integer"}}}, ["1"], ['"x"']),
    "anchors": ({"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "integer"}}}, ["1"], ['"x"']),
    "embedded addresses": (
        {"$id": "http://a/b", "$ref": "c", "$defs": {"x": {"$id": "c", "type": "integer"}}}, ["1"], ['"x"'],
    ),
    "unevaluatedProperties": (
        {"type": "object", "anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}, "required": ["b"]}], "unevaluatedProperties": False},
        ["{}", '{"a": 1}', '{"a": 1, "b": 2}'],
        ['{"c": 1}'],
    ),
    "minus zero as a bound": ({"type": "number", "minimum": -0.0, "exclusiveMaximum": 0.3}, ["0", "0.2"], ["-1", "0.3"]),
    "listed values are not evaluated": ({"enum": [[1], 2], "unevaluatedItems": False}, ["2"], ["[1]"]),
    "listed multiples": ({"enum": [3, 20000000000], "multipleOf": 1e10}, ["20000000000"], ["3"]),
    "long whole numbers": ({"type": "number", "not": {"const": 0.25}}, ["12345678901234567", "0.5"], ["0.25"]),
    "patterns that clash with names": (
        {"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {"^a": {"maxLength": 1}}},
        ['{"a": "x"}', '{"ab": 1}'],
        ['{"a": "xy"}', '{"ab": "xy"}', '{"a": 1}'],
    ),
    "strange names": (
        {"type": "object", "properties": {'a.b"\n': {"type": "integer"}, "": {"type": "null"}}, "additionalProperties": False},
        ['{"a.b\\"\\n": 1}', '{"": null}', "{}"],
        ['{"a.b": 1}', '{"": 1}', '{"a.b\\"\\n": null}'],
    ),
    "nested unions of objects": (
        {"anyOf": [{"properties": {"p": {"anyOf": [{"properties": {"x": {"type": "null"}}, "required": ["x"]}, {"type": "integer"}]}}, "type": "object"}, {"type": "null"}]},
        ["null", '{"p": 1}', '{"p": {"x": null}}'],
        ['{"p": {}}', '{"p": {"x": 1}}'],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema_", "taken", "refused"), CASES.values(), ids=CASES)
def test_a_keyword_is_exact(schema_: Any, taken: list[str], refused: list[str]) -> None:
    for text in taken:
        assert accepts(schema_, text), text
    for text in refused:
        assert not accepts(schema_, text), text


UNENFORCEABLE: dict[str, tuple[Any, str, str]] = {
    "uniqueItems": ({"type": "array", "uniqueItems": True}, "/uniqueItems", "uniqueItems"),
    "a nested one": (
        {"type": "object", "properties": {"a/b": {"type": "array", "uniqueItems": True}}},
        "/properties/a~1b/uniqueItems",
        "uniqueItems",
    ),
    "regex": ({"type": "string", "format": "regex"}, "/format", "format"),
    "back reference": ({"type": "string", "pattern": r"(a)\1"}, "/pattern", "pattern"),
    "not of names": ({"not": {"propertyNames": {"maxLength": 1}}}, "/not", "not"),
}


@pytest.mark.parametrize(("schema_", "pointer", "keyword"), UNENFORCEABLE.values(), ids=UNENFORCEABLE)
def test_what_cannot_be_enforced_is_refused_by_name_or_widened_alone(
    schema_: Any, pointer: str, keyword: str
) -> None:
    with pytest.raises(Unenforceable) as caught:
        response_grammar(schema_, VOCABULARY)
    assert (caught.value.pointer, caught.value.keyword) == (pointer, keyword)
    assert [(each.pointer, each.keyword) for each in response_widened(schema_, WIDEN)] == [(pointer, keyword)]


def test_only_the_keyword_itself_is_widened() -> None:
    widened = {"type": "array", "uniqueItems": True, "items": {"type": "integer"}, "maxItems": 2}
    assert accepts(widened, "[1, 1]", WIDEN)
    assert not accepts(widened, '["a"]', WIDEN)
    assert not accepts(widened, "[1, 2, 3]", WIDEN)


def test_remote_references_are_refused_even_where_keywords_are_widened() -> None:
    with pytest.raises(UnsupportedKeyword, match=r"http://example\.com/x"):
        response_grammar({"$ref": "http://example.com/x"}, VOCABULARY, WIDEN)


def test_a_tools_parameters_are_closed_unless_the_schema_says_otherwise() -> None:
    def free(schema_: dict[str, Any]) -> bool:
        return any(bool(getattr(shape, "free", ())) for shape in read_parameters(schema_, "t").shapes)

    assert not free({"properties": {"a": {}}})
    assert not free({"properties": {"a": {}}, "additionalProperties": False})
    assert free({"properties": {"a": {}}, "additionalProperties": True})
    assert free(
        {"$ref": "#/$defs/p", "$defs": {"p": {"type": "object", "additionalProperties": {"type": "null"}}}}
    )


@pytest.mark.parametrize(
    ("schema_", "pointer"),
    [
        ({"type": "text"}, "/type"),
        ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength"),
        ({"anyOf": []}, "/anyOf"),
        ({"required": "a"}, "/required"),
        ({"properties": {"a": 1}}, "/properties/a"),
        ({"enum": ["\ud800"]}, "/enum"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, ""),
    ],
)
def test_what_is_no_schema_or_satisfied_by_nothing_is_refused(schema_: Any, pointer: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        response_grammar(schema_, VOCABULARY)
    assert caught.value.pointer == pointer


def test_raw_strings_obey_pattern_format_length_and_enum() -> None:
    parameters = {
        "properties": {
            "p": {"type": "string", "pattern": "^[a-z\n]+$"},
            "d": {"type": "string", "format": "date"},
            "l": {"type": "string", "maxLength": 2},
            "e": {"enum": ["x", "y z"]},
        }
    }
    grammar = wire_format("qwen3_coder").grammar(
        [Tool("t", "", parameters)], CallPolicy(required=True), VOCABULARY
    )

    def call(name: str, value: str) -> bool:
        text = (
            f"<tool_call>\n<function=t>\n<parameter={name}>\n{value}\n</parameter>\n</function>\n</tool_call>"
        )
        return takes(ENGINE.matcher(grammar), text)

    good = {"p": "a\nb", "d": "2024-01-31", "l": "ab", "e": "y z"}
    bad = {"p": "aB", "d": "2024-01-32", "l": "abc", "e": "y"}
    assert {name: call(name, value) for name, value in good.items()} == dict.fromkeys(good, True)
    assert {name: call(name, value) for name, value in bad.items()} == dict.fromkeys(bad, False)


@pytest.fixture(scope="module")
def reading_costs() -> dict[str, Cost]:
    if not hasattr(os, "fork"):
        pytest.skip("measures forked processes")
    return costs()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_built_or_refused_quickly_within_200_megabytes(
    name: str, reading_costs: dict[str, Cost]
) -> None:
    cost = reading_costs[name]
    assert cost.said < 3000
    assert cost.seconds < 60  # a second on idle cores; without limits it takes minutes
    assert cost.megabytes <= 200


@given(st.integers(0, 2**32))
@examples(200)
def test_random_schemas_accept_what_jsonschema_accepts(seed: int) -> None:
    """Also mask-guided walks: they never get stuck, and what they write is valid."""
    rng = random.Random(seed)
    drawn = schema(rng, 3)
    check = Draft202012Validator(drawn)
    values = [instance(rng, 3) for _ in range(10)]
    try:
        grammar = response_grammar(drawn, VOCABULARY)
    except Unenforceable:
        return
    except InvalidSchema:
        assert not any(map(check.is_valid, values))
        return
    for value in values:
        text = json.dumps(value, ensure_ascii=False)
        assert takes(ENGINE.matcher(grammar), text) == check.is_valid(value), (drawn, text)
    written = _walk(rng, grammar)
    if written is not None:
        assert check.is_valid(json.loads(written)), (drawn, written)


def _walk(rng: random.Random, grammar: Any) -> bytes | None:
    """Random bytes as the masks allow them; None if that gets long."""
    matcher = ENGINE.matcher(grammar)
    written = b""
    while len(written) < 150:
        allowed = [byte for byte in range(256) if matcher.allows(byte)]
        if matcher.complete and (not allowed or rng.random() < 0.7):
            return written
        assert allowed, written
        plain = [byte for byte in allowed if 0x20 <= byte < 0x7F] or allowed
        closing = [byte for byte in plain if byte in b'}]"']
        byte = rng.choice(closing if closing and len(written) > 60 else plain)
        matcher.advance(byte)
        written += bytes([byte])
    return None


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder"])
def test_the_tools_of_real_clients_compile_exactly(name: str) -> None:
    folder = Path(os.environ.get("LARKSONG_CASES", "")) / "client_tools"
    if not os.environ.get("LARKSONG_CASES") or not folder.is_dir():
        pytest.skip("LARKSONG_CASES names no folder with client_tools")
    for file in sorted(folder.glob("*.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        for each in found if isinstance(found, list) else found["tools"]:
            function = each.get("function", each)
            tool = Tool(function["name"], "", function.get("parameters") or {})
            wire_format(name).grammar([tool], CallPolicy(required=True), VOCABULARY)
