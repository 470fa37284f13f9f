"""Refusals explained: each text is refused at the bar, by the keyword at the pointer that stands beside it."""

from __future__ import annotations

from typing import Any

import pytest

from larksong.engine.engine import Engine
from larksong.grammars import CallPolicy, Tool, wire_format
from larksong.grammars.explain import Request, TurnExplanation, explain_turn
from tests.support.vocabularies import cut_with_markers, vocabulary

BAR = "¦"
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
END = '\n</tool_call>'

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
    ('{"city": "Rome", "days": 15¦}', "/properties/days/maximum", "maximum"),
    ('{"city": "Rome", "days": ¦0}', "/properties/days/minimum", "minimum"),
    ('{"city": "Rome", "step": 12¦}', "/properties/step/multipleOf", "multipleOf"),
    ('{"city": "Rome", "share": ¦1}', "/properties/share/exclusiveMaximum", "exclusiveMaximum"),
    ('{"city": "Rome", "share": 0¦}', "/properties/share/exclusiveMinimum", "exclusiveMinimum"),
    ('{"city": "Rome", "code": "A¦b1"}', "/properties/code/pattern", "pattern"),
    ('{"city": "Rome", "code": "FCO¦X"}', "/properties/code/pattern", "pattern"),
    ('{"city": "Rome", "day": "2024-1¦3-01"}', "/properties/day/format", "format"),
    ('{"city": "Rome", "hourly": ¦1}', "/properties/hourly/type", "type"),
    ('{"city": "Rome", "note": "later¦ on"}', "/properties/note/maxLength", "maxLength"),
    ('{"city": "Rome", "level": 12¦}', "/properties/level/anyOf/0/maximum", "maximum"),
    ('{"city": "Rome", "level": ¦"low"}', "/properties/level/anyOf", "anyOf"),
    ('{"city": "Rome", "place": {"lat": 91¦}}', "/$defs/place/properties/lat/maximum", "maximum"),
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
    ('{"city": "Rome", "ci¦ty": "Oslo"}', "/properties/city", "properties"),
    ('{"city": "Rome", "¦town": "Oslo"}', "/additionalProperties", "additionalProperties"),
    ("¦[]", "/type", "type"),
]
# Parameters as qwen3_coder writes them: strings are raw text.
RAW = [
    ("unit", "¦kelvin", "/properties/unit/enum", "enum"),
    ("kind", "¦weekly", "/properties/kind/const", "const"),
    ("days", "¦three", "/properties/days/type", "type"),
    ("days", "15¦", "/properties/days/maximum", "maximum"),
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


def explain(request: Request, text: str, markers: tuple[str, ...] = ()) -> TurnExplanation:
    """The explanation of a text with a bar where it is refused."""
    engine = Engine(vocabulary(markers=markers))
    before, bar, after = text.partition(BAR)
    data = (before + after).encode()
    found = explain_turn(request, engine, cut_with_markers(engine.vocabulary, data))
    assert not found.allowed
    assert data[: found.offset].decode() == before
    assert bar
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


@pytest.mark.parametrize(("text", "pointer", "wanted"), JSON[:-1])
def test_a_json_call_is_refused_by_the_keyword_that_it_breaks(text: str, pointer: str, wanted: str) -> None:
    assert keyword(explain(call("hermes"), hermes(text)), "get_weather") == (pointer, wanted)


@pytest.mark.parametrize(("name", "value", "pointer", "wanted"), RAW)
def test_a_raw_call_is_refused_by_the_keyword_that_it_breaks(
    name: str, value: str, pointer: str, wanted: str
) -> None:
    text = coder(parameter("city", "Rome"), parameter(name, value))
    assert keyword(explain(call("qwen3_coder"), text), "get_weather") == (pointer, wanted)
