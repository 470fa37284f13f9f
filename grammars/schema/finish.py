"""From a draft, whose choices are all taken, to the shapes of the JSON types that it leaves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction

from larksong.engine.automata.languages import Language
from larksong.engine.errors import UnsupportedPattern
from larksong.engine.grammar.terminals import Number
from larksong.grammars.schema.arrays import array_shape
from larksong.grammars.schema.document import TYPES, Origin
from larksong.grammars.schema.drafts import Draft
from larksong.grammars.schema.node_graph import NodeGraph
from larksong.grammars.schema.objects import object_shape
from larksong.grammars.schema.shapes import EnumShape, NumberShape, Shape, StringShape
from larksong.grammars.schema.unenforceable import CannotEnforce

_BOOLEANS = ("true", "false")
_ANY_STRING, _ANY_NUMBER, _ANY_INTEGER = StringShape(), NumberShape(), NumberShape(Number(integer=True))


class Finisher:
    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph

    def shapes(self, draft: Draft) -> Iterator[Shape]:
        """The shapes of a draft; a type that nothing can satisfy has none."""
        if draft.scalars is not None:
            texts = tuple(self._fitting(draft, draft.scalars))
            if texts:
                yield EnumShape(texts)
            return
        if "null" in draft.types and "null" not in draft.excluded:
            yield EnumShape(("null",))
        if "boolean" in draft.types:
            texts = tuple(text for text in _BOOLEANS if text not in draft.excluded)
            if texts:
                yield EnumShape(texts)
        if not draft.types.isdisjoint(TYPES["number"]):
            yield from self._numbers(draft)
        if "string" in draft.types:
            yield from self._strings(draft)
        if "array" in draft.types:
            yield from array_shape(self._graph, draft)
        if "object" in draft.types:
            yield from object_shape(self._graph, draft)

    def tidy(self, shapes: Iterable[Shape]) -> tuple[Shape, ...]:
        """The union without what is contained in something else: it would only be read twice."""
        found = dict.fromkeys(shapes)
        if len(found) < 2:
            return tuple(found)
        if _ANY_NUMBER in found:
            found = {s: None for s in found if s == _ANY_NUMBER or not isinstance(s, NumberShape)}
        if _ANY_STRING in found:
            found = {s: None for s in found if s == _ANY_STRING or not isinstance(s, StringShape)}
        return tuple(_merged_enums(found))

    def language(self, draft: Draft) -> Language:
        """The strings of a draft."""
        excluded = tuple(json.loads(text) for text in sorted(draft.excluded) if text.startswith('"'))
        size = draft.strings.size
        wanted = tuple(dict.fromkeys(draft.strings.wanted))
        unwanted = tuple(dict.fromkeys(draft.strings.unwanted))
        return Language(wanted, unwanted, excluded, size.minimum, size.maximum)

    def _strings(self, draft: Draft) -> Iterator[Shape]:
        if draft.strings.size.impossible:
            return
        language = self.language(draft)
        try:
            if not language.is_empty():
                if language.wanted or language.unwanted or language.excluded:
                    language.json_dfa()  # whatever is wrong with it shows now, not while decoding
                yield StringShape(language)
        except UnsupportedPattern as error:
            raise CannotEnforce(_blamed(draft, "pattern", "other_values"), str(error)) from error

    def number(self, draft: Draft) -> Number:
        """The numbers of a draft."""
        others = set(draft.numbers.others)
        if "integer" not in draft.types:
            others.add(Decimal(1))
        return Number(
            integer="fraction" not in draft.types,
            lower=draft.numbers.lower,
            upper=draft.numbers.upper,
            multiples=tuple(sorted(set(draft.numbers.multiples))),
            others=tuple(sorted(others)),
            excluded=tuple(Decimal(text) for text in sorted(draft.excluded) if _is_number(text)),
        )

    def _numbers(self, draft: Draft) -> Iterator[Shape]:
        number = self.number(draft)
        try:
            if not number.is_empty():
                yield NumberShape(number)
        except UnsupportedPattern as error:
            raise CannotEnforce(_blamed(draft, "multipleOf", "other_values"), str(error)) from error

    def _fitting(self, draft: Draft, scalars: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
        """The texts of those scalars that satisfy the rest of the draft."""
        language = self.language(draft)
        number = self.number(draft) if not draft.types.isdisjoint(TYPES["number"]) else None
        plain_numbers = number is not None and number in (Number(), Number(integer=True))
        for key, texts in scalars.items():
            if key in draft.excluded:
                continue
            if key == "null":
                fits = "null" in draft.types
            elif key in _BOOLEANS:
                fits = "boolean" in draft.types
            elif key.startswith('"'):
                fits = "string" in draft.types and self._matches(draft, language, json.loads(key))
            elif number is None:
                fits = False
            elif plain_numbers:
                fits = not number.integer or "." not in key
            else:
                fits = _accepts(number, key)
            if fits:
                yield from texts

    def _matches(self, draft: Draft, language: Language, text: str) -> bool:
        try:
            return language.matches(text)
        except UnsupportedPattern as error:
            raise CannotEnforce(_blamed(draft, "pattern"), str(error)) from error


def _blamed(draft: Draft, *parts: str) -> Origin:
    return next(draft.blame[part] for part in parts if part in draft.blame)


def _is_number(text: str) -> bool:
    return text[0] in "-0123456789"


def _accepts(number: Number, text: str) -> bool:
    """Whether the numbers have the one that `text` stands for, however it has to be written."""
    value = Fraction(text)
    if number.integer and value.denominator != 1:
        return False
    for bound, sign in ((number.lower, 1), (number.upper, -1)):
        if bound is not None:
            beyond = (value - Fraction(bound.value)) * sign
            if beyond < 0 or (beyond == 0 and not bound.inclusive):
                return False
    return (
        all(value % Fraction(each) == 0 for each in number.multiples)
        and all(value % Fraction(each) != 0 for each in number.others)
        and all(value != Fraction(each) for each in number.excluded)
    )


def _merged_enums(shapes: Iterable[Shape]) -> Iterator[Shape]:
    """One finite set of scalars instead of several; null and the booleans stay apart."""
    texts: dict[str, None] = {}
    for shape in shapes:
        if not isinstance(shape, EnumShape) or shape.texts in (("null",), _BOOLEANS):
            yield shape
        else:
            texts.update(dict.fromkeys(shape.texts))
    if texts:
        yield EnumShape(tuple(texts))
