"""Attributes: what an LALR grammar cannot count without multiplying its states.

Members that may come in any order, members that are required, members that may not come twice, item counts:
a context-free grammar would need a rule for every subset. Instead each stack entry carries a small value.
Reductions compute it (`Action`), and a terminal may ask it before it is shifted (`Predicate`).

Both are pure functions of values, so equal stacks stay equal and everything above them can be cached.
A predicate sees the stack as it is after the reductions that the terminal forces, the value on top and the
one below it, and the label of what the terminal matched. It returns the value to push, or `None` to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

Value = Hashable
Action = Callable[[tuple[Value, ...]], Value]
Predicate = Callable[[Value, Value, Value], Value]


@dataclass(frozen=True, eq=False)
class Members:
    """The members of one object (or parameters of one call): bit masks over its declared `names`.

    `open`: whether members with other names are allowed.
    """

    required: int
    declared: int
    open: bool
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        required = [name for i, name in enumerate(self.names) if self.required >> i & 1]
        return f"in any order, none twice; required: {', '.join(required) or 'none'}"


class Seen(NamedTuple):
    """The members seen so far in an object that is being written."""

    members: Members
    mask: int


@dataclass(frozen=True, eq=False)
class Items:
    """How many items an array (or calls a turn) may have; `maximum` is None where there is no bound."""

    minimum: int
    maximum: int | None

    def __str__(self) -> str:
        return f"at least {self.minimum}" + ("" if self.maximum is None else f", at most {self.maximum}")

    @property
    def cap(self) -> int:
        """The count from which on more items make no difference (0: the count never matters)."""
        return max(self.minimum, self.maximum or 0)


class Count(NamedTuple):
    """The items seen so far in an array, saturating at the count that still matters."""

    items: Items
    number: int


@dataclass(frozen=True)
class Pick:
    """The value of a rule is that of one of its symbols."""

    index: int

    def __call__(self, values: tuple[Value, ...]) -> Value:
        return values[self.index]


@dataclass(frozen=True)
class CollectMembers:
    """`members: | member | members SEPARATOR member`, in any of these shapes."""

    members: Members

    def __str__(self) -> str:
        return str(self.members)

    def __call__(self, values: tuple[Value, ...]) -> Value:
        if not values:
            return Seen(self.members, 0)
        last = values[-1]
        bit = last.bit if isinstance(last, Member) else last
        assert isinstance(bit, int)
        first = values[0]
        return Seen(self.members, first.mask | bit if isinstance(first, Seen) else bit)


@dataclass(frozen=True)
class CountItems:
    """`items: | item | items SEPARATOR item`, in any of these shapes."""

    items: Items

    def __str__(self) -> str:
        return str(self.items)

    def __call__(self, values: tuple[Value, ...]) -> Value:
        if not values:
            return Count(self.items, 0)
        first = values[0]
        number = first.number + 1 if isinstance(first, Count) else 1
        return Count(self.items, min(number, self.items.cap))


class Member(NamedTuple):
    """The label of a member's name: the name, and its bit (0: a name that is not declared).

    `says`: the JSON text to report for it where the format writes names otherwise.
    """

    name: str
    bit: int
    says: str = ""


@dataclass(frozen=True)
class Key:
    """A member's name: refused when the member was seen before; pushes the member's bit."""

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        bit = label.bit if isinstance(label, Member) else 0
        # The list stands below a separator, or nowhere when this is the first member.
        if isinstance(below, Seen) and below.mask & bit:
            return None
        return bit


@dataclass(frozen=True)
class Named:
    """A member's name like `Key`; pushes the member itself, so that a later marker can tell its name."""

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        return None if Key()(top, below, label) is None else label


@dataclass(frozen=True)
class Carry:
    """Markup that pushes the value below it again, so that what follows still finds it on top."""

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        return 0 if top is None else top


@dataclass(frozen=True)
class More:
    """A separator or opener of a further member or item: refused when no further one is possible.

    Without it the parse would run into a dead end after the separator.
    """

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        if isinstance(top, Seen) and not top.members.open and top.mask == top.members.declared:
            return None
        if isinstance(top, Count) and top.items.maximum is not None and top.number >= top.items.maximum:
            return None
        return 0


@dataclass(frozen=True)
class Tail:
    """What may stand after the last item: allowed where a separator is, and carries the value below it."""

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        return None if More()(top, below, label) is None else Carry()(top, below, label)


@dataclass(frozen=True)
class Close:
    """A closer: refused while required members or items are missing."""

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        if isinstance(top, Seen) and top.members.required & ~top.mask:
            return None
        if isinstance(top, Count) and top.number < top.items.minimum:
            return None
        return 0
