"""A schema without one of its keywords: what it would be if that keyword had not been written."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from larksong.grammars.explain.subschemas import Subschema
from larksong.grammars.schema.references import escape

# Those first that say most about a value. Without what holds other schemas together, or without the type,
# nearly any text goes on (of raw text indeed any): they are to blame where nothing else is, and allOf and if
# where none of their parts is.
_KEYWORDS = (
    *("const", "enum", "pattern", "format", "minLength", "maxLength"),
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "divisibleBy"),
    *("required", "dependentRequired", "dependencies", "minProperties", "maxProperties", "propertyNames"),
    *("minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "contains"),
    *("not", "dependentSchemas"),
)
# Where these are false they are replaced by true, since to leave them out means something else for tools.
_OBJECTS = ("additionalProperties", "unevaluatedProperties")
_CLOSED = (*_OBJECTS, "additionalItems", "unevaluatedItems", "items")
_LAST = {"oneOf": 1, "anyOf": 1, "type": 2, "allOf": 3, "if": 3}
_BY_RANK = (*_KEYWORDS, *_CLOSED, *_LAST)


class Edit(NamedTuple):
    """To leave out `keyword` of the subschema at `pointer`; `implied`: it is not written there.

    `name`: the member that is declared instead, where the keyword closes an object.
    """

    pointer: str
    keyword: str
    implied: bool = False
    name: str | None = None

    @property
    def keyword_pointer(self) -> str:
        """Where the keyword stands; where it is implied, the schema that implies it."""
        return self.pointer if self.implied else f"{self.pointer}/{escape(self.keyword)}"

    @property
    def rank(self) -> int:
        """0 for most keywords, more for those that are asked about later."""
        return _LAST.get(self.keyword, 0)


def edits(subschema: Subschema, name: str | None = None, *, closed: bool = False) -> Iterator[Edit]:
    """The keywords of a subschema.

    `name`: the member that is being read. `closed`: undeclared members are refused though it does not say so.
    """
    schema = subschema.schema
    for keyword in _BY_RANK:
        if keyword not in schema or (keyword in _CLOSED and schema[keyword] is not False):
            continue
        yield Edit(subschema.pointer, keyword, name=name if keyword in _OBJECTS else None)
    if closed and "additionalProperties" not in schema and "unevaluatedProperties" not in schema:
        yield Edit(subschema.pointer, "additionalProperties", True, name)


def without(root: Mapping[str, Any], chosen: Iterable[Edit]) -> Mapping[str, Any]:
    """A copy of the schema with some edits made."""
    made = copy.deepcopy(dict(root))
    # The inner ones first: an outer one may take away where they stand.
    for edit in sorted(chosen, key=lambda edit: -edit.pointer.count("/")):
        schema = at(made, edit.pointer)
        if edit.name is not None:
            # Not every format can write members that nobody declared.
            schema["properties"] = {edit.name: True, **schema.get("properties", {})}
        elif edit.keyword in _CLOSED:
            schema[edit.keyword] = True
        else:
            schema.pop(edit.keyword, None)
    return made


def at(root: Any, pointer: str) -> Any:
    """What stands at a JSON pointer (RFC 6901) that is known to lead somewhere."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        root = root[int(name)] if isinstance(root, Sequence) else root[name]
    return root
