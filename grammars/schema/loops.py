"""References that lead back to themselves before any value is read: what they mean never ends.

`{"$ref": "#"}` is one, and so is `{"anyOf": [{"type": "null"}, {"$ref": "#"}]}`. Recursion through members or
items is none: each round reads a part of a text.
"""

from __future__ import annotations

from collections.abc import Iterator

from larksong.grammars.schema.document import ANY, NEVER, Document, shown

_ONE = ("not", "if", "then", "else")
_SEVERAL = ("allOf", "anyOf", "oneOf")
_REFERENCES = ("$ref", "$dynamicRef")


class Loops:
    """The schemas of a document that are known to end."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._ending = {ANY, NEVER}

    def refuse(self, number: int) -> None:
        """Raise InvalidSchema if `number`, or a schema that holds in the same place, leads to itself."""
        if number in self._ending:
            return
        path: dict[int, Iterator[int]] = {number: self._same_place(number)}
        while path:
            last, inside = next(reversed(path.items()))
            following = next((each for each in inside if each not in self._ending), None)
            if following is None:
                self._ending.add(last)
                del path[last]
            elif following in path:
                self._refuse([*path][[*path].index(following) :])
            else:
                path[following] = self._same_place(following)

    def _same_place(self, number: int) -> Iterator[int]:
        keywords = self._document.records[number].keywords
        for keyword, value in keywords.items():
            if keyword in _ONE and (keyword == "not" or "if" in keywords):
                yield value
            elif keyword in _SEVERAL:
                yield from value
            elif keyword == "dependentSchemas":
                yield from (schema for _, schema in value)
            elif keyword in _REFERENCES:
                target = self._document.target(number, keyword, value)
                if target is not None:
                    yield target

    def _refuse(self, round_: list[int]) -> None:
        for number in round_:
            record = self._document.records[number]
            for keyword in _REFERENCES:
                if keyword in record.keywords:
                    self._document.invalid(
                        f"{record.pointer}/{keyword}",
                        keyword,
                        f"{shown(record.keywords[keyword])} leads back to itself without end",
                    )
