"""JSON Schema → a small tree of types.

The tree says what a grammar can enforce exactly. A keyword that it has no place for is refused with its
pointer: nothing is ever silently ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from jsonschema import Draft202012Validator

from larksong.grammars.errors import InvalidSchema, UnsupportedKeyword

ANNOTATIONS = frozenset({
    "$schema", "$comment", "title", "description", "default", "examples",
    "deprecated", "readOnly", "writeOnly",
})  # fmt: skip
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
# Which keywords say something about which type; the others have no place in the tree.
KEYWORDS = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
}
GENERAL = frozenset({"type", "enum", "const", "anyOf", "nullable"})
# Steps of a JSON pointer. What is nested deeper would exhaust Python's stack, here or in Lark's analysis.
DEEPEST = 100
KNOWN = ANNOTATIONS | GENERAL | frozenset[str]().union(*KEYWORDS.values())


@dataclass(frozen=True)
class AnyType:
    """Any JSON value."""


@dataclass(frozen=True)
class StringType:
    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True)
class NumberType:
    integer: bool


@dataclass(frozen=True)
class BooleanType:
    pass


@dataclass(frozen=True)
class NullType:
    pass


@dataclass(frozen=True)
class EnumType:
    """One of some JSON values, each as its canonical JSON text."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class ArrayType:
    items: Type
    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True)
class ObjectType:
    """`properties` in declared order; `additional`: the type of other members, None: there are none."""

    properties: tuple[tuple[str, Type], ...]
    required: frozenset[str]
    additional: Type | None


@dataclass(frozen=True)
class UnionType:
    """Any of some types, none of which is a union."""

    options: tuple[Type, ...]


Type = (
    AnyType | StringType | NumberType | BooleanType | NullType | EnumType | ArrayType | ObjectType | UnionType
)


def json_text(value: Any) -> str:
    """The canonical JSON text of a value: as `json.dumps` writes it, without ASCII escapes."""
    return json.dumps(value, ensure_ascii=False)


class SchemaReader:
    """Reads the schemas of one tool; `tool` is its name, for errors."""

    def __init__(self, tool: str | None = None) -> None:
        self.tool = tool

    def parameters(self, schema: Any) -> ObjectType:
        """A tool's parameters: an object, closed to the declared names unless the schema says otherwise."""
        if schema is None:
            schema = {}
        if not isinstance(schema, Mapping):
            self._invalid("", None, f"a tool's parameters must be a JSON Schema object, not {_kind(schema)}")
        self._check_keywords(schema, "")
        if schema.get("type", "object") != "object":
            self._invalid("/type", "type", "a tool's parameters must have the type object")
        for keyword in ("enum", "const", "anyOf", "nullable"):
            if keyword in schema:
                self._unsupported(f"/{keyword}", keyword)
        return self._object(schema, "", closed=True)

    def read(self, schema: Any, pointer: str = "") -> Type:
        """The type of a (sub)schema at `pointer`."""
        if pointer.count("/") > DEEPEST:
            self._invalid(pointer, None, f"is nested too deeply: more than {DEEPEST} steps from the top")
        if schema is True:
            return AnyType()
        if not isinstance(schema, Mapping):
            self._invalid(pointer, None, f"a schema must be an object or true, not {_kind(schema)}")
        self._check_keywords(schema, pointer)
        if "anyOf" in schema:
            return self._any_of(schema, pointer)
        types = self._types(schema, pointer)
        if "enum" in schema or "const" in schema:
            return self._enum(schema, types, pointer)
        if len(types) == len(TYPES) and not any(schema.keys() & keywords for keywords in KEYWORDS.values()):
            return AnyType()
        return union([self._typed(name, schema, pointer) for name in types])

    def _check_keywords(self, schema: Mapping[str, Any], pointer: str) -> None:
        for keyword in schema:
            if keyword not in KNOWN:
                self._unsupported(f"{pointer}/{_escape(keyword)}", keyword)

    def _types(self, schema: Mapping[str, Any], pointer: str) -> tuple[str, ...]:
        declared = schema.get("type", TYPES)
        names = (declared,) if isinstance(declared, str) else declared
        if not isinstance(names, list | tuple) or not names:
            self._invalid(f"{pointer}/type", "type", "must be a type name or a list of them")
        for name in names:
            if name not in TYPES:
                self._invalid(f"{pointer}/type", "type", f"{name!r} is not a type; types: {', '.join(TYPES)}")
        nullable = schema.get("nullable", False)
        if not isinstance(nullable, bool):
            self._invalid(f"{pointer}/nullable", "nullable", "must be true or false")
        found = tuple(dict.fromkeys(names))
        return (*found, "null") if nullable and "null" not in found else found

    def _typed(self, name: str, schema: Mapping[str, Any], pointer: str) -> Type:
        match name:
            case "object":
                return self._object(schema, pointer, closed=False)
            case "array":
                return self._array(schema, pointer)
            case "string":
                minimum, maximum = self._bounds(schema, "minLength", "maxLength", pointer)
                return StringType(minimum, maximum)
            case "number" | "integer":
                return NumberType(integer=name == "integer")
            case "boolean":
                return BooleanType()
        return NullType()

    def _object(self, schema: Mapping[str, Any], pointer: str, *, closed: bool) -> ObjectType:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            self._invalid(f"{pointer}/properties", "properties", "must be an object")
        required = schema.get("required", [])
        if not isinstance(required, list | tuple) or not all(isinstance(name, str) for name in required):
            self._invalid(f"{pointer}/required", "required", "must be a list of names")
        extra = schema.get("additionalProperties", not closed)
        additional = None if extra is False else self.read(extra, f"{pointer}/additionalProperties")
        members = {
            name: self.read(sub, f"{pointer}/properties/{_escape(name)}") for name, sub in properties.items()
        }
        for name in (*members, *required):
            self._check_text(name, f"{pointer}/{'properties' if name in members else 'required'}")
        for name in required:
            if name not in members:
                if additional is None and "additionalProperties" in schema:
                    self._invalid(
                        f"{pointer}/required",
                        "required",
                        f"{name!r} is required but no such member is allowed",
                    )
                members[name] = additional or AnyType()
        return ObjectType(tuple(members.items()), frozenset(required), additional)

    def _array(self, schema: Mapping[str, Any], pointer: str) -> ArrayType:
        minimum, maximum = self._bounds(schema, "minItems", "maxItems", pointer)
        return ArrayType(self.read(schema.get("items", True), f"{pointer}/items"), minimum, maximum)

    def _bounds(
        self, schema: Mapping[str, Any], lower: str, upper: str, pointer: str
    ) -> tuple[int, int | None]:
        for keyword in (lower, upper):
            value = schema.get(keyword, 0)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                self._invalid(f"{pointer}/{keyword}", keyword, "must be a whole number, 0 or more")
        minimum, maximum = schema.get(lower, 0), schema.get(upper)
        if maximum is not None and minimum > maximum:
            self._invalid(f"{pointer}/{lower}", lower, f"is larger than {upper}: nothing can satisfy both")
        return minimum, maximum

    def _enum(self, schema: Mapping[str, Any], types: tuple[str, ...], pointer: str) -> Type:
        values = schema.get("enum", [schema.get("const")])
        if not isinstance(values, list | tuple):
            self._invalid(f"{pointer}/enum", "enum", "must be a list of values")
        self.read(
            {keyword: value for keyword, value in schema.items() if keyword not in ("enum", "const")}, pointer
        )
        rest = {k: v for k, v in schema.items() if k not in ("enum", "nullable") and k not in ANNOTATIONS}
        rest["type"] = list(types)
        check = Draft202012Validator(rest)
        texts = dict.fromkeys(json_text(value) for value in values if check.is_valid(value))
        if schema.get("nullable"):
            texts["null"] = None
        keyword = "enum" if "enum" in schema else "const"
        for text in texts:
            self._check_text(text, f"{pointer}/{keyword}")
        if not texts:
            self._invalid(f"{pointer}/{keyword}", keyword, "no value of it fits the rest of the schema")
        return EnumType(tuple(texts))

    def _any_of(self, schema: Mapping[str, Any], pointer: str) -> Type:
        branches = schema["anyOf"]
        if not isinstance(branches, list | tuple) or not branches:
            self._invalid(f"{pointer}/anyOf", "anyOf", "must be a list of schemas")
        for keyword in schema:
            if keyword not in ANNOTATIONS and keyword not in ("anyOf", "nullable", "type"):
                self._unsupported(f"{pointer}/{_escape(keyword)}", keyword, "beside anyOf")
        types = set(self._types(schema, pointer))
        options = [self.read(branch, f"{pointer}/anyOf/{i}") for i, branch in enumerate(branches)]
        if schema.get("nullable"):
            options.append(NullType())
        if "type" in schema:
            options = [kept for option in options for kept in [_restrict(option, types)] if kept is not None]
            if not options:
                self._invalid(f"{pointer}/anyOf", "anyOf", "no branch fits the type beside it")
        return union(options)

    def _check_text(self, text: str, pointer: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError:
            self._invalid(pointer, pointer.rpartition("/")[2], f"{text!r} holds half a character")

    def _invalid(self, pointer: str, keyword: str | None, message: str) -> NoReturn:
        raise InvalidSchema(
            f"{self._where(pointer)}: {message}", tool=self.tool, pointer=pointer, keyword=keyword
        )

    def _unsupported(self, pointer: str, keyword: str, where: str = "") -> NoReturn:
        raise UnsupportedKeyword(
            f"{self._where(pointer)}: the keyword {keyword!r} is not supported{' ' + where if where else ''}",
            tool=self.tool,
            pointer=pointer,
            keyword=keyword,
        )

    def _where(self, pointer: str) -> str:
        place = f"the schema at {pointer!r}" if pointer else "the schema"
        return f"tool {self.tool!r}, {place}" if self.tool else place


def union(options: list[Type]) -> Type:
    """The union of types, flattened: nested unions and repeated options would be ambiguous to a parser."""
    flat: dict[Type, None] = {}
    for option in options:
        flat.update(dict.fromkeys(option.options if isinstance(option, UnionType) else (option,)))
    if AnyType() in flat:
        return AnyType()
    if NumberType(integer=False) in flat:
        flat.pop(NumberType(integer=True), None)
    return next(iter(flat)) if len(flat) == 1 else UnionType(tuple(flat))


_CLASS_TYPES: dict[type, str] = {
    ObjectType: "object", ArrayType: "array", StringType: "string", BooleanType: "boolean", NullType: "null",
}  # fmt: skip


def _restrict(option: Type, types: set[str]) -> Type | None:
    """The part of `option` that has one of `types`."""
    match option:
        case UnionType(options):
            kept = [part for part in (_restrict(each, types) for each in options) if part is not None]
            return union(kept) if kept else None
        case EnumType(values):
            check = Draft202012Validator({"type": sorted(types)})
            texts = tuple(text for text in values if check.is_valid(json.loads(text)))
            return EnumType(texts) if texts else None
        case AnyType():
            return union([_unconstrained(name) for name in TYPES if name in types])
        case NumberType():
            if "number" in types:
                return option
            return NumberType(integer=True) if "integer" in types else None
    return option if _CLASS_TYPES[type(option)] in types else None


def _unconstrained(name: str) -> Type:
    return SchemaReader().read({"type": name})


def _escape(name: str) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}.get(
        type(value), "null" if value is None else "a number"
    )
