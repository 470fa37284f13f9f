"""What is no JSON Schema is refused, with its place and keyword, whether or not keywords may be widened."""

from typing import Any

import pytest

from larksong.grammars import InvalidSchema, Options, Unenforceable
from larksong.grammars.schema import Limits, read_parameters, read_schema

WRONG: dict[str, tuple[Any, list[Any]]] = {
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        ("must be a whole number, 0 or more", ["3", -1, 1.5, None, True, [], float("inf"), float("nan")]),
    ),
    **dict.fromkeys(("minContains", "maxContains"), ("must be a whole number", ["3", -1, 0.5])),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        ("must be a finite number", ["3", None, [], float("inf"), float("nan")]),
    ),
    "multipleOf": ("must be a finite number above 0", ["3", 0, -1, True, float("inf")]),
    "type": ("type", ["strng", "", [], ["string", 3], None, 3, {}]),
    "enum": ("", [{}, "a", 3, None, [float("inf")], ["\ud800"]]),
    "const": ("", [float("nan"), "\ud800"]),
    "required": ("must be a list of names", [{}, "a", [1], 3, None]),
    "dependentRequired": ("must be", [[], {"a": "b"}, {"a": {}}, {"a": [1]}]),
    "dependentSchemas": ("must be", [[], {"a": 3}]),
    "dependencies": ("must be", [[], {"a": 3}, {"a": [1]}]),
    **dict.fromkeys(("properties", "patternProperties"), ("must be an object", [[], "a", 3, None, {"a": 3}])),
    **dict.fromkeys(
        ("additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains"),
        ("a schema must be an object, true or false", ["no", 3, None, []]),
    ),
    **dict.fromkeys(("not", "if", "then", "else"), ("a schema must be", ["no", 3, None, []])),
    "items": ("a schema must be", ["no", 3, None, [3]]),
    **dict.fromkeys(("anyOf", "oneOf", "allOf"), ("", [[], {}, "a", 3, [3], [None]])),
    "prefixItems": ("", [{}, "a", [3]]),
    "uniqueItems": ("must be true or false", ["yes", 1, None]),
    "pattern": ("regular expression", [3, None, [], "(", "a)", "[b", "*a", "a**", "[b-a]", "a{2,1}", "\\"]),
    "format": ("must be a string", [3, None, []]),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), ("must be a string", [3, None, {}])),
    "nullable": ("must be true or false", ["yes", 1]),
}


@pytest.mark.parametrize(
    ("keyword", "value"),
    [(keyword, value) for keyword, (_, values) in WRONG.items() for value in values],
    ids=repr,
)
def test_a_keyword_with_a_wrong_value_is_named(keyword: str, value: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"items": {keyword: value}}}}
    for options in (Options(), Options(widen=True)):
        with pytest.raises(InvalidSchema) as caught:
            read_parameters(schema, "book", options)
        assert (caught.value.tool, caught.value.keyword) == ("book", keyword)
        assert (caught.value.pointer or "").startswith(f"/properties/a/items/{keyword}")
        assert "tool 'book'" in str(caught.value)
        assert WRONG[keyword][0] in str(caught.value)


@pytest.mark.parametrize("schema", [None, 3, "string", []])
def test_what_is_no_schema_at_all_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidSchema, match="must be an object, true or false"):
        read_schema(schema, Options(widen=True))


def test_the_keys_of_pattern_properties_are_regular_expressions() -> None:
    with pytest.raises(InvalidSchema, match="unterminated group") as caught:
        read_schema({"patternProperties": {"(": {}}}, Options(widen=True))
    assert (caught.value.pointer, caught.value.keyword) == ("/patternProperties", "patternProperties")


def test_expressions_of_other_dialects_are_widened() -> None:
    for pattern in ("(?i)a", "(?P<n>a)", "a++", r"\Aa"):
        (widened,) = read_schema({"pattern": pattern}, Options(widen=True)).widened
        assert (widened.pointer, widened.keyword) == ("/pattern", "pattern")


ENDLESS: dict[str, tuple[Any, str]] = {
    "itself": ({"$ref": "#"}, "/$ref"),
    "in a union": ({"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "/anyOf/1/$ref"),
    "in oneOf": ({"oneOf": [{"type": "null"}, {"$ref": "#"}]}, "/oneOf/1/$ref"),
    "not itself": ({"not": {"$ref": "#"}}, "/not/$ref"),
    "a condition": ({"if": {"required": ["a"]}, "then": {"$ref": "#"}}, "/then/$ref"),
    "a dependent schema": ({"dependentSchemas": {"a": {"$ref": "#"}}}, "/dependentSchemas/a/$ref"),
    "a member": ({"properties": {"a": {"$ref": "#/properties/a"}}}, "/properties/a/$ref"),
    "an item that nothing needs": ({"items": {"$ref": "#/items"}}, "/items/$ref"),
    "a round of three": (
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/c"}]}, "c": {"$ref": "#/$defs/a"}},
        },
        "/$ref",
    ),
    "an anchor": ({"$defs": {"n": {"$anchor": "n", "$ref": "#n"}}, "$ref": "#n"}, "/$ref"),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "pointer"), ENDLESS.values(), ids=ENDLESS)
def test_a_reference_that_leads_back_to_itself_is_refused(schema: Any, pointer: str) -> None:
    for options in (Options(), Options(widen=True)):
        with pytest.raises(InvalidSchema, match="leads back to itself without end") as caught:
            read_schema(schema, options)
        assert (caught.value.pointer, caught.value.keyword) == (pointer, "$ref")


RECURSIVE: list[Any] = [
    {"properties": {"a": {"$ref": "#"}}},
    {"items": {"$ref": "#"}},
    {"propertyNames": {"$ref": "#"}},
    {"contains": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "maxItems": 3},
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}]},
    {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"items": {"$ref": "#"}}}},
    {"then": {"$ref": "#"}},  # without an if it means nothing
]


@pytest.mark.parametrize("schema", RECURSIVE, ids=repr)
def test_recursion_that_reads_something_each_round_is_none(schema: Any) -> None:
    assert read_schema(schema).shapes


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("#/$defs/nothing", "leads nowhere in this document"),
        ("/$defs/nothing", "leads nowhere in this document"),
        ("#nobody", "leads nowhere in this document"),
        ("http://example.com/x", "no other is fetched"),
        ("other.json", "no other is fetched"),
    ],
)
def test_a_reference_that_leads_nowhere_or_outside_is_told_apart(reference: str, reason: str) -> None:
    for options in (Options(), Options(widen=True)):
        with pytest.raises(Unenforceable, match=reason) as caught:
            read_schema({"properties": {"a": {"$ref": reference}}}, options)
        assert (caught.value.pointer, caught.value.keyword) == ("/properties/a/$ref", "$ref")


LIMITED: dict[str, tuple[Limits, Any]] = {
    "depth": (Limits(depth=3), {"items": {"items": {"items": {"items": {}}}}}),
    "schemas": (Limits(schemas=5), {"properties": {f"p{i}": {"minLength": i} for i in range(9)}}),
    "enum_values": (Limits(enum_values=2), {"enum": [1, 2, 3]}),
    "nodes": (Limits(nodes=4), {"properties": {f"p{i}": {"minLength": i} for i in range(9)}}),
    "names in required": (Limits(keys=2), {"required": ["a", "b", "c"]}),
    "dependent names": (Limits(keys=2), {"dependentRequired": {"a": [], "b": [], "c": []}}),
    "tuple_items": (Limits(tuple_items=2), {"prefixItems": [{}, {}, {}]}),
    "items of older drafts": (Limits(tuple_items=2), {"items": [{}, {}, {}]}),
    "items of a constant": (Limits(tuple_items=2), {"const": [1, 2, 3]}),
    "text_characters": (Limits(text_characters=3), {"enum": ["abcd"]}),
    "characters of a name": (Limits(text_characters=3), {"properties": {"abcd": {}}}),
    "keys": (Limits(keys=2), {"properties": {"a": {}, "b": {}, "c": {}}}),
    "pattern_characters": (Limits(pattern_characters=4), {"pattern": "aaaaa"}),
    "alternatives": (
        Limits(alternatives=4),
        {"allOf": [{"anyOf": [{"required": [f"{i}{j}"]} for j in range(3)]} for i in range(3)]},
    ),
    "seconds": (Limits(seconds=0), {"properties": {f"p{i}": {"pattern": f"a{i}"} for i in range(9)}}),
}


@pytest.mark.parametrize(("limits", "schema"), LIMITED.values(), ids=LIMITED)
def test_each_limit_refuses_what_is_beyond_it(limits: Limits, schema: Any) -> None:
    read_schema(schema)
    with pytest.raises((InvalidSchema, Unenforceable)) as caught:
        read_schema(schema, Options(limits=limits))
    assert caught.value.pointer is not None


@pytest.mark.parametrize(
    "member", [{"enum": []}, {"type": "number", "minimum": 3, "maximum": 2}, {"not": {}}, False]
)
def test_a_tool_whose_required_member_cannot_be_has_no_call(member: Any) -> None:
    """Without a type everything but an object would do: it is not the type that is wrong."""
    with pytest.raises(InvalidSchema, match="no object can satisfy it"):
        read_parameters({"properties": {"a": member}, "required": ["a"]}, "f")
    with pytest.raises(InvalidSchema, match="must have the type object"):
        read_parameters({"type": ["string", "null"]}, "f")


def test_the_members_of_a_tool_are_counted_since_it_is_closed() -> None:
    options = Options(widen=False)
    properties: dict[str, Any] = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "minProperties": 2}
    (shape,) = read_parameters(schema, "f", options).shapes
    assert shape == read_parameters({**schema, "additionalProperties": False}, "f", options).shapes[0]
    with pytest.raises(Unenforceable):
        read_parameters({**schema, "additionalProperties": True}, "f", options)
