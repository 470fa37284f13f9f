"""Attributes: what an LALR grammar cannot count without multiplying its states.

Members that may come in any order, members that are required, members that may not come twice, item counts:
a context-free grammar would need a rule for every subset. Instead each stack entry carries a small value.
Reductions compute it (`Action`), and a terminal may ask it before it is shifted (`Predicate`).

Both are pure functions of values, so equal stacks stay equal and everything above them can be cached.
A predicate sees the stack as it is after the reductions that the terminal forces, the value on top and the
one below it, and the label of what the terminal matched. It returns the value to push, or `None` to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
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
    """`items: | item | items SEPARATOR item`, in any of these shapes, behind `before` items of their own."""

    items: Items
    before: int = 0

    def __str__(self) -> str:
        return str(self.items)

    def __call__(self, values: tuple[Value, ...]) -> Value:
        if not values:
            return Count(self.items, 0)
        first = values[0]
        number = first.number + 1 if isinstance(first, Count) else self.before + 1
        return Count(self.items, min(number, self.items.cap))


class Member(NamedTuple):
    """The label of a member's name: the name, and its bit (0: a name that is not declared).

    `reported_as`: the JSON text to report for it where the format writes names otherwise.
    """

    name: str
    bit: int
    reported_as: str = ""


@dataclass(frozen=True)
class Key:
    """A member's name: refused when the member was seen before; pushes the member's bit."""

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        bit = label.bit if isinstance(label, Member) else 0
        # The list stands below a separator, or nowhere when this is the first member.
        if isinstance(below, Seen) and below.mask & bit:
            return None
        return bit


RAW = "raw"
"""The value of a raw string that was read and is not closed yet."""


@dataclass(frozen=True)
class Raw:
    """A raw string where the value may also be JSON: keeps the readings apart until the value is closed.

    The rule over the readings must pass the value on (`Pick`).
    """

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        return RAW


@dataclass(frozen=True)
class Alternative:
    """One alternative of an object: bit masks over the names that all alternatives declare together.

    `allowed`: which it may have. `open`: whether it may have members with other names. `minimum`, `maximum`:
    how many members. `dependents`: (bit, the names that must be there if that one is).
    """

    required: int
    allowed: int
    open: bool
    minimum: int = 0
    maximum: int | None = None
    dependents: tuple[tuple[int, int], ...] = ()

    def missing(self, mask: int) -> int:
        """The required members that are missing after those of `mask`."""
        wanted, before = self.required | mask, -1
        while wanted != before:
            before = wanted
            for bit, others in self.dependents:
                if wanted & bit:
                    wanted |= others
        return wanted & ~mask

    def fits(self, mask: int, free: int) -> bool:
        """Whether an object with the members of `mask` and `free` others can be completed."""
        wanted = mask | self.missing(mask)
        if wanted & ~self.allowed or (free and not self.open):
            return False
        return self.maximum is None or wanted.bit_count() + free <= self.maximum

    def may_end(self, mask: int, free: int) -> bool:
        return mask.bit_count() + free >= self.minimum and not self.missing(mask)

    def may_go_on(self, mask: int, free: int) -> bool:
        if self.open and self.fits(mask, free + 1):
            return True
        unseen = self.allowed & ~mask
        if self.maximum is None and not self.dependents:
            return bool(unseen)
        return any(self.fits(mask | bit, free) for bit in _bits(unseen))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit


@dataclass(frozen=True, eq=False)
class Alternatives:
    """The alternatives of an object, read side by side: which of them live is part of the attribute.

    One rule for all of them; a rule each would double the readings with every level of nesting.
    """

    options: tuple[Alternative, ...]
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; or ".join(map(self._describe, self.options))

    def _describe(self, option: Alternative) -> str:
        text = f"in any order, none twice; required: {self._listed(option.required)}"
        if option.minimum:
            text += f"; at least {option.minimum}"
        if option.maximum is not None:
            text += f"; at most {option.maximum}"
        for bit, others in option.dependents:
            text += f"; {self._listed(bit)} needs {self._listed(others)}"
        return text

    def _listed(self, mask: int) -> str:
        return ", ".join(name for i, name in enumerate(self.names) if mask >> i & 1) or "none"

    @cached_property
    def cap(self) -> int:
        """The number of undeclared members from which on more make no difference."""
        return max(option.minimum if option.maximum is None else option.maximum for option in self.options)

    @cached_property
    def nothing(self) -> Living:
        """No member yet."""
        return Living(self, 0, 0, (1 << len(self.options)) - 1)


class Living(NamedTuple):
    """The members so far, how many with undeclared names, and the alternatives that still live."""

    alternatives: Alternatives
    mask: int
    free: int
    live: int

    def options(self) -> Iterator[Alternative]:
        return (o for i, o in enumerate(self.alternatives.options) if self.live >> i & 1)

    def may_end(self) -> bool:
        return any(option.may_end(self.mask, self.free) for option in self.options())

    def may_go_on(self) -> bool:
        return any(option.may_go_on(self.mask, self.free) for option in self.options())


class Taken(NamedTuple):
    """A member's bit (0: an undeclared name), the alternatives that live with it, its name if `Named`."""

    bit: int
    live: int
    name: str = ""


@dataclass(frozen=True, eq=False)
class AlternativeKey:
    """A member's name whose value is one that the alternatives in the bit mask `having` allow.

    Refused when it was seen before, or when no living alternative could be completed with it.
    """

    alternatives: Alternatives
    having: int

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        bit = label.bit if isinstance(label, Member) else 0
        so_far = below if isinstance(below, Living) else self.alternatives.nothing
        if so_far.mask & bit:
            return None
        mask, free = so_far.mask | bit, so_far.free + (not bit)
        live = 0
        for i, option in enumerate(self.alternatives.options):
            if so_far.live & self.having & 1 << i and option.fits(mask, free):
                live |= 1 << i
        return Taken(bit, live) if live else None


@dataclass(frozen=True, eq=False)
class CollectAlternatives:
    """`members: | member | members SEPARATOR member`, where a member's value is what its key pushed."""

    alternatives: Alternatives

    def __str__(self) -> str:
        return str(self.alternatives)

    def __call__(self, values: tuple[Value, ...]) -> Value:
        if not values:
            return self.alternatives.nothing
        taken = values[-1]
        assert isinstance(taken, Taken)
        first = values[0]
        so_far = first if isinstance(first, Living) else self.alternatives.nothing
        free = min(so_far.free + (not taken.bit), self.alternatives.cap)
        return Living(self.alternatives, so_far.mask | taken.bit, free, taken.live)


@dataclass(frozen=True, eq=False)
class Contents:
    """How many items an array has, and how many of each wanted kind (`contains`).

    `kinds[i]` bounds the items of kind i. An item is read as being of the kinds in a bit mask: `classes` has
    the masks that can be read at each of the first places, the last entry holds for all others.
    """

    minimum: int
    maximum: int | None
    kinds: tuple[tuple[int, int | None], ...]
    classes: tuple[tuple[int, ...], ...]
    _known: dict[tuple[int, tuple[int, ...]], bool] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        kinds = (f"{low} to {'any number' if high is None else high} of a kind" for low, high in self.kinds)
        return ", ".join((str(Items(self.minimum, self.maximum)), *kinds))

    @property
    def nothing(self) -> Tally:
        return Tally(self, 0, (0,) * len(self.kinds))

    def add(self, number: int, counts: tuple[int, ...], kinds: int) -> tuple[int, tuple[int, ...]]:
        """The counts after an item, as far as they still matter."""
        number = min(number + 1, max(self.minimum, self.maximum or 0, len(self.classes)))
        after = (
            min(count + (kinds >> i & 1), low if high is None else high + 1)
            for i, (count, (low, high)) in enumerate(zip(counts, self.kinds, strict=True))
        )
        return number, tuple(after)

    def may_end(self, number: int, counts: tuple[int, ...]) -> bool:
        return number >= self.minimum and all(
            low <= count and (high is None or count <= high)
            for count, (low, high) in zip(counts, self.kinds, strict=True)
        )

    def fits(self, number: int, counts: tuple[int, ...]) -> bool:
        """Whether an array with these items can be completed."""
        key = (number, counts)
        found = self._known.get(key)
        if found is None:
            self._known[key] = False  # on the way to itself nothing is gained
            found = self._known[key] = self._complete(number, counts)
        return found

    def _complete(self, number: int, counts: tuple[int, ...]) -> bool:
        if any(
            high is not None and count > high for count, (_, high) in zip(counts, self.kinds, strict=True)
        ):
            return False
        return self.may_end(number, counts) or self.may_go_on(number, counts)

    def may_go_on(self, number: int, counts: tuple[int, ...]) -> bool:
        if self.maximum is not None and number >= self.maximum:
            return False
        classes = self.classes[min(number, len(self.classes) - 1)]
        return any(self.fits(*self.add(number, counts, kinds)) for kinds in classes)


class Tally(NamedTuple):
    """The items so far, and how many of each kind, saturating where more make no difference."""

    contents: Contents
    number: int
    counts: tuple[int, ...]

    def may_end(self) -> bool:
        return self.contents.may_end(self.number, self.counts)

    def may_go_on(self) -> bool:
        return self.contents.may_go_on(self.number, self.counts)


@dataclass(frozen=True, eq=False)
class FirstItem:
    """The opener of an array whose first item is read as being of `kinds`."""

    contents: Contents
    kinds: int

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        return _with_item(self.contents.nothing, self.kinds)


@dataclass(frozen=True, eq=False)
class NextItem:
    """The separator before an item that is read as being of `kinds`."""

    kinds: int

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        assert isinstance(top, Tally)
        return _with_item(top, self.kinds)


def _with_item(so_far: Tally, kinds: int) -> Value:
    contents = so_far.contents
    if contents.maximum is not None and so_far.number >= contents.maximum:
        return None
    number, counts = contents.add(so_far.number, so_far.counts, kinds)
    return Tally(contents, number, counts) if contents.fits(number, counts) else None


@dataclass(frozen=True)
class Named:
    """A member's name like `key`; pushes the name along with it, so that a later marker can tell it."""

    key: Predicate = Key()

    def __call__(self, top: Value, below: Value, label: Value) -> Value:
        value = self.key(top, below, label)
        if isinstance(value, Taken) and isinstance(label, Member):
            return value._replace(name=label.name)
        return None if value is None else label


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
        if isinstance(top, Living | Tally) and not top.may_go_on():
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
        if isinstance(top, Living | Tally) and not top.may_end():
            return None
        return 0
