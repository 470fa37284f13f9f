"""Not: De Morgan's laws on the keywords of a schema.

The negation of a schema is a union: one alternative for each keyword, of the values that break it. Each
alternative is a conjunction of schemas again, so nothing but this module knows of negation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from larksong.grammars.schema.document import ALL_TYPES, ANY, NEVER, TYPES, Document, Origin, Values
from larksong.grammars.schema.string_formats import LONGEST
from larksong.grammars.schema.unenforceable import CannotEnforce, unresolved

Alternative = tuple[int, ...]
"""schemas that hold together"""

NUMBERS, STRING = TYPES["number"], TYPES["string"]
ARRAY, OBJECT = TYPES["array"], TYPES["object"]


def negated(document: Document, number: int, origin: Origin) -> int:
    """The number of the schema that holds where `number` does not."""
    if number in (ANY, NEVER):
        return NEVER if number == ANY else ANY
    keywords = document.records[number].keywords
    if keywords.keys() == {"not"}:
        return int(keywords["not"])
    return document.written({"not": number}, origin)


class Negation:
    """The alternatives of the negation of one schema, which `origin` asks for."""

    def __init__(
        self, document: Document, origin: Origin, formats: Callable[[str], bool], dropped: set[Origin]
    ) -> None:
        self._document, self._origin = document, origin
        self._is_asserted = formats
        self._dropped = dropped

    def of(self, number: int) -> list[Alternative]:
        record = self._document.records[number]
        found: list[Alternative] = []
        for keyword, value in record.keywords.items():
            if Origin(number, keyword) not in self._dropped:
                found += self._broken(number, keyword, value, record.keywords)
        return found

    def _not(self, number: int) -> int:
        return negated(self._document, number, self._origin)

    def _write(self, types: frozenset[str], **keywords: Any) -> Alternative:
        return (self._document.written({"type": types, **keywords}, self._origin),)

    def _impossible(self, keyword: str) -> CannotEnforce:
        return CannotEnforce(self._origin, f"it negates {keyword!r}, which has no exact grammar")

    def _broken(self, number: int, keyword: str, value: Any, record: Any) -> Iterator[Alternative]:
        """The ways to break one keyword."""
        match keyword:
            case "never":
                yield ()
            case "type":
                if value != ALL_TYPES:
                    yield self._write(ALL_TYPES - value)
            case "enum" | "const":
                yield from self._other_value(value)
            case "other_values":
                yield (self._document.written({"enum": value}, self._origin),)
            case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
                yield self._write(NUMBERS, **{_OPPOSITE[keyword]: value})
            case "multipleOf":
                yield self._write(NUMBERS, not_multiple_of=value)
            case "not_multiple_of":
                yield self._write(NUMBERS, multipleOf=value)
            case "pattern":
                yield self._write(STRING, not_pattern=value)
            case "not_pattern":
                yield self._write(STRING, pattern=value)
            case "format":
                if self._is_asserted(value):
                    yield self._write(STRING, not_format=value)
                    if value in LONGEST:
                        yield self._write(STRING, minLength=LONGEST[value] + 1)
            case "not_format":
                yield self._write(STRING, format=value)
            case "minLength" | "minItems" | "minProperties":
                if value:
                    yield self._write(_SIZED[keyword[3:]], **{"max" + keyword[3:]: value - 1})
            case "maxLength" | "maxItems" | "maxProperties":
                yield self._write(_SIZED[keyword[3:]], **{"min" + keyword[3:]: value + 1})
            case "prefixItems" | "items" | "contains" | "uniqueItems":
                yield from self._array(keyword, value, record)
            case "properties" | "required" | "dependentRequired" | "dependentSchemas":
                yield from self._object(keyword, value)
            case "patternProperties" | "additionalProperties" | "propertyNames":
                schemas = [sub for _, sub in value] if keyword == "patternProperties" else [value]
                if any(sub != ANY for sub in schemas):
                    raise self._impossible(keyword)
            case "unevaluatedProperties" | "unevaluatedItems":
                raise self._impossible(keyword)
            case "$ref" | "$dynamicRef":
                target = self._document.target(number, keyword, value)
                if target is None:
                    raise unresolved(Origin(number, keyword), value)
                yield (self._not(target),)
            case "allOf":
                yield from ((self._not(sub),) for sub in value)
            case "anyOf":
                yield tuple(map(self._not, value))
            case "oneOf":
                yield tuple(map(self._not, value))
                yield from combinations(value, 2)
            case "not":
                yield (value,)
            case "if":
                yield value, self._not(record.get("then", ANY))
                yield self._not(value), self._not(record.get("else", ANY))

    def _other_value(self, values: Values) -> Iterator[Alternative]:
        scalars = Values(values.scalars, ())
        other = self._document.written({"other_values": scalars}, self._origin)
        yield (other, *map(self._not, values.others))

    def _array(self, keyword: str, value: Any, record: Any) -> Iterator[Alternative]:
        if keyword == "prefixItems":
            for i, sub in enumerate(value):
                if sub != ANY:
                    yield self._write(ARRAY, minItems=i + 1, prefixItems=(*[ANY] * i, self._not(sub)))
        elif keyword == "items":
            before = len(record.get("prefixItems", ()))
            if value == NEVER:
                yield self._write(ARRAY, minItems=before + 1)
            elif value != ANY and before:
                raise self._impossible(keyword)
            elif value != ANY:
                yield self._write(ARRAY, contains=self._not(value))
        elif keyword == "contains":
            least, most = record.get("minContains", 1), record.get("maxContains")
            if least:
                yield self._write(ARRAY, contains=value, minContains=0, maxContains=least - 1)
            if most is not None:
                yield self._write(ARRAY, contains=value, minContains=most + 1)
        else:
            raise self._impossible(keyword)

    def _object(self, keyword: str, value: Any) -> Iterator[Alternative]:
        if keyword == "properties":
            for name, sub in value:
                if sub != ANY:
                    yield self._write(OBJECT, required=(name,), properties=((name, self._not(sub)),))
        elif keyword == "required":
            for name in value:
                yield self._write(OBJECT, properties=((name, NEVER),))
        elif keyword == "dependentRequired":
            for name, others in value:
                for other in others:
                    yield self._write(OBJECT, required=(name,), properties=((other, NEVER),))
        else:
            for name, sub in value:
                yield (*self._write(OBJECT, required=(name,)), self._not(sub))


_OPPOSITE = {
    "minimum": "exclusiveMaximum",
    "exclusiveMinimum": "maximum",
    "maximum": "exclusiveMinimum",
    "exclusiveMaximum": "minimum",
}
_SIZED = {"Length": STRING, "Items": ARRAY, "Properties": OBJECT}
