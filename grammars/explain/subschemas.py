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
_MAX_SUBSCHEMAS = 500


class Subschema(NamedTuple):
    """A subschema and its JSON pointer."""

    pointer: str
    schema: Mapping[str, Any]


class Subschemas:
    """The subschemas of one document."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._references = References(root)

    def along(self, path: Sequence[Step]) -> list[list[Subschema]]:
        """For each beginning of `path`, the shortest first: the subschemas that hold for the value there."""
        found = [self._same([Subschema("", self._root)])]
        for step in path:
            found.append(self._same([inner for subschema in found[-1] for inner in _step(subschema, step)]))
        return found

    def all(self) -> list[Subschema]:
        """Every subschema, the outer ones first."""
        todo = [Subschema("", self._root)]
        found: dict[str, Subschema] = {}
        for subschema in todo:
            if (
                isinstance(subschema.schema, Mapping)
                and subschema.pointer not in found
                and len(found) < _MAX_SUBSCHEMAS
            ):
                found[subschema.pointer] = subschema
                todo += _inside(subschema)
        return list(found.values())

    def _same(self, subschemas: list[Subschema]) -> list[Subschema]:
        """`subschemas` with all that holds for the same value: references, conjunctions, alternatives."""
        todo = list(subschemas)
        found: dict[str, Subschema] = {}
        for subschema in todo:
            if not isinstance(subschema.schema, Mapping) or subschema.pointer in found:
                continue
            found[subschema.pointer] = subschema
            reference = subschema.schema.get("$ref", subschema.schema.get("$dynamicRef"))
            if isinstance(reference, str):
                target = self._references.resolve(reference, self._references.root)
                if target is not None:
                    todo.append(Subschema(target.pointer, target.schema))
            inside = (*_HERE, *_LISTS[:3], "dependentSchemas")
            todo += [each for keyword in inside for each in _under(subschema, keyword)]
        return list(found.values())


def _under(subschema: Subschema, keyword: str) -> Iterator[Subschema]:
    """The subschemas under one keyword."""
    value = subschema.schema.get(keyword)
    pointer = f"{subschema.pointer}/{escape(keyword)}"
    if isinstance(value, list):
        yield from (Subschema(f"{pointer}/{index}", each) for index, each in enumerate(value))
    elif isinstance(value, Mapping) and keyword in _NAMED:
        yield from (Subschema(f"{pointer}/{escape(name)}", each) for name, each in value.items())
    elif isinstance(value, Mapping):
        yield Subschema(pointer, value)


def _inside(subschema: Subschema) -> Iterator[Subschema]:
    for keyword in subschema.schema:
        if keyword in _LISTS or keyword in _SINGLE or keyword in _NAMED:
            yield from _under(subschema, keyword)


def _step(subschema: Subschema, step: Step) -> Iterator[Subschema]:
    pointer, schema = subschema
    if isinstance(step, int):
        tuples = [each for keyword in ("prefixItems", "items") for each in _tuple(subschema, keyword)]
        if step < len(tuples):
            yield tuples[step]
        elif isinstance(schema.get("items"), Mapping):
            yield from _under(subschema, "items")
        yield from _under(subschema, "additionalItems")
        yield from _under(subschema, "unevaluatedItems")
        return
    members = schema.get("properties")
    named = isinstance(members, Mapping) and step in members
    if isinstance(members, Mapping) and named:
        yield Subschema(f"{pointer}/properties/{escape(step)}", members[step])
    # Which patterns a name matches is not asked: a schema's expression may run for years.
    yield from _under(subschema, "patternProperties")
    if not named:
        yield from _under(subschema, "additionalProperties")
        yield from _under(subschema, "unevaluatedProperties")


def _tuple(subschema: Subschema, keyword: str) -> list[Subschema]:
    return list(_under(subschema, keyword)) if isinstance(subschema.schema.get(keyword), list) else []
