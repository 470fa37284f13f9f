"""What Larksong, llguidance and xgrammar make of each keyword of JSON Schema, on examples.

    python -m benchmarks.keywords

✓ all texts are judged rightly · + valid texts are refused · - invalid texts are accepted · ✗ the schema is
refused. The table of docs/json_schema.md is drawn up with it; it asks for more than two texts can show.
"""

from __future__ import annotations

import importlib.util
import json
from typing import Any

from tokenizers import Tokenizer

from benchmarks.maskbench import CONTENDERS, Contender, Refused, qwen, read

_EOS = "<|endoftext|>"
_ABC = {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}

# keyword: schema, valid instances, invalid instances
ROWS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "type": ({"type": ["string", "null"]}, ["a", None], [1]),
    "enum": ({"enum": ["a", 1, None]}, ["a", 1], ["b", 2]),
    "const of an object": ({"const": {"a": 1, "b": 2}}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [{"a": 1}]),
    "nullable": ({"type": "integer", "nullable": True}, [1, None], ["a"]),
    "properties in any order": (
        {"type": "object", "properties": _ABC, "required": ["a", "b"], "additionalProperties": False},
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"c": 3, "b": 2, "a": 1}],
        [{"a": 1}, {"a": "x", "b": 2}],
    ),
    "additionalProperties": (
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
        [{"a": "x", "z": 1}],
        [{"z": "x"}],
    ),
    "patternProperties": (
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
        [{"xa": 1}, {}],
        [{"xa": "s"}, {"a": 1}],
    ),
    "propertyNames": ({"type": "object", "propertyNames": {"pattern": "^a"}}, [{"ab": 1}], [{"b": 1}]),
    "minProperties, maxProperties": (
        {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "minProperties": 1,
            "maxProperties": 2,
        },
        [{"a": 1}],
        [{}, {"a": 1, "b": 2, "c": 3}],
    ),
    "maxProperties of declared names": (
        {"type": "object", "properties": _ABC, "additionalProperties": False, "maxProperties": 1},
        [{"b": 1}],
        [{"a": 1, "b": 2}],
    ),
    "dependentRequired": (
        {"type": "object", "properties": _ABC, "dependentRequired": {"a": ["b"]}},
        [{"a": 1, "b": 2}],
        [{"a": 1}],
    ),
    "dependentSchemas": (
        {"type": "object", "properties": _ABC, "dependentSchemas": {"a": {"required": ["b"]}}},
        [{"a": 1, "b": 2}],
        [{"a": 1}],
    ),
    "prefixItems, items": (
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
        [[1, "a"], []],
        [["a"], [1, 2]],
    ),
    "minItems, maxItems": (
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
        [[1], [1, 2]],
        [[], [1, 2, 3]],
    ),
    "minItems alone": ({"type": "array", "minItems": 2}, [[1, "a"]], [[1]]),
    "contains": ({"type": "array", "contains": {"type": "integer"}}, [["a", 1]], [["a"], []]),
    "uniqueItems": (
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
        [["a", "b"]],
        [["a", "a"]],
    ),
    "uniqueItems of objects": ({"type": "array", "uniqueItems": True}, [[{}, 1]], [[{}, {}]]),
    "minLength, maxLength": (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ["ab", "abé"],
        ["a", "abcd"],
    ),
    "pattern, anchored": ({"type": "string", "pattern": "^[a-z]+$"}, ["ab"], ["aB", ""]),
    "pattern, found anywhere": ({"type": "string", "pattern": "b"}, ["abc"], ["ac"]),
    "pattern with look-ahead": ({"type": "string", "pattern": "^(?!a)[a-z]+$"}, ["bc"], ["ab"]),
    "format date": ({"type": "string", "format": "date"}, ["2024-02-29"], ["2023-02-29", "x"]),
    "format email": ({"type": "string", "format": "email"}, ["a@b.com"], ["ab"]),
    "format unknown": ({"type": "string", "format": "colour"}, ["red"], []),
    "minimum, maximum of integers": ({"type": "integer", "minimum": 3, "maximum": 12}, [3, 12], [2, 13]),
    "bounds of numbers": (
        {"type": "number", "exclusiveMinimum": 0.5, "maximum": 2},
        [0.75, 2, 1],
        [0.5, 2.25, -1],
    ),
    "multipleOf of integers": ({"type": "integer", "multipleOf": 3}, [9], [10]),
    "multipleOf of decimals": ({"type": "number", "multipleOf": 0.25}, [0.5, 12], [0.3]),
    "allOf": (
        {"allOf": [{"type": "object", "properties": _ABC}, {"required": ["a"]}, {"required": ["b"]}]},
        [{"a": 1, "b": 2}],
        [{"a": 1}],
    ),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [1, "a"], [None]),
    "anyOf beside properties": (
        {"type": "object", "properties": _ABC, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{"a": 1}, {"b": 1}],
        [{"c": 1}],
    ),
    "oneOf, disjoint": ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, [1, "a"], [None]),
    "oneOf, overlapping": ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}, [1, 2.5], [3]),
    "not": ({"type": "string", "not": {"enum": ["a"]}}, ["b"], ["a"]),
    "if, then, else": (
        {
            "type": "object",
            "properties": _ABC,
            "if": {"required": ["a"]},
            "then": {"required": ["b"]},
        },
        [{"a": 1, "b": 2}, {"c": 1}],
        [{"a": 1}],
    ),
    "$ref, recursion": (
        {
            "type": "object",
            "properties": {"n": {"$ref": "#"}},
            "additionalProperties": False,
        },
        [{"n": {"n": {}}}],
        [{"n": 1}],
    ),
    "$anchor": ({"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "integer"}}}, [1], ["a"]),
    "unevaluatedProperties": (
        {"type": "object", "allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        [{"a": 1}],
        [{"b": 1}],
    ),
}


def outcome(contender: Contender, encoder: Tokenizer, row: tuple[Any, list[Any], list[Any]]) -> str:
    """What an engine makes of a row."""
    schema, valid, invalid = row
    end = encoder.token_to_id(_EOS)
    try:
        begin = contender.compile(schema)
    except Refused:
        return "✗"

    def takes(instance: Any) -> bool:
        text = json.dumps(instance, ensure_ascii=False)
        return read(begin(), [*encoder.encode(text, add_special_tokens=False).ids, end], [])

    found = "" if all(map(takes, valid)) else "+"
    found += "-" if any(map(takes, invalid)) else ""
    return found or "✓"


def main() -> None:
    tokenizer = qwen()
    encoder = Tokenizer.from_file(str(tokenizer))
    names = [name for name in CONTENDERS if name == "larksong" or importlib.util.find_spec(name)]
    contenders = [CONTENDERS[name](tokenizer, _EOS) for name in names]
    print("| keyword | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for keyword, row in ROWS.items():
        print(f"| {keyword} | " + " | ".join(outcome(each, encoder, row) for each in contenders) + " |")


if __name__ == "__main__":
    main()
