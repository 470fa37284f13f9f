"""What one alternative of a place demands so far, by JSON type: the conjunction that is being collected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from larksong.engine.automata.numbers import LARGEST, NumberBound
from larksong.grammars.schema.document import ALL_TYPES, Origin

Scalars = Mapping[str, tuple[str, ...]]
"""scalars by canonical text, each with the texts to write"""
Scopes = frozenset[int]
"""the schemas with unevaluated… keywords that a schema is applied under, in place"""


@dataclass
class Numbers:
    lower: NumberBound | None = None
    upper: NumberBound | None = None
    multiples: tuple[Decimal, ...] = ()
    others: tuple[Decimal, ...] = ()

    def at_least(self, bound: NumberBound) -> None:
        tighter = self.lower is None or (bound.value, not bound.inclusive) > (
            self.lower.value,
            not self.lower.inclusive,
        )
        if tighter and bound.value > -LARGEST:
            self.lower = bound

    def at_most(self, bound: NumberBound) -> None:
        tighter = self.upper is None or (bound.value, bound.inclusive) < (
            self.upper.value,
            self.upper.inclusive,
        )
        if tighter and bound.value < LARGEST:
            self.upper = bound


@dataclass
class Size:
    """How many characters, items or members."""

    minimum: int = 0
    maximum: int | None = None

    def at_least(self, count: int) -> None:
        self.minimum = max(self.minimum, count)

    def at_most(self, count: int) -> None:
        self.maximum = count if self.maximum is None else min(self.maximum, count)

    @property
    def impossible(self) -> bool:
        return self.maximum is not None and self.minimum > self.maximum


@dataclass
class Strings:
    size: Size = field(default_factory=Size)
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tuple:
    """`prefixItems` and `items` of one schema."""

    prefix: tuple[int, ...]
    items: int | None
    scopes: Scopes


@dataclass(frozen=True)
class Contains:
    schema: int
    minimum: int
    maximum: int | None
    scopes: Scopes


@dataclass
class Arrays:
    size: Size = field(default_factory=Size)
    tuples: tuple[Tuple, ...] = ()
    contains: tuple[Contains, ...] = ()
    distinct: bool = False


@dataclass(frozen=True)
class Properties:
    """`properties`, `patternProperties` and `additionalProperties` of one schema."""

    names: Mapping[str, int]
    patterns: tuple[tuple[str, int], ...]
    additional: int | None
    scopes: Scopes


@dataclass
class Objects:
    size: Size = field(default_factory=Size)
    members: tuple[Properties, ...] = ()
    required: tuple[str, ...] = ()
    dependents: tuple[tuple[str, tuple[str, ...]], ...] = ()
    names: tuple[int, ...] = ()


@dataclass
class Draft:
    """One alternative. `seen`: the schemas in it, each with the scopes that it was applied under.

    `blame`: which keyword to name if a part cannot be enforced. `unevaluated`: (schema, keyword, value).
    """

    types: frozenset[str] = ALL_TYPES
    scalars: Scalars | None = None
    excluded: frozenset[str] = frozenset()
    numbers: Numbers = field(default_factory=Numbers)
    strings: Strings = field(default_factory=Strings)
    arrays: Arrays = field(default_factory=Arrays)
    objects: Objects = field(default_factory=Objects)
    seen: dict[int, Scopes] = field(default_factory=dict)
    blame: dict[str, Origin] = field(default_factory=dict)
    unevaluated: tuple[tuple[int, str, int], ...] = ()

    def copy(self) -> Draft:
        return replace(
            self,
            numbers=replace(self.numbers),
            strings=replace(self.strings, size=replace(self.strings.size)),
            arrays=replace(self.arrays, size=replace(self.arrays.size)),
            objects=replace(self.objects, size=replace(self.objects.size)),
            seen=dict(self.seen),
            blame=dict(self.blame),
        )

    def restrict(self, values: Scalars) -> None:
        """Only these scalars are left."""
        known = self.scalars
        if known is None:
            self.scalars = values
        else:
            self.scalars = {key: texts for key, texts in values.items() if key in known}

    def unevaluated_inside(self, number: int, keyword: str) -> bool:
        """Whether a schema applied under `number` has the keyword too: it evaluates all that is left."""
        return any(
            inner != number and keyword == each and number in self.seen.get(inner, ())
            for inner, each, _ in self.unevaluated
        )

    @property
    def impossible(self) -> bool:
        return not self.types or (self.scalars is not None and not self.scalars)
