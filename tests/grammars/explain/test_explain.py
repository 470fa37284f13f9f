"""Refusals explained: each text is refused at the bar, by the keyword at the pointer that stands beside it."""

from __future__ import annotations

import json
import os
import random
from functools import lru_cache
from typing import Any

import pytest

from larksong.engine.engine import Engine
from larksong.grammars import CallPolicy, GrammarsError, Tool, format_names, wire_format
from larksong.grammars.explain import Request, TurnExplanation, explain_turn
from larksong.grammars.explain.edits import at
from tests.support.random_schemas import instance
from tests.support.random_schemas import schema as random_schema
from tests.support.vocabularies import cut_with_markers, vocabulary

BAR = "¦"
FACTOR = int(os.environ.get("LARKSONG_EXAMPLES", "1"))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "maxLength": 12},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "kind": {"const": "daily"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "step": {"type": "integer", "multipleOf": 5},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "day": {"type": "string", "format": "date"},
        "hourly": {"type": "boolean"},
        "note": {"type": ["string", "null"], "maxLength": 4},
        "level": {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]},
        "place": {"$ref": "#/$defs/place"},
        "tags": {
            "type": "array",
            "items": {"enum": ["wind", "rain", "snow"]},
            "minItems": 1,
            "maxItems": 2,
            "uniqueItems": True,
        },
        "range": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        "extra": {
            "type": "object",
            "patternProperties": {"^x_": {"type": "integer"}},
            "additionalProperties": False,
        },
        "few": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"lat": {"type": "number", "maximum": 90}, "lon": {"type": "number"}},
            "required": ["lat", "lon"],
            "additionalProperties": False,
        }
    },
}
CLOSED = {key: value for key, value in SCHEMA.items() if key != "additionalProperties"}
TOOLS = (Tool("get_weather", "", SCHEMA), Tool("get_time", "", CLOSED))
END = "\n</tool_call>"

# Arguments as the model writes them: the same for a call's and for an answer's.
JSON = [
    ('{"city": "Paris", "unit": "¦kelvin"}', "/properties/unit/enum", "enum"),
    ('{"city": "Paris", "unit": "celsius¦ "}', "/properties/unit/enum", "enum"),
    ('{"city": "Paris", "kind": "¦weekly"}', "/properties/kind/const", "const"),
    ('{"city": "San Francisc¦o"}', "/properties/city/maxLength", "maxLength"),
    ('{"city": "A¦"}', "/properties/city/minLength", "minLength"),
    ('{"city": ¦7}', "/properties/city/type", "type"),
    ('{"city": "Rome", "days": ¦"3"}', "/properties/days/type", "type"),
    ('{"city": "Rome", "days": 3¦.5}', "/properties/days/type", "type"),
    ('{"city": "Rome", "days": 1¦5}', "/properties/days/maximum", "maximum"),
    ('{"city": "Rome", "days": ¦0}', "/properties/days/minimum", "minimum"),
    ('{"city": "Rome", "step": 12¦}', "/properties/step/multipleOf", "multipleOf"),
    ('{"city": "Rome", "share": ¦1}', "/properties/share/exclusiveMaximum", "exclusiveMaximum"),
    ('{"city": "Rome", "share": 0¦}', "/properties/share/exclusiveMinimum", "exclusiveMinimum"),
    ('{"city": "Rome", "code": "A¦b1"}', "/properties/code/pattern", "pattern"),
    ('{"city": "Rome", "code": "FCO¦X"}', "/properties/code/pattern", "pattern"),
    ('{"city": "Rome", "day": "2024-1¦3-01"}', "/properties/day/format", "format"),
    ('{"city": "Rome", "hourly": ¦1}', "/properties/hourly/type", "type"),
    ('{"city": "Rome", "note": "late¦r on"}', "/properties/note/maxLength", "maxLength"),
    ('{"city": "Rome", "level": 1¦2}', "/properties/level/anyOf/0/maximum", "maximum"),
    ('{"city": "Rome", "level": ¦"low"}', "/properties/level/anyOf", "anyOf"),
    ('{"city": "Rome", "place": {"lat": 9¦1}}', "/$defs/place/properties/lat/maximum", "maximum"),
    ('{"city": "Rome", "place": {"lat": 1¦}}', "/$defs/place/required", "required"),
    ('{"city": "Rome", "place": {"lat": 1, "l¦at": 2}}', "/$defs/place/properties/lat", "properties"),
    ('{"city": "Rome", "place": {"¦name": 1}}', "/$defs/place/additionalProperties", "additionalProperties"),
    ('{"city": "Rome", "tags": [¦]}', "/properties/tags/minItems", "minItems"),
    ('{"city": "Rome", "tags": ["wind", "rain"¦, "snow"]}', "/properties/tags/maxItems", "maxItems"),
    ('{"city": "Rome", "tags": ["wind", "¦wind"]}', "/properties/tags/uniqueItems", "uniqueItems"),
    ('{"city": "Rome", "tags": ["¦hail"]}', "/properties/tags/items/enum", "enum"),
    ('{"city": "Rome", "range": [1, ¦2]}', "/properties/range/prefixItems/1/type", "type"),
    ('{"city": "Rome", "range": [1, "a"¦, 2]}', "/properties/range/items", "items"),
    ('{"city": "Rome", "extra": {"x_a": ¦"1"}}', "/properties/extra/patternProperties/^x_/type", "type"),
    ('{"city": "Rome", "few": {"a": 1¦, "b": 2}}', "/properties/few/maxProperties", "maxProperties"),
    ('{"city": "Rome", "few": {"a": ¦null}}', "/properties/few/additionalProperties/type", "type"),
    ("{¦}", "/required", "required"),
    ('{"days": 3¦}', "/required", "required"),
    ('{"city": "Rome", "c¦ity": "Oslo"}', "/properties/city", "properties"),
    ('{"city": "Rome", "t¦own": "Oslo"}', "/additionalProperties", "additionalProperties"),
    ("¦[]", "/type", "type"),
]
# The first byte alone is refused by other keywords, too: what comes behind it tells.
BY_THE_WHOLE_VALUE: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "integer", "minimum": 30, "maximum": 79}, "¦85", "/maximum"),
    ({"type": "integer", "minimum": 30, "maximum": 79}, "¦8", "/minimum"),
    ({"type": "integer", "minimum": -1, "maximum": 5, "multipleOf": 3}, "¦4", "/multipleOf"),
    ({"type": "string", "enum": ["a", "b", "c"], "not": {"const": "b"}}, '"¦b"', "/not"),
    ({"type": "string", "enum": ["a", "b", "c"], "not": {"const": "b"}}, '"¦d"', "/enum"),
]
# What joins other schemas is named where no part of it is to blame.
PARTS: list[tuple[dict[str, Any], str, str]] = [
    ({"allOf": [{"type": "object"}, {"properties": {"a": {"type": "integer"}}}]}, "¦1", "/allOf/0/type"),
    ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "null"}}}, "¦1", "/$defs/a/type"),
    ({"if": {"enum": [1, ""]}, "then": True, "else": {"type": "array"}}, "¦2", "/else/type"),
]
RARE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "any": {"not": {"const": 1}},
        "one": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]},
        "size": {"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^[a-c]$"}},
        "mixed": {"type": "array", "contains": {"const": 7}},
        "both": {"allOf": [{"type": "integer"}, {"maximum": 9}]},
    },
    "dependentRequired": {"one": ["any"]},
    "if": {"properties": {"any": {"const": 2}}, "required": ["any"]},
    "then": {"required": ["both"]},
}
RARELY = [
    ('{"any": 1¦}', "/properties/any/not", "not"),
    ('{"one": ¦"1"}', "/properties/one/oneOf", "oneOf"),
    ('{"size": {¦}}', "/properties/size/minProperties", "minProperties"),
    ('{"size": {"¦d": 1}}', "/properties/size/propertyNames", "propertyNames"),
    ('{"mixed": [1¦]}', "/properties/mixed/contains", "contains"),
    ('{"both": 1¦0}', "/properties/both/allOf/1/maximum", "maximum"),
    ('{"one": 1¦}', "/dependentRequired", "dependentRequired"),
    ('{"any": 2¦}', "/then/required", "required"),
]
# Parameters as qwen3_coder writes them: strings are raw text.
RAW = [
    ("unit", "¦kelvin", "/properties/unit/enum", "enum"),
    ("kind", "¦weekly", "/properties/kind/const", "const"),
    ("days", "¦three", "/properties/days/type", "type"),
    ("days", "1¦5", "/properties/days/maximum", "maximum"),
    ("step", "12¦", "/properties/step/multipleOf", "multipleOf"),
    ("share", "¦1", "/properties/share/exclusiveMaximum", "exclusiveMaximum"),
    ("code", "¦fco", "/properties/code/pattern", "pattern"),
    ("day", "2024-1¦3-01", "/properties/day/format", "format"),
    ("hourly", "¦yes", "/properties/hourly/type", "type"),
    ("tags", "¦wind", "/properties/tags/type", "type"),
    ("tags", '["¦hail"]', "/properties/tags/items/enum", "enum"),
    ("place", '{"lat": 1¦}', "/$defs/place/required", "required"),
    ("place", '{"lat": 1, "lon": 2¦, "lat": 3}', "/$defs/place/properties/lat", "properties"),
]


@lru_cache
def engine(markers: tuple[str, ...] = ()) -> Engine:
    return Engine(vocabulary(markers=markers))


def explain(request: Request, text: str, markers: tuple[str, ...] = ()) -> TurnExplanation:
    """The explanation of a text with a bar where it is refused."""
    before, bar, after = text.partition(BAR)
    assert bar
    data = (before + after).encode()
    tokens = cut_with_markers(engine(markers).vocabulary, data)
    found = explain_turn(request, engine(markers), tokens)
    assert not found.allowed
    assert data[: found.offset].decode() == before
    return found


def keyword(found: TurnExplanation, tool: str | None = None) -> tuple[str, str]:
    """The one keyword to blame."""
    (wanted,) = found.wanted
    assert (wanted.tool, wanted.in_request) == (tool, False)
    return wanted.pointer, wanted.keyword


def call(format: str) -> Request:
    return Request(wire_format(format), TOOLS)


def hermes(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "get_weather", "arguments": {arguments}}}{END}'


def coder(*parameters: str) -> str:
    return "<tool_call>\n<function=get_weather>\n" + "\n".join(parameters) + "\n</function>" + END


def parameter(name: str, value: str) -> str:
    return f"<parameter={name}>\n{value}\n</parameter>"


@pytest.mark.parametrize(("text", "pointer", "wanted"), JSON)
def test_an_answer_is_refused_by_the_keyword_that_it_breaks(text: str, pointer: str, wanted: str) -> None:
    assert keyword(explain(Request(schema=SCHEMA), text)) == (pointer, wanted)


@pytest.mark.parametrize(("text", "pointer", "wanted"), RARELY)
def test_an_answer_is_refused_by_rare_keywords_too(text: str, pointer: str, wanted: str) -> None:
    assert keyword(explain(Request(schema=RARE), text)) == (pointer, wanted)


@pytest.mark.parametrize(("schema", "text", "pointer"), [*BY_THE_WHOLE_VALUE, *PARTS])
def test_of_several_keywords_it_is_the_one_that_the_value_breaks(
    schema: dict[str, Any], text: str, pointer: str
) -> None:
    assert keyword(explain(Request(schema=schema), text)) == (pointer, pointer.rpartition("/")[2])


@pytest.mark.parametrize(("text", "pointer", "wanted"), JSON[:-1])
def test_a_json_call_is_refused_by_the_keyword_that_it_breaks(text: str, pointer: str, wanted: str) -> None:
    assert keyword(explain(call("hermes"), hermes(text)), "get_weather") == (pointer, wanted)


@pytest.mark.parametrize(("name", "value", "pointer", "wanted"), RAW)
def test_a_raw_call_is_refused_by_the_keyword_that_it_breaks(
    name: str, value: str, pointer: str, wanted: str
) -> None:
    text = coder(parameter("city", "Rome"), parameter(name, value))
    assert keyword(explain(call("qwen3_coder"), text), "get_weather") == (pointer, wanted)


def test_a_required_parameter_is_missed_where_the_function_closes() -> None:
    found = explain(call("qwen3_coder"), coder(parameter("days", "3")).replace("</f", "<¦/f"))
    assert keyword(found, "get_weather") == ("/required", "required")
    assert found.wanted[0].message == "missing: city"


def test_a_parameter_that_comes_again_is_named() -> None:
    text = coder(parameter("city", "Rome"), "<parameter=c¦ity>\nOslo\n</parameter>")
    assert keyword(explain(call("qwen3_coder"), text), "get_weather") == ("/properties/city", "properties")


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder"])
def test_what_a_tool_does_not_declare_is_refused_where_the_schema_is_silent_too(format: str) -> None:
    rendered = wire_format(format).render_call("get_time", {"city": "Rome", "zone": "CET"})
    found = explain(call(format), rendered.replace("zone", "¦zone"))
    assert keyword(found, "get_time") == ("", "additionalProperties")
    assert "city, unit" in found.wanted[0].message


ONE = {"type": "object", "properties": {"q": {"type": "string"}}}
MORE: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    ({}, {"z": "w"}, "", "additionalProperties", "no members are declared, and none may come"),
    (ONE, {"q": "v", "z": "w"}, "", "additionalProperties", "no others may come: q"),
    (ONE, {"q": "v", "again": "w"}, "/properties/q", "properties", "q is there already"),
    (
        {"allOf": [ONE, {"properties": {"n": {"type": "integer"}}}]},
        {"q": "v", "z": "w"},
        "",
        "additionalProperties",
        "no others may come: q, n",
    ),
    (
        {
            "type": "object",
            "oneOf": [
                {"properties": {"k": {"const": kind}, kind: {"type": "string"}}, "required": ["k", kind]}
                for kind in ("a", "b")
            ],
        },
        {"k": "a", "b": "1"},
        "",
        "additionalProperties",
        "b is declared only by an alternative that what came before rules out",
    ),
]


@pytest.mark.parametrize("format", format_names())
@pytest.mark.parametrize(("schema", "arguments", "pointer", "wanted", "message"), MORE)
def test_a_parameter_too_many_is_explained_in_every_format(
    format: str, schema: dict[str, Any], arguments: dict[str, Any], pointer: str, wanted: str, message: str
) -> None:
    text = wire_format(format).render_call("f", arguments).replace("again", "q").encode()
    found = explain_turn(Request(wire_format(format), (Tool("f", "", schema),)), engine(), list(text))
    assert keyword(found, "f") == (pointer, wanted)
    assert message in found.wanted[0].message


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder"])
def test_an_unknown_tool_is_explained_by_the_requests_tools(format: str) -> None:
    rendered = wire_format(format).render_call("get_news", {"city": "Rome"})
    (wanted,) = explain(call(format), rendered.replace("get_news", "get_¦news")).wanted
    assert (wanted.in_request, wanted.tool, wanted.pointer, wanted.keyword) == (True, None, "/tools", "name")
    assert wanted.value == ["get_weather", "get_time"]


@pytest.mark.parametrize("format", format_names())
def test_a_name_that_begins_like_a_tools_is_unknown_in_every_format(format: str) -> None:
    text = wire_format(format).render_call("get_weather_now", {"q": "Rome"}).encode()
    request = Request(wire_format(format), (Tool("get_weather", "", ONE),))
    (wanted,) = explain_turn(request, engine(), list(text)).wanted
    assert (wanted.in_request, wanted.pointer, wanted.value) == (True, "/tools", ["get_weather"])


@pytest.mark.parametrize(
    ("policy", "text", "field"),
    [
        (CallPolicy(required=True), "¦Hello", "tool_choice"),
        (CallPolicy(required=True, min_calls=1), "¦Hello", "tool_choice"),
        (CallPolicy(required=True, min_calls=1, max_calls=1, only="get_time"), "¦Hello", "tool_choice"),
        (CallPolicy(required=True, min_calls=2), "¦Hello", "min_tool_calls"),
        (CallPolicy(only="get_time"), hermes('{"city": "Rome"}').replace("get_", "get_¦"), "tool_choice"),
        (
            CallPolicy(max_calls=1),
            hermes('{"city": "Rome"}') + "¦\n" + hermes('{"city": "Oslo"}'),
            "max_tool_calls",
        ),
    ],
)
def test_what_the_request_says_about_calls_is_named(policy: CallPolicy, text: str, field: str) -> None:
    (wanted,) = explain(Request(wire_format("hermes"), TOOLS, policy), text).wanted
    assert (wanted.in_request, wanted.pointer, wanted.keyword) == (True, f"/{field}", field)
    said = {"tool_choice": policy.only or "required", "min_tool_calls": 2, "max_tool_calls": 1}
    assert wanted.value == said[field]


@pytest.mark.parametrize("required", [True, False])
def test_calls_that_are_missing_are_named_at_the_end(required: bool) -> None:
    request = Request(wire_format("hermes"), TOOLS, CallPolicy(required=required, min_calls=2))
    found = explain_turn(request, engine(), list(hermes('{"city": "Rome"}').encode()))
    assert (found.allowed, found.complete) == (True, False)
    assert [wanted.pointer for wanted in found.wanted] == ["/min_tool_calls"]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", hermes('{"city": "Rome¦<tool_call>"}')),
        ("hermes", hermes('{"city": "Rome¦</tool_call>')),
        ("qwen3_coder", coder("<parameter=city>\nRome¦</tool_call>")),
    ],
)
def test_a_marker_is_no_part_of_a_string(format: str, text: str) -> None:
    found = explain(call(format), text, ("<tool_call>", "</tool_call>"))
    assert keyword(found, "get_weather") == ("/properties/city/type", "type")


def test_an_answers_marker_is_no_part_of_a_string() -> None:
    found = explain(Request(schema=SCHEMA), '{"city": "Ro¦<think>"}', ("<think>",))
    assert keyword(found) == ("/properties/city/type", "type")


@pytest.mark.parametrize(
    "text", ['{"city": "Rome", ¦ "days": 3}', '{"city": "Ro\\¦x"}', '{"city"¦ : "Rome"}']
)
def test_where_json_itself_or_the_format_refuses_no_keyword_is_named(text: str) -> None:
    assert explain(Request(schema=SCHEMA), text).wanted == ()
    assert explain(call("hermes"), hermes(text)).wanted == ()


def test_keywords_that_refuse_only_together_are_all_named() -> None:
    schema = {"properties": {"a": {"type": "string", "enum": ["x", "y"]}}}
    found = explain(Request(schema=schema), '{"a": ¦1}')
    assert {(wanted.pointer, wanted.keyword) for wanted in found.wanted} == {
        ("/properties/a/type", "type"),
        ("/properties/a/enum", "enum"),
    }


def test_the_same_keyword_of_each_alternative_is_named() -> None:
    one, other = ({"properties": {"kind": {"const": kind}, "at": {"type": "integer"}}} for kind in ("a", "b"))
    schema = {"oneOf": [one, {"$ref": "#/$defs/b"}], "$defs": {"b": other}}
    found = explain(Request(schema=schema), '{"kind": "¦c"}')
    assert [(wanted.pointer, wanted.value) for wanted in found.wanted] == [
        ("/oneOf/0/properties/kind/const", "a"),
        ("/$defs/b/properties/kind/const", "b"),
    ]
    # After the first member one of them is left.
    found = explain(Request(schema=schema), '{"kind": "b", "at": ¦"x"}')
    assert keyword(found) == ("/$defs/b/properties/at/type", "type")


def test_a_second_call_is_explained_by_its_own_schema() -> None:
    first = hermes('{"city": "Rome", "days": 3}')
    found = explain(call("hermes"), first + "\n" + hermes('{"city": "Oslo", "days": 1¦5}'))
    assert keyword(found, "get_weather") == ("/properties/days/maximum", "maximum")


def test_a_whole_turn_and_one_that_may_go_on_are_told_apart() -> None:
    text = hermes('{"city": "Rome"}').encode()
    whole = explain_turn(call("hermes"), engine(), list(text))
    assert (whole.allowed, whole.complete, whole.offset, whole.token) == (True, True, len(text), None)
    open_ = explain_turn(call("hermes"), engine(), list(text[:-3]))
    assert (open_.allowed, open_.complete, open_.offset) == (True, False, len(text) - 3)
    assert open_.wanted == ()
    assert open_.nearest


def test_a_number_that_may_not_end_yet_is_explained() -> None:
    found = explain_turn(Request(schema={"type": "integer", "minimum": 20}), engine(), list(b"3"))
    assert (found.allowed, found.complete) == (True, False)
    assert [wanted.pointer for wanted in found.wanted] == ["/minimum"]


def test_a_refused_token_is_told_with_its_index_its_last_byte_and_what_may_come_instead() -> None:
    words = vocabulary((b'"kelvin"', b'"celsius"', b'"celery"', b'"kel', b"cel"))
    ids = {token: index for index, token in enumerate(words.tokens)}
    before = cut_with_markers(words, b'{"city": "Rome", "unit": ')
    found = explain_turn(Request(schema=SCHEMA), Engine(words), [*before, ids[b'"celery"']])
    assert found.token == len(before)
    assert found.offset == len('{"city": "Rome", "unit": "cel')
    assert [words.tokens[token] for token in found.nearest] == [b'"celsius"', b'"']
    assert [(each.name, each.text) for each in found.live] == [
        ("RESPONSE_1_ENUM", '"\\"celsius\\"" | "\\"fahrenheit\\""')
    ]
    assert keyword(found) == ("/properties/unit/enum", "enum")


@pytest.mark.parametrize(
    "schema", [True, {}, {"pattern": "^(a+)+$"}, {"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}]
)
def test_any_schema_can_be_asked(schema: Any) -> None:
    found = explain_turn(Request(schema=schema), engine(), list(b'"b{[,'))
    assert found.offset <= 5


def test_refusals_of_random_schemas_are_explained_by_what_stands_there() -> None:
    refused = silent = 0
    for seed in range(40 * FACTOR):
        rng = random.Random(seed)
        drawn = random_schema(rng, 3)
        for _ in range(4):
            text = json.dumps(instance(rng, 3), ensure_ascii=False)
            try:
                found = explain_turn(Request(schema=drawn), engine(), list(text.encode()))
            except GrammarsError:
                break
            refused += not found.complete
            silent += not found.complete and not found.wanted
            for wanted in found.wanted:
                assert at(drawn, wanted.pointer) == wanted.value, (drawn, text)
                assert wanted.keyword in wanted.pointer.split("/"), (drawn, text)
    # Text that is JSON is refused by the schema alone. Where a keyword hides another that no grammar can
    # enforce, nothing is said: of 4,328 such refusals it was one.
    assert refused > 50
    assert silent <= refused // 100


BAD_ARGUMENTS = [
    ({"city": "Rome", "unit": "kelvin"}, "/properties/unit/enum", "enum"),
    ({"city": "Rome", "days": 99}, "/properties/days/maximum", "maximum"),
    ({"city": "Constantinople"}, "/properties/city/maxLength", "maxLength"),
    ({"city": "Rome", "place": {"lat": 1.5}}, "/$defs/place/required", "required"),
    ({"days": 3}, "/required", "required"),
    ({"city": "Rome", "town": "Oslo"}, "/additionalProperties", "additionalProperties"),
]


@pytest.mark.parametrize("format", format_names())
@pytest.mark.parametrize(("arguments", "pointer", "wanted"), BAD_ARGUMENTS)
def test_every_format_is_explained(format: str, arguments: dict[str, Any], pointer: str, wanted: str) -> None:
    # Not every format can write all that the schema has.
    properties = {name: SCHEMA["properties"][name] for name in ("city", "unit", "days", "place")}
    tool = Tool("get_weather", "", {**SCHEMA, "properties": properties})
    text = wire_format(format).render_call("get_weather", arguments).encode()
    found = explain_turn(Request(wire_format(format), (tool,)), engine(), list(text))
    assert not found.allowed
    assert keyword(found, "get_weather") == (pointer, wanted)
