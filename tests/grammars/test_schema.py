"""JSON Schema to types: what is read, and what is refused with its place named."""

import json
from typing import Any

import pytest
from hypothesis import given

from larksong.grammars import GrammarsError, InvalidSchema, Tool, UnsupportedKeyword
from larksong.grammars.schema import (
    ANNOTATIONS,
    AnyType,
    ArrayType,
    BooleanType,
    EnumType,
    NullType,
    NumberType,
    ObjectType,
    SchemaReader,
    StringType,
    Type,
    UnionType,
)
from tests.support.examples import examples
from tests.support.schemas import parameters

STRING, INTEGER, NUMBER = StringType(), NumberType(integer=True), NumberType(integer=False)
BOOLEAN, NULL, ANY = BooleanType(), NullType(), AnyType()
OPEN = ObjectType((), frozenset(), ANY)


def read(schema: Any) -> Type:
    return SchemaReader("tool").read(schema)


READ: dict[str, tuple[Any, Type]] = {
    # type
    "string": ({"type": "string"}, STRING),
    "integer": ({"type": "integer"}, INTEGER),
    "number": ({"type": "number"}, NUMBER),
    "boolean": ({"type": "boolean"}, BOOLEAN),
    "null": ({"type": "null"}, NULL),
    "object": ({"type": "object"}, OPEN),
    "array": ({"type": "array"}, ArrayType(ANY)),
    "nothing said": ({}, ANY),
    "true": (True, ANY),
    "all types": ({"type": ["object", "array", "string", "number", "integer", "boolean", "null"]}, ANY),
    "a list of types": ({"type": ["string", "null"]}, UnionType((STRING, NULL))),
    "a list of one type": ({"type": ["string"]}, STRING),
    "a type twice": ({"type": ["null", "null"]}, NULL),
    "numbers hold the integers": ({"type": ["integer", "number"]}, NUMBER),
    # strings
    "maxLength": ({"type": "string", "maxLength": 3}, StringType(0, 3)),
    "minLength": ({"type": "string", "minLength": 2}, StringType(2, None)),
    "both lengths": ({"type": "string", "minLength": 2, "maxLength": 2}, StringType(2, 2)),
    "an empty string": ({"type": "string", "maxLength": 0}, StringType(0, 0)),
    "lengths say nothing of other types": ({"type": ["integer", "string"], "maxLength": 1}, UnionType((INTEGER, StringType(0, 1)))),
    # arrays
    "items": ({"type": "array", "items": {"type": "string"}}, ArrayType(STRING)),
    "items are anything": ({"type": "array", "items": True}, ArrayType(ANY)),
    "maxItems": ({"type": "array", "maxItems": 2}, ArrayType(ANY, 0, 2)),
    "minItems": ({"type": "array", "minItems": 1, "maxItems": 1}, ArrayType(ANY, 1, 1)),
    # objects
    "closed": ({"type": "object", "additionalProperties": False}, ObjectType((), frozenset(), None)),
    "open": ({"type": "object", "additionalProperties": True}, OPEN),
    "typed": ({"type": "object", "additionalProperties": {"type": "null"}}, ObjectType((), frozenset(), NULL)),
    "properties in their order": (
        {"type": "object", "properties": {"b": {"type": "null"}, "a": {}}, "required": ["a"], "additionalProperties": False},
        ObjectType((("b", NULL), ("a", ANY)), frozenset({"a"}), None),
    ),
    "a required member that is not declared has the type of the others": (
        {"type": "object", "required": ["x"], "additionalProperties": {"type": "null"}},
        ObjectType((("x", NULL),), frozenset({"x"}), NULL),
    ),
    # enum and const
    "enum": ({"enum": ["a", 1, None, {"k": [True]}]}, EnumType(('"a"', "1", "null", '{"k": [true]}'))),
    "a value twice": ({"enum": ["a", "a"]}, EnumType(('"a"',))),
    "const": ({"const": "é"}, EnumType(('"é"',))),
    "const null": ({"const": None}, EnumType(("null",))),
    "const false": ({"const": False}, EnumType(("false",))),
    "enum of its type only": ({"type": "string", "enum": ["a", 1, None]}, EnumType(('"a"',))),
    "integers are numbers": ({"type": "number", "enum": [1, 1.5, "a"]}, EnumType(("1", "1.5"))),
    "booleans are not integers": ({"type": "integer", "enum": [True, 1]}, EnumType(("1",))),
    "enum within the other bounds": ({"enum": ["a", "abc", 7], "maxLength": 2}, EnumType(('"a"', "7"))),
    "enum and const": ({"enum": ["a", "b"], "const": "b"}, EnumType(('"b"',))),
    "enum of fitting objects": ({"enum": [{"a": 1}, {"a": "x"}], "properties": {"a": {"type": "string"}}}, EnumType(('{"a": "x"}',))),
    # nullable
    "nullable": ({"type": "string", "nullable": True}, UnionType((STRING, NULL))),
    "not nullable": ({"type": "string", "nullable": False}, STRING),
    "nullable enum": ({"enum": ["a"], "nullable": True}, EnumType(('"a"', "null"))),
    "nullable typed enum": ({"type": "string", "enum": ["a"], "nullable": True}, EnumType(('"a"', "null"))),
    "nullable null": ({"type": "null", "nullable": True}, NULL),
    # anyOf
    "anyOf with null": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, UnionType((STRING, NULL))),
    "anyOf of one": ({"anyOf": [{"type": "string"}]}, STRING),
    "anyOf in anyOf": ({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}]}, UnionType((STRING, NULL))),
    "anyOf with anything": ({"anyOf": [{"type": "string"}, {}]}, ANY),
    "anyOf of enums": ({"anyOf": [{"enum": ["a"]}, {"const": 1}]}, UnionType((EnumType(('"a"',)), EnumType(("1",))))),
    "nullable anyOf": ({"anyOf": [{"type": "string"}], "nullable": True}, UnionType((STRING, NULL))),
    "anyOf beside a type": ({"type": "string", "anyOf": [{"maxLength": 1}, {"type": "integer"}]}, StringType(0, 1)),
    "anyOf beside types": ({"type": ["string", "null"], "anyOf": [{}, {"type": "integer"}]}, UnionType((STRING, NULL))),
    "anyOf of numbers beside integer": ({"type": "integer", "anyOf": [{"type": "number"}, {"type": "string"}]}, INTEGER),
    "anyOf of an enum beside a type": ({"type": "string", "anyOf": [{"enum": ["a", 1]}]}, EnumType(('"a"',))),
    # what says nothing of the declared type
    "keywords of other types": ({"type": "integer", "maxLength": 1, "properties": {"a": {}}, "items": {}}, INTEGER),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), READ.values(), ids=READ)
def test_a_keyword_is_read(schema: Any, expected: Type) -> None:
    assert read(schema) == expected


def test_keywords_without_a_type_hold_for_the_values_that_they_speak_of() -> None:
    without_type = read({"maxLength": 1})
    assert isinstance(without_type, UnionType)
    assert set(without_type.options) == {OPEN, ArrayType(ANY), StringType(0, 1), NUMBER, BOOLEAN, NULL}


@pytest.mark.parametrize("keyword", sorted(ANNOTATIONS))
def test_annotations_are_accepted_anywhere(keyword: str) -> None:
    note = {keyword: "x" if keyword not in ("examples", "default") else ["x"]}
    assert read({"type": "string", **note}) == STRING
    assert read({"anyOf": [{"type": "null", **note}], **note}) == NULL
    assert read({"enum": ["a"], **note}) == EnumType(('"a"',))
    top = SchemaReader("tool").parameters({**note, "properties": {"a": {"type": "null", **note}}})
    assert top == ObjectType((("a", NULL),), frozenset(), None)


# -- a tool's parameters


@pytest.mark.parametrize("schema", [{}, None, {"type": "object"}, {"properties": {}}, {"required": []}])
def test_a_tool_without_parameters_takes_none(schema: Any) -> None:
    assert SchemaReader("tool").parameters(schema) == ObjectType((), frozenset(), None)


def test_a_tools_parameters_are_closed_unless_it_says_otherwise() -> None:
    reader = SchemaReader("tool")
    assert reader.parameters({"properties": {"a": {"type": "null"}}}).additional is None
    assert reader.parameters({"additionalProperties": False}).additional is None
    assert reader.parameters({"additionalProperties": True}).additional == ANY
    assert reader.parameters({"additionalProperties": {"type": "null"}}).additional == NULL
    nested = reader.parameters({"properties": {"a": {"type": "object"}}}).properties
    assert nested == (("a", OPEN),)


def test_a_required_parameter_that_is_not_declared_may_be_anything() -> None:
    read_ = SchemaReader("tool").parameters({"properties": {"a": {}}, "required": ["b"]})
    assert read_ == ObjectType((("a", ANY), ("b", ANY)), frozenset({"b"}), None)


@given(parameters())
@examples(100)
def test_equal_schemas_have_equal_types(schema: dict[str, Any]) -> None:
    """What is built from a type is kept by it."""
    copy = json.loads(json.dumps(schema))
    one, other = SchemaReader("a").parameters(schema), SchemaReader("b").parameters(copy)
    assert one == other
    assert hash(one) == hash(other)


# -- refusals

UNSUPPORTED = [
    "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "multipleOf", "uniqueItems", "contains",
    "prefixItems", "minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired",
    "allOf", "oneOf", "not", "if", "then", "$ref", "$defs", "definitions", "unevaluatedProperties", "x-own", "Type",
]  # fmt: skip


@pytest.mark.parametrize("keyword", UNSUPPORTED)
def test_an_unknown_keyword_is_refused_wherever_it_stands(keyword: str) -> None:
    inner = {"type": "string", keyword: {}}
    places: dict[str, Any] = {
        f"/{keyword}": {keyword: {}},
        f"/properties/a/{keyword}": {"properties": {"a": inner}},
        f"/properties/a/items/{keyword}": {"properties": {"a": {"type": "array", "items": inner}}},
        f"/properties/a/anyOf/1/{keyword}": {"properties": {"a": {"anyOf": [{}, inner]}}},
        f"/properties/a/properties/b~1c~0/{keyword}": {
            "properties": {"a": {"type": "object", "properties": {"b/c~": inner}}}
        },
        f"/additionalProperties/{keyword}": {"additionalProperties": inner},
        f"/properties/a/additionalProperties/{keyword}": {
            "properties": {"a": {"type": "object", "additionalProperties": inner}}
        },
        f"/properties/e/{keyword}": {"properties": {"e": {"enum": ["a"], keyword: {}}}},
    }
    for pointer, schema in places.items():
        with pytest.raises(UnsupportedKeyword) as refused:
            SchemaReader("my_tool").parameters(schema)
        check(refused.value, "my_tool", pointer, keyword)


def check(error: GrammarsError, tool: str | None, pointer: str, keyword: str | None) -> None:
    assert (error.tool, error.pointer, error.keyword) == (tool, pointer, keyword)
    message = str(error)
    if tool is not None:
        assert repr(tool) in message
    if pointer:
        assert repr(pointer) in message
    if keyword is not None and isinstance(error, UnsupportedKeyword):
        assert repr(keyword) in message


INVALID: dict[str, tuple[Any, str, str | None]] = {
    "not a type": ({"type": "text"}, "/type", "type"),
    "not a type in a list": ({"type": ["string", "text"]}, "/type", "type"),
    "no types": ({"type": []}, "/type", "type"),
    "a number for a type": ({"type": 3}, "/type", "type"),
    "false": (False, "", None),
    "a string": ("string", "", None),
    "a list": ([], "", None),
    "null": (None, "", None),
    "a schema that is no schema": ({"properties": {"a": 3}}, "/properties/a", None),
    "items that are no schema": ({"type": "array", "items": [{"type": "string"}]}, "/items", None),
    "properties that are none": ({"type": "object", "properties": []}, "/properties", "properties"),
    "required that is no list": ({"type": "object", "required": "a"}, "/required", "required"),
    "required that are no names": ({"type": "object", "required": [1]}, "/required", "required"),
    "a required member that may not be": ({"type": "object", "required": ["a"], "additionalProperties": False}, "/required", "required"),
    "a length that is no number": ({"type": "string", "maxLength": "3"}, "/maxLength", "maxLength"),
    "a length that is not whole": ({"type": "string", "maxLength": 1.5}, "/maxLength", "maxLength"),
    "a length below zero": ({"type": "string", "minLength": -1}, "/minLength", "minLength"),
    "a length that is a boolean": ({"type": "string", "maxLength": True}, "/maxLength", "maxLength"),
    "lengths that cross": ({"type": "string", "minLength": 3, "maxLength": 2}, "/minLength", "minLength"),
    "item counts that cross": ({"type": "array", "minItems": 3, "maxItems": 2}, "/minItems", "minItems"),
    "an enum that is no list": ({"enum": "a"}, "/enum", "enum"),
    "an empty enum": ({"enum": []}, "/enum", "enum"),
    "an enum of other types": ({"type": "integer", "enum": ["a"]}, "/enum", "enum"),
    "a const of another type": ({"type": "integer", "const": "a"}, "/const", "const"),
    "an enum without its const": ({"enum": ["a"], "const": "b"}, "/enum", "enum"),
    "an enum beside a bound that is none": ({"enum": ["a"], "maxLength": -1}, "/maxLength", "maxLength"),
    "no branches": ({"anyOf": []}, "/anyOf", "anyOf"),
    "branches that are no list": ({"anyOf": {}}, "/anyOf", "anyOf"),
    "no branch of the type": ({"type": "string", "anyOf": [{"type": "null"}]}, "/anyOf", "anyOf"),
    "a branch that is none": ({"anyOf": [{"type": "null"}, 1]}, "/anyOf/1", None),
    "nullable that is no boolean": ({"type": "string", "nullable": "yes"}, "/nullable", "nullable"),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "pointer", "keyword"), INVALID.values(), ids=INVALID)
def test_what_is_no_schema_or_satisfied_by_nothing_is_refused(
    schema: Any, pointer: str, keyword: str | None
) -> None:
    with pytest.raises(InvalidSchema) as refused:
        SchemaReader("my_tool").parameters({"properties": {"p": schema}})
    check(refused.value, "my_tool", f"/properties/p{pointer}", keyword)
    with pytest.raises(InvalidSchema) as refused:
        SchemaReader().read(schema)
    check(refused.value, None, pointer, keyword)


@pytest.mark.parametrize("schema", ["object", [], 3, True])
def test_parameters_that_are_no_object_are_refused(schema: Any) -> None:
    with pytest.raises(InvalidSchema) as refused:
        SchemaReader("my_tool").parameters(schema)
    check(refused.value, "my_tool", "", None)


@pytest.mark.parametrize("declared", ["string", ["object", "null"], 3])
def test_parameters_of_another_type_are_refused(declared: Any) -> None:
    with pytest.raises(InvalidSchema) as refused:
        SchemaReader("my_tool").parameters({"type": declared})
    check(refused.value, "my_tool", "/type", "type")


@pytest.mark.parametrize("keyword", ["enum", "const", "anyOf", "nullable"])
def test_keywords_that_parameters_cannot_have_are_refused(keyword: str) -> None:
    with pytest.raises(UnsupportedKeyword) as refused:
        SchemaReader("my_tool").parameters({"properties": {}, keyword: [{}]})
    check(refused.value, "my_tool", f"/{keyword}", keyword)


@pytest.mark.parametrize("keyword", ["properties", "maxLength", "enum", "const", "items", "required"])
def test_keywords_beside_any_of_are_refused(keyword: str) -> None:
    """They would hold for every branch: ignoring them would widen the schema."""
    with pytest.raises(UnsupportedKeyword) as refused:
        read({"anyOf": [{"type": "string"}], keyword: 1})
    check(refused.value, "tool", f"/{keyword}", keyword)


def test_the_first_fault_of_a_tool_is_named_with_the_tool() -> None:
    with pytest.raises(UnsupportedKeyword, match=r"'send', the schema at '/properties/to/pattern': .*'pattern'"):
        SchemaReader("send").parameters({"properties": {"to": {"type": "string", "pattern": "@"}}})


@pytest.mark.parametrize("wrap", ["items", "properties", "anyOf"])
def test_a_schema_nested_too_deeply_is_refused(wrap: str) -> None:
    """It would fail where a mask is made, in the middle of a turn."""
    schema: Any = {"type": "null"}
    for _ in range(2000):
        schema = {
            "items": {"type": "array", "items": schema},
            "properties": {"type": "object", "properties": {"a": schema}},
            "anyOf": {"anyOf": [schema]},
        }[wrap]
    with pytest.raises(InvalidSchema, match="deep"):
        SchemaReader("my_tool").parameters({"properties": {"p": schema}})


def test_a_tool_has_a_name_a_description_and_parameters() -> None:
    assert Tool("f") == Tool("f", "", {})
