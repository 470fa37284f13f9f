"""A grammar without attributes: what engines that know context-free grammars alone can be given.

Attributes say that members come in any order, none twice, the required ones all of them, and how many items
there are. Here the same is said by rules: members come in the order in which they are declared, the required
ones among them, and counted items are written out. What no rules can say is left out and noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from larksong.engine.grammar.attributes import (
    AlternativeKey,
    Alternatives,
    CollectAlternatives,
    CollectMembers,
    CountItems,
    Member,
    Members,
    Named,
)
from larksong.engine.grammar.expand import expand
from larksong.engine.grammar.grammar import Grammar, Rule, Terminal
from larksong.engine.grammar.terminals import Choice, Keys, Literal, Role, TextUntil

MOST_ITEMS = 64
"""Counts up to here are written out."""

Symbols = tuple[str, ...]


@dataclass(frozen=True)
class FixedOrder:
    """The grammar, and what it says otherwise than the one it was made from."""

    grammar: Grammar
    notes: tuple[str, ...]


def fixed_order(grammar: Grammar) -> FixedOrder:
    """`grammar` in its readable form, without attributes."""
    made = _Rewriting(expand(grammar))
    return FixedOrder(made.grammar(), tuple(dict.fromkeys(made.notes)))


@dataclass
class _Rewriting:
    source: Grammar
    notes: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)

    def grammar(self) -> Grammar:
        expansions: dict[str, list[Symbols]] = {}
        for rule in self.source.rules:
            expansions.setdefault(rule.origin, []).append(rule.expansion)
        for origin, found in expansions.items():
            match self.source.actions.get(origin):
                case CollectMembers(members):
                    self._members(origin, found, expansions, members)
                case CollectAlternatives(alternatives):
                    self._alternatives(origin, found, expansions, alternatives)
                case CountItems() as count:
                    self._items(origin, found, count)
                case _:
                    self._add(origin, found)
        kept = _reachable(self.rules, self.source.start)
        used = {name for rule in kept for name in rule.expansion}
        terminals = {
            name: _plain(terminal, self.notes)
            for name, terminal in self.source.terminals.items()
            if name in used
        }
        return Grammar(tuple(kept), terminals, {}, self.source.start, self.source.title)

    def _add(self, origin: str, expansions: Iterable[Symbols]) -> None:
        self.rules += [Rule(origin, expansion) for expansion in expansions]

    # -- items

    def _items(self, origin: str, expansions: Sequence[Symbols], count: CountItems) -> None:
        first, more = _split(origin, expansions)
        minimum, maximum = count.items.minimum, count.items.maximum
        if max(minimum, maximum or 0) > MOST_ITEMS:
            self.notes.append(f"counts above {MOST_ITEMS} are not kept: {count.items}")
            minimum, maximum = min(minimum, MOST_ITEMS), None
        last = minimum if maximum is None else maximum

        def rest(seen: int) -> str:
            return f"{origin}_from_{min(seen, last)}"

        seen = {count.before + 1 if head else 0 for head in first}
        self._add(origin, [(*head, rest(count.before + 1 if head else 0)) for head in first])
        for number in range(min(min(seen), last), last + 1):
            goes_on = maximum is None or number < maximum
            found = [()] if number >= minimum else []
            self._add(
                rest(number),
                [*found, *((*tail, rest(number + 1)) for tail in more if goes_on)],
            )

    # -- members

    def _members(
        self,
        origin: str,
        expansions: Sequence[Symbols],
        all_: dict[str, list[Symbols]],
        members: Members,
    ) -> None:
        places = [(1 << i, bool(members.required >> i & 1)) for i in range(len(members.names))]
        if places:
            self.notes.append("members come in the order in which they are declared")
        shapes = self._shapes(origin, expansions, all_, places, lambda key: True)
        self._ordered(origin, shapes, places)

    def _alternatives(
        self,
        origin: str,
        expansions: Sequence[Symbols],
        all_: dict[str, list[Symbols]],
        alternatives: Alternatives,
    ) -> None:
        self.notes.append("members come in the order in which they are declared")
        options = []
        for number, option in enumerate(alternatives.options):
            if option.minimum or option.maximum is not None or option.dependents:
                self.notes.append("how many members there are, and which need others, is not kept")
            places = [
                (1 << i, bool(option.required >> i & 1))
                for i in range(len(alternatives.names))
                if option.allowed >> i & 1
            ]

            def having(key: object, number: int = number) -> bool:
                found = key.key if isinstance(key, Named) else key
                return not isinstance(found, AlternativeKey) or bool(found.having >> number & 1)

            shapes = self._shapes(f"{origin}_{number}", expansions, all_, places, having, origin)
            if not option.open:
                shapes = replace(shapes, others=False)
            if self._ordered(f"{origin}_{number}", shapes, places):
                options.append((f"{origin}_{number}",))
        self._add(origin, options)

    def _shapes(
        self,
        name: str,
        expansions: Sequence[Symbols],
        all_: dict[str, list[Symbols]],
        places: Sequence[tuple[int, bool]],
        fits: object,
        origin: str = "",
    ) -> _Shapes:
        """The rules of single members, by bit; the lists of members are put together of them."""
        first, more = _split(origin or name, expansions)
        members = {symbol for expansion in (*first, *more) for symbol in expansion if symbol in all_}
        by_bit: dict[int, list[Symbols]] = {}
        for rule in members:
            for expansion in all_[rule]:
                bit = self._bit(expansion, fits)
                if bit is not None:
                    by_bit.setdefault(bit, []).append(expansion)
        for bit, found in by_bit.items():
            if not bit or any(bit == place for place, _ in places):
                self._add(_member(name, bit), found)
        known = frozenset(bit for bit in by_bit)
        separators = [tail[: tail.index(m)] for tail in more for m in members if m in tail]
        return _Shapes(tuple(separators), () in first, known, 0 in known)

    def _bit(self, expansion: Symbols, fits: object) -> int | None:
        """Which member an alternative is: its bit, 0 for undeclared names, None if it is left out."""
        for symbol in expansion:
            terminal = self.source.terminals.get(symbol)
            if terminal is None or terminal.predicate is None:
                continue
            definition = terminal.definition
            assert callable(fits)
            if isinstance(definition, Keys):
                return definition.words[0][1].bit if fits(terminal.predicate) else None
            if isinstance(definition, Choice) and isinstance(definition.words[0][1], Member):
                return definition.words[0][1].bit if fits(terminal.predicate) else None
            if isinstance(terminal.predicate, AlternativeKey | Named):
                return 0 if fits(terminal.predicate) else None
        return 0

    def _ordered(self, origin: str, shapes: _Shapes, places: Sequence[tuple[int, bool]]) -> bool:
        """Rules for members in this order; whether there is any way to write them."""
        count = len(places)
        loops = shapes.others

        def rest(at: int) -> str:
            return f"{origin}_after_{at}"

        # After a member was written: a separator goes before each.
        found: list[Symbols] = [()]
        if loops:
            found += [(*separator, _member(origin, 0), rest(count)) for separator in shapes.separators]
        self._add(rest(count), found)
        for at in range(count - 1, -1, -1):
            bit, required = places[at]
            found = [] if required else [(rest(at + 1),)]
            if bit in shapes.known:
                found += [(*sep, _member(origin, bit), rest(at + 1)) for sep in shapes.separators]
            self._add(rest(at), found)
        if shapes.empty:  # formats without separators: the list may begin with nothing
            self._add(origin, [(rest(0),)])
            return True
        # Before: the first one has none.
        possible = loops
        begin: list[Symbols] = [(_member(origin, 0), rest(count))] if loops else []
        for at in range(count - 1, -1, -1):
            bit, required = places[at]
            name = origin if at == 0 else f"{origin}_begin_{at}"
            here: list[Symbols] = [(_member(origin, bit), rest(at + 1))] if bit in shapes.known else []
            if not required:
                here += begin
            self._add(name, here)
            possible = bool(here)
            begin = [(name,)] if here else []
        if not count:
            self._add(origin, begin)
        return possible


@dataclass(frozen=True)
class _Shapes:
    """How members are put together.

    `separators`: what goes before each but the first. `empty`: there may be none at all. `known`: the bits
    that have a rule. `others`: names that are not declared may come, after the others.
    """

    separators: tuple[Symbols, ...]
    empty: bool
    known: frozenset[int]
    others: bool


def _member(origin: str, bit: int) -> str:
    return f"{origin}_member_{bit.bit_length()}" if bit else f"{origin}_other_member"


def _split(origin: str, expansions: Sequence[Symbols]) -> tuple[list[Symbols], list[Symbols]]:
    """How a list begins, and what may be added to it."""
    first = [expansion for expansion in expansions if expansion[:1] != (origin,)]
    return first, [expansion[1:] for expansion in expansions if expansion[:1] == (origin,)]


def _reachable(rules: Sequence[Rule], start: str) -> list[Rule]:
    by_origin: dict[str, list[Rule]] = {}
    for rule in rules:
        by_origin.setdefault(rule.origin, []).append(rule)
    seen, pending = {start}, [start]
    while pending:
        for rule in by_origin.get(pending.pop(), ()):
            new = [name for name in rule.expansion if name in by_origin and name not in seen]
            seen.update(new)
            pending += new
    return [rule for rule in dict.fromkeys(rules) if rule.origin in seen]


def _plain(terminal: Terminal, notes: list[str]) -> Terminal:
    """A terminal that nobody can refuse."""
    definition = terminal.definition
    if isinstance(definition, Keys):
        definition = Literal(definition.words[0][0])
    elif isinstance(definition, Choice):
        definition = Choice(tuple((text, None) for text, _ in definition.words), definition.prefix)
    elif isinstance(definition, TextUntil):
        notes.append("a raw text ends at the first of its ends, whether that may come there or not")
    role = terminal.role if terminal.role in (Role.CONTENT, Role.REASONING, Role.TEXT) else Role.MARKUP
    return Terminal(terminal.name, definition, role)
