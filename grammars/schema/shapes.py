"""What a schema means, as plain data between reading it and writing rules.

A `Node` is a number that stands for a conjunction of schemas: what a value at some place has to satisfy.
Its meaning is a union of `Shape`s, each of one JSON type; what is inside arrays and objects are nodes again,
so that recursion through `$ref` is a cycle of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from larksong.engine.automata.languages import Language
from larksong.engine.grammar.terminals import Number

Node = int
ANYTHING: Node = 0
"""the empty conjunction: any JSON value"""


@dataclass(frozen=True)
class EnumShape:
    """One of some scalars, each as its JSON text."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class StringShape:
    language: Language = field(default_factory=Language)


@dataclass(frozen=True)
class NumberShape:
    number: Number = field(default_factory=Number)


@dataclass(frozen=True)
class Kind:
    """`contains`: at least `minimum`, at most `maximum` items of `inside`; all others are of `outside`.

    Without a maximum nothing need be known of the others, and `outside` is None.
    """

    inside: Node
    outside: Node | None
    minimum: int
    maximum: int | None


@dataclass(frozen=True)
class ItemClass:
    """Items that count for the kinds in the bit mask `kinds`."""

    kinds: int
    node: Node


@dataclass(frozen=True)
class ArrayShape:
    """`prefix`: the first items, by place; `items`: all others.

    With `kinds` (bounds of each `contains`) each place is given by the classes of items that may stand there.
    `distinct`: no item twice; then `items` is a finite set of scalars.
    """

    prefix: tuple[tuple[ItemClass, ...], ...] = ()
    items: tuple[ItemClass, ...] = (ItemClass(0, ANYTHING),)
    minimum: int = 0
    maximum: int | None = None
    kinds: tuple[tuple[int, int | None], ...] = ()
    distinct: bool = False


@dataclass(frozen=True)
class FreeMembers:
    """Members whose names are in `names`, with values of `node`."""

    names: Language
    node: Node


@dataclass(frozen=True)
class ObjectShape:
    """`properties`: the names that are known, with the nodes of their values; `free`: all other names.

    `absent`: names that may not come (`free` says nothing about them). `dependents`: (name, names that must
    be there if that one is).
    """

    properties: tuple[tuple[str, Node], ...] = ()
    required: frozenset[str] = frozenset()
    free: tuple[FreeMembers, ...] = (FreeMembers(Language(), ANYTHING),)
    minimum: int = 0
    maximum: int | None = None
    dependents: tuple[tuple[str, frozenset[str]], ...] = ()

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return dict(self.properties)


Shape = EnumShape | StringShape | NumberShape | ArrayShape | ObjectShape

ANYTHING_SHAPES: tuple[Shape, ...] = (
    EnumShape(("null",)),
    EnumShape(("true", "false")),
    NumberShape(),
    StringShape(),
    ArrayShape(),
    ObjectShape(),
)
"""what the node `ANYTHING` means"""
