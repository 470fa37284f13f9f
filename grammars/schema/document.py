"""A schema document, read once: keywords checked, spelled one way, equal schemas made one.

A schema becomes a number; its `Record` has the keywords that constrain something, with the numbers of the
schemas inside. What the drafts spell differently is spelled as in draft 2020-12: tuple `items`,
`dependencies`, boolean `exclusiveMinimum`, `nullable`. Annotations and unknown keywords are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from larksong.engine.automata.regex import check_syntax
from larksong.engine.errors import InvalidPattern
from larksong.grammars.errors import InvalidSchema
from larksong.grammars.schema.clock import Clock
from larksong.grammars.schema.limits import Limits
from larksong.grammars.schema.references import LATEST, References, Resource, escape
from larksong.grammars.schema.values import canonical, decimal, is_finite, is_number, json_text, scalar_texts

_SHOWN = 300
ANY, NEVER = 0, 1
"""the schemas `true` and `false`"""

TYPES: dict[str, frozenset[str]] = {
    **{name: frozenset({name}) for name in ("null", "boolean", "string", "array", "object", "integer")},
    "number": frozenset({"integer", "fraction"}),
}
"""what each type name stands for; `fraction`: numbers that are not whole"""
ALL_TYPES = frozenset[str]().union(*TYPES.values())

Content = tuple[tuple[str, Any], ...]


class Origin(NamedTuple):
    """The keyword of a schema that made the compiler write another schema."""

    number: int
    keyword: str


@dataclass(frozen=True, eq=False)
class Record:
    """A schema as its keywords; schemas inside are numbers. `pointer`: where it was met first.

    `content`: what equal schemas share. `origin` is None for the schemas that stand in the document.
    """

    keywords: Mapping[str, Any]
    content: Content
    pointer: str
    resource: Resource
    origin: Origin | None = None


@dataclass(frozen=True)
class Values:
    """`enum` or `const`: scalars by canonical text with the texts to write, other values as schemas."""

    scalars: tuple[tuple[str, tuple[str, ...]], ...]
    others: tuple[int, ...]


class Document:
    """The schemas of one document. `tool` is the tool's name, for errors."""

    def __init__(self, root: Any, limits: Limits, tool: str | None = None) -> None:
        self.tool = tool
        self.limits = limits
        self._clock = Clock(limits.seconds)
        self.references = References(root)
        self.records: list[Record] = [
            Record({}, (), "", self.references.root),
            Record({"never": True}, (("never", True),), "", self.references.root),
        ]
        self._numbers: dict[Content, int] = {(): ANY, (("never", True),): NEVER}
        self._known: dict[tuple[int, int], tuple[int, Any]] = {}
        self._targets: dict[tuple[int, str], int | None] = {}
        # What the compiler writes is read by the latest draft, whatever draft the document has.
        self._own = Resource(None, "", "", LATEST, declared=False)
        self.root = self.number(root, self.references.root, "", 0)

    # -- schemas as numbers

    def number(self, schema: Any, resource: Resource, pointer: str, depth: int) -> int:
        """The number of a schema that stands at `pointer`."""
        if schema is True:
            return ANY
        if schema is False:
            return NEVER
        if not isinstance(schema, dict) and not isinstance(schema, Mapping):  # dict: the quick answer
            keyword = _holder(pointer)
            self.invalid(pointer, keyword, f"a schema must be an object, true or false, not {kind(schema)}")
        if depth > self.limits.depth:
            self.invalid(pointer, None, f"schemas are nested deeper than {self.limits.depth} levels")
        resource = self.references.enter(schema, resource, pointer)
        key = (id(schema), id(resource))
        known = self._known.get(key)
        if known is None:
            self.check_time()
            # The schema is kept with its number, so that no other object can get its id.
            known = self._known[key] = (self._read(schema, resource, pointer, depth), schema)
        return known[0]

    def literal(self, schema: dict[str, Any], pointer: str) -> int:
        """The number of a schema that the compiler itself writes."""
        return self.number(schema, self._own, pointer, 0)

    def written(self, keywords: dict[str, Any], origin: Origin) -> int:
        """The number of a schema that follows from another one, given as keywords of a record."""
        if not keywords:
            return ANY
        content = (*sorted(keywords.items()), ("origin", origin))
        number = self._numbers.get(content)
        if number is None:
            source = self.records[origin.number]
            number = self._numbers[content] = len(self.records)
            self.records.append(Record(keywords, content, source.pointer, source.resource, origin))
        return number

    def target(self, number: int, keyword: str, reference: str) -> int | None:
        """The schema that a reference leads to; None if it is not in this document."""
        record = self.records[number]
        key = (id(record.resource), keyword + reference)
        if key not in self._targets:
            find = self.references.resolve if keyword == "$ref" else self.references.dynamic
            place = find(reference, record.resource)
            self._targets[key] = None if place is None else self.number(*place, 0)
        return self._targets[key]

    def _read(self, schema: Mapping[str, Any], resource: Resource, pointer: str, depth: int) -> int:
        found: dict[str, Any] = {}
        if "$ref" in schema and resource.draft <= 7 and resource.declared:
            schema = {"$ref": schema["$ref"]}
        context = _Context(resource, pointer, depth)
        for keyword, value in schema.items():
            reader = _READERS.get(keyword)
            if reader is not None and (not resource.declared or _SINCE.get(keyword, 0) <= resource.draft):
                reader(self, found, keyword, value, schema, context)
        number = self._number_of(found, resource, pointer)
        if "nullable" in schema and self._is_nullable(schema, pointer):
            # OpenAPI's way to say: this, or null.
            null = self.literal({"type": "null"}, pointer)
            number = self._number_of({"anyOf": (number, null)}, resource, pointer)
        return number

    def _is_nullable(self, schema: Mapping[str, Any], pointer: str) -> bool:
        nullable = schema["nullable"]
        if not isinstance(nullable, bool):
            self.invalid(f"{pointer}/nullable", "nullable", "must be true or false")
        return nullable

    def _number_of(self, found: dict[str, Any], resource: Resource, pointer: str) -> int:
        """The number of the schema with these keywords."""
        if "$ref" in found or "$dynamicRef" in found:
            found["resource"] = id(resource)
        content = tuple(sorted(found.items()))
        number = self._numbers.get(content)
        if number is None:
            if len(self.records) >= self.limits.schemas:
                self.invalid(pointer, None, f"there are more than {self.limits.schemas} different schemas")
            number = self._numbers[content] = len(self.records)
            found.pop("resource", None)
            self.records.append(Record(found, content, pointer, resource))
        return number

    # -- errors

    def check_time(self) -> None:
        """Refuse the schema if reading it has taken too long."""
        if self._clock.is_over():
            self.invalid("", None, f"reading it takes more than {self.limits.seconds} s of processor time")

    def where(self, pointer: str) -> str:
        place = f"the schema at {shown(pointer)}" if pointer else "the schema"
        return f"tool {self.tool!r}, {place}" if self.tool else place

    def check_text(self, text: str, pointer: str, keyword: str) -> None:
        """Refuse what no JSON text in UTF-8 can hold, and what is too long."""
        longest = self.limits.text_characters
        if len(text) > longest:
            self.invalid(pointer, keyword, f"a text of it has more than {longest} characters")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                self.invalid(pointer, keyword, f"{shown(text)} holds half a character")

    def check_pattern(self, pattern: str, pointer: str, keyword: str) -> None:
        """Refuse what is no regular expression. Those that no grammar can enforce are another matter."""
        longest = self.limits.pattern_characters
        if len(pattern) > longest:
            self.invalid(pointer, keyword, f"a regular expression has more than {longest} characters")
        try:
            check_syntax(pattern)
        except InvalidPattern as error:
            self.invalid(pointer, keyword, f"no regular expression: {error}")

    def invalid(self, pointer: str, keyword: str | None, message: str) -> NoReturn:
        raise InvalidSchema(
            f"{self.where(pointer)}: {message}", tool=self.tool, pointer=pointer, keyword=keyword
        )


class _Context(NamedTuple):
    resource: Resource
    pointer: str
    depth: int

    def at(self, keyword: str) -> str:
        return f"{self.pointer}/{escape(keyword)}"


Reader = Callable[[Document, dict[str, Any], str, Any, Mapping[str, Any], _Context], None]


def kind(value: Any) -> str:
    """What a wrong value is, for messages."""
    return {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}.get(
        type(value), "null" if value is None else "a number"
    )


def shown(text: str) -> str:
    """A text in a message: its beginning, if it is long."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"


def _holder(pointer: str) -> str | None:
    """The keyword that has the schema at `pointer`."""
    steps = iter(pointer.split("/")[1:])
    found: str | None = None
    for step in steps:
        if step in _READERS or step in ("$defs", "definitions"):
            found = step
            if step in _NAMED:
                next(steps, None)  # a name, whatever it is
    return found


def _schema(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    found[keyword] = document.number(value, context.resource, context.at(keyword), context.depth + 1)


def _schemas(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    where = context.at(keyword)
    if not isinstance(value, list | tuple) or (not value and keyword != "prefixItems"):
        document.invalid(where, keyword, "must be a list of schemas")
    if keyword == "prefixItems":
        _check_tuple(document, value, where, keyword)
    found[keyword] = tuple(
        document.number(sub, context.resource, f"{where}/{i}", context.depth + 1)
        for i, sub in enumerate(value)
    )


def _named_schemas(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    where = context.at(keyword)
    if not isinstance(value, Mapping):
        document.invalid(where, keyword, "must be an object")
    if len(value) > document.limits.keys:
        document.invalid(where, keyword, f"has more than {document.limits.keys} names")
    for name in value:
        document.check_text(name, where, keyword)
        if keyword == "patternProperties":
            document.check_pattern(name, where, keyword)
    members = tuple(
        (name, document.number(sub, context.resource, f"{where}/{escape(name)}", context.depth + 1))
        for name, sub in value.items()
    )
    if members:
        found[keyword] = found.get(keyword, ()) + members
    if keyword == "properties":
        # Draft 3 says in the member that it is required.
        required = [
            name for name, sub in value.items() if isinstance(sub, dict) and sub.get("required") is True
        ]
        if required:
            found["required"] = tuple(sorted({*found.get("required", ()), *required}))


def _check_tuple(document: Document, value: Sequence[Any], where: str, keyword: str) -> None:
    most = document.limits.tuple_items
    if len(value) > most:
        document.invalid(where, keyword, f"has schemas for more than {most} items")


def _items(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if isinstance(value, list | tuple):
        where = context.at(keyword)
        _check_tuple(document, value, where, keyword)
        found["prefixItems"] = tuple(
            document.number(sub, context.resource, f"{where}/{i}", context.depth + 1)
            for i, sub in enumerate(value)
        )
        if "additionalItems" in schema:
            rest = schema["additionalItems"]
            found["items"] = document.number(
                rest, context.resource, context.at("additionalItems"), context.depth + 1
            )
    else:
        _schema(document, found, keyword, value, schema, context)


def _type(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if isinstance(value, str) and value in TYPES:
        found[keyword] = TYPES[value]
        return
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names:
        document.invalid(context.at(keyword), keyword, "must be a type name or a list of them")
    types: frozenset[str] = frozenset()
    for name in names:
        if not isinstance(name, str) or (name not in TYPES and (name != "any" or context.resource.draft > 3)):
            known = ", ".join(TYPES)
            document.invalid(context.at(keyword), keyword, f"{_name(name)} is not a type; types: {known}")
        types |= TYPES.get(name, ALL_TYPES)
    if types != ALL_TYPES:
        found[keyword] = types


def _name(value: Any) -> str:
    return shown(value) if isinstance(value, str) else kind(value)


def _values(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    where = context.at(keyword)
    values = [value] if keyword == "const" else value
    if not isinstance(values, list | tuple):
        document.invalid(where, keyword, "must be a list of values")
    if len(values) > document.limits.enum_values:
        document.invalid(where, keyword, f"has more than {document.limits.enum_values} values")
    scalars: dict[str, tuple[str, ...]] = {}
    others: dict[int, None] = {}
    for each in values:
        if isinstance(each, str):
            document.check_text(each, where, keyword)
            text = json_text(each)
            scalars[text] = (text,)
        elif isinstance(each, dict | list):
            others[document.literal(_schema_of(each), where)] = None
        else:
            if is_number(each) and not is_finite(each):
                document.invalid(where, keyword, f"{each} is no number of JSON, or too large")
            text = canonical(each)
            scalars[text] = tuple(dict.fromkeys((*scalars.get(text, ()), *scalar_texts(each))))
    found[keyword] = Values(tuple(scalars.items()), tuple(others))


def _schema_of(value: Any) -> dict[str, Any]:
    """The schema of exactly this value: its members may be written in any order."""
    if isinstance(value, dict):
        members = {name: _schema_of(each) for name, each in value.items()}
        return {
            "type": "object",
            "properties": members,
            "required": list(members),
            "additionalProperties": False,
        }
    if isinstance(value, list):
        items = [_schema_of(each) for each in value]
        size = {"minItems": len(items), "maxItems": len(items)}
        return {"type": "array", "prefixItems": items, **size}
    return {"const": value}


def _count(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    whole = is_finite(value) and value == int(value) and value >= 0
    if not whole:
        document.invalid(context.at(keyword), keyword, "must be a whole number, 0 or more")
    found[keyword] = int(value)


def _bound(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    plain = "minimum" if keyword.endswith("inimum") else "maximum"
    exclusive = "exclusive" + plain.capitalize()
    if keyword == exclusive and isinstance(value, bool):
        return  # draft 4: it says how to read its neighbour
    if not is_finite(value):
        document.invalid(context.at(keyword), keyword, "must be a finite number")
    if keyword == plain and schema.get(exclusive) is True:
        keyword = exclusive
    found[keyword] = decimal(value)


def _divisor(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if not is_finite(value) or value <= 0:
        document.invalid(context.at(keyword), keyword, "must be a finite number above 0")
    found["multipleOf"] = decimal(value)


def _pattern(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if not isinstance(value, str):
        document.invalid(context.at(keyword), keyword, "must be a regular expression")
    document.check_pattern(value, context.at(keyword), keyword)
    found[keyword] = value


def _text(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if not isinstance(value, str):
        document.invalid(context.at(keyword), keyword, "must be a string")
    found[keyword] = value


def _recursive_reference(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if not isinstance(value, str):
        document.invalid(context.at(keyword), keyword, "must be a string")
    found["$dynamicRef"] = value


def _required(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if isinstance(value, bool):
        return  # draft 3: read with `properties`
    names = _names(document, value, keyword, context)
    if names:
        found[keyword] = tuple(sorted({*found.get(keyword, ()), *names}))


def _names(document: Document, value: Any, keyword: str, context: _Context) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        document.invalid(context.at(keyword), keyword, "must be a list of names")
    if len(value) > document.limits.keys:
        document.invalid(context.at(keyword), keyword, f"has more than {document.limits.keys} names")
    for name in value:
        document.check_text(name, context.at(keyword), keyword)
    return tuple(value)


def _dependencies(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if not isinstance(value, Mapping):
        document.invalid(context.at(keyword), keyword, "must be an object")
    if len(value) > document.limits.keys:
        document.invalid(context.at(keyword), keyword, f"has more than {document.limits.keys} names")
    names: list[tuple[str, tuple[str, ...]]] = []
    schemas: dict[str, Any] = {}
    for name, each in value.items():
        document.check_text(name, context.at(keyword), keyword)
        if isinstance(each, list | tuple) or keyword == "dependentRequired":
            names.append((name, _names(document, each, keyword, context)))
        elif isinstance(each, str) and keyword == "dependencies":
            names.append((name, (each,)))
        else:
            schemas[name] = each
    if names:
        found["dependentRequired"] = found.get("dependentRequired", ()) + tuple(names)
    if schemas:
        where = context.at(keyword)
        found["dependentSchemas"] = found.get("dependentSchemas", ()) + tuple(
            (name, document.number(sub, context.resource, f"{where}/{escape(name)}", context.depth + 1))
            for name, sub in schemas.items()
        )


def _unique(
    document: Document, found: dict[str, Any], keyword: str, value: Any, schema: Any, context: _Context
) -> None:
    if not isinstance(value, bool):
        document.invalid(context.at(keyword), keyword, "must be true or false")
    if value:
        found[keyword] = True


_NAMED = {"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}

_READERS: dict[str, Reader] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _schemas),
    **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames"), _schema),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", "unevaluatedItems"), _schema),
    **dict.fromkeys(("properties", "patternProperties"), _named_schemas),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _count),
    **dict.fromkeys(("minProperties", "maxProperties"), _count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _bound),
    **dict.fromkeys(("multipleOf", "divisibleBy"), _divisor),
    **dict.fromkeys(("enum", "const"), _values),
    **dict.fromkeys(("$ref", "$dynamicRef", "format"), _text),
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), _dependencies),
    "items": _items,
    "type": _type,
    "pattern": _pattern,
    "required": _required,
    "uniqueItems": _unique,
    "$recursiveRef": _recursive_reference,
}

# A schema that says its draft is read by that draft: later keywords are unknown there, and mean nothing.
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "minContains", "maxContains"), 2019),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), 2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), 2020),
}
