"""The subschemas that say something about one place of a value, and all those of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from larksong.grammars.explain.scan import Step
from larksong.grammars.schema.references import References, escape

_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    *("not", "if", "then", "else", "contains", "propertyNames", "items", "additionalItems"),
    *("additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
)
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
# What stands under `if` asks something of a value, and wants nothing.
_HERE = ("not", "then", "else")
_MAX_PLACES = 500


class Place(NamedTuple):
    """A subschema and its JSON pointer."""

    pointer: str
    schema: Mapping[str, Any]


class Places:
    """The subschemas of one document."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._references = References(root)

    def along(self, path: Sequence[Step]) -> list[list[Place]]:
        """For each beginning of `path`, the shortest first: the subschemas that hold for the value there."""
        found = [self._same([Place("", self._root)])]
        for step in path:
            found.append(self._same([inner for place in found[-1] for inner in _step(place, step)]))
        return found

    def all(self) -> list[Place]:
        """Every subschema, the outer ones first."""
        todo = [Place("", self._root)]
        found: dict[str, Place] = {}
        for place in todo:
            if isinstance(place.schema, Mapping) and place.pointer not in found and len(found) < _MAX_PLACES:
                found[place.pointer] = place
                todo += _inside(place)
        return list(found.values())

    def _same(self, places: list[Place]) -> list[Place]:
        """`places` with all that holds for the same value: references, conjunctions, alternatives."""
        todo = list(places)
        found: dict[str, Place] = {}
        for place in todo:
            if not isinstance(place.schema, Mapping) or place.pointer in found:
                continue
            found[place.pointer] = place
            reference = place.schema.get("$ref", place.schema.get("$dynamicRef"))
            if isinstance(reference, str):
                target = self._references.resolve(reference, self._references.root)
                if target is not None:
                    todo.append(Place(target.pointer, target.schema))
            inside = (*_HERE, *_LISTS[:3], "dependentSchemas")
            todo += [each for keyword in inside for each in _under(place, keyword)]
        return list(found.values())


def _under(place: Place, keyword: str) -> Iterator[Place]:
    """The subschemas under one keyword."""
    value = place.schema.get(keyword)
    pointer = f"{place.pointer}/{escape(keyword)}"
    if isinstance(value, list):
        yield from (Place(f"{pointer}/{index}", each) for index, each in enumerate(value))
    elif isinstance(value, Mapping) and keyword in _NAMED:
        yield from (Place(f"{pointer}/{escape(name)}", each) for name, each in value.items())
    elif isinstance(value, Mapping):
        yield Place(pointer, value)


def _inside(place: Place) -> Iterator[Place]:
    for keyword in place.schema:
        if keyword in _LISTS or keyword in _SINGLE or keyword in _NAMED:
            yield from _under(place, keyword)


def _step(place: Place, step: Step) -> Iterator[Place]:
    pointer, schema = place
    if isinstance(step, int):
        tuples = [each for keyword in ("prefixItems", "items") for each in _tuple(place, keyword)]
        if step < len(tuples):
            yield tuples[step]
        elif isinstance(schema.get("items"), Mapping):
            yield from _under(place, "items")
        yield from _under(place, "additionalItems")
        yield from _under(place, "unevaluatedItems")
        return
    members = schema.get("properties")
    named = isinstance(members, Mapping) and step in members
    if isinstance(members, Mapping) and named:
        yield Place(f"{pointer}/properties/{escape(step)}", members[step])
    # Which patterns a name matches is not asked: a schema's expression may run for years.
    yield from _under(place, "patternProperties")
    if not named:
        yield from _under(place, "additionalProperties")
        yield from _under(place, "unevaluatedProperties")


def _tuple(place: Place, keyword: str) -> list[Place]:
    return list(_under(place, keyword)) if isinstance(place.schema.get(keyword), list) else []
