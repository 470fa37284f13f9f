"""What tells the branches of a union apart at a glance: their types, and members with fixed values.

Most unions in the wild have such a tag. Seeing it saves multiplying each pair of branches out.
"""

from __future__ import annotations

from larksong.grammars.schema.document import ALL_TYPES, TYPES, Document, Values

_CHAIN = 8


class Tags:
    """The tags of a document's schemas."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[int, tuple[frozenset[str], dict[str, frozenset[str]]]] = {}

    def differ(self, first: int, second: int) -> bool:
        """Whether no value can satisfy both schemas, as far as their tags say."""
        types, members = self._of(first)
        other_types, other_members = self._of(second)
        common = types & other_types
        if not common:
            return True
        return common == TYPES["object"] and any(
            name in other_members and values.isdisjoint(other_members[name])
            for name, values in members.items()
        )

    def _of(self, number: int) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
        found = self._known.get(number)
        if found is None:
            keywords = self._document.records[self._target(number)].keywords
            required = keywords.get("required", ())
            members = {}
            for name, sub in keywords.get("properties", ()):
                inside = self._document.records[sub].keywords
                values = inside.get("const", inside.get("enum"))
                if name in required and isinstance(values, Values) and not values.others:
                    members[name] = frozenset(text for text, _ in values.scalars)
            found = self._known[number] = keywords.get("type", ALL_TYPES), members
        return found

    def _target(self, number: int) -> int:
        """The schema behind plain references."""
        for _ in range(_CHAIN):
            keywords = self._document.records[number].keywords
            if "$ref" not in keywords:
                break
            target = self._document.target(number, "$ref", keywords["$ref"])
            if target is None:
                break
            number = target
        return number
