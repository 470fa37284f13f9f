"""Shapes → grammar rules for their JSON text.

The forms matter: every LALR state has at most one complete item, so no conflict can arise.

    object:  LBRACE_o RBRACE | LBRACE_o members RBRACE      first alternative only if nothing is required
    members: member | members COMMA member                  any order; attributes keep what was seen
    member:  KEY_a COLON value | KEY_b COLON value | …
    array:   LBRACKET_a RBRACKET | LBRACKET_a items RBRACKET
    items:   value | items COMMA value                      tuples: a rule for each place

Openers and keys are terminals of their own for each object and array, so that branches of a union can be
told apart; all other terminals are shared. A union is one rule over constructors, never over unions. All
objects of a union are one rule: which of them are still possible is an attribute.

What a later terminal must not allow is refused before: keys, separators and openers are chosen so that
whatever follows them can be completed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from larksong.engine.grammar.attributes import (
    Action,
    Alternative,
    AlternativeKey,
    Alternatives,
    Close,
    CollectAlternatives,
    Contents,
    CountItems,
    FirstItem,
    Items,
    Member,
    More,
    NextItem,
    Pick,
)
from larksong.engine.grammar.grammar import Definition, Grammar, Rule, Sub, Terminal
from larksong.engine.grammar.terminals import Choice, JsonString, JsonText, Keys, Literal, Pattern, Role
from larksong.grammars.json.members import MemberRules, Shapes
from larksong.grammars.json.shortest import shortest_json
from larksong.grammars.json.symbol_names import SymbolNames
from larksong.grammars.schema import Schema
from larksong.grammars.schema.productive import contents
from larksong.grammars.schema.shapes import (
    ANYTHING,
    ANYTHING_SHAPES,
    ArrayShape,
    EnumShape,
    ItemClass,
    NumberShape,
    ObjectShape,
    Shape,
    StringShape,
)

# What may stand after a comma and a colon: as the model families write it, and bounded.
COMMA, COLON = ", ?", ": ?"
ANY_SCHEMA = Schema(ANYTHING_SHAPES, {ANYTHING: ANYTHING_SHAPES})
"""the schema of any JSON value"""
# From this many objects and arrays on each of them is a grammar of its own, made when a mask first needs it.
_SPLIT_FROM = 8


class RuleBuilder:
    """Collects the rules, terminals and attributes of one grammar, for nodes of `schema`."""

    splits: ClassVar[bool] = True
    """whether large grammars are split into several"""

    def __init__(self, schema: Schema, shared: dict[Shapes, Grammar] | None = None) -> None:
        self.names = SymbolNames()
        self.rules: list[Rule] = []
        self.terminals: dict[str, Terminal] = {}
        self.actions: dict[str, Action] = {}
        self.schema = schema
        self._symbols: dict[Shapes | ArrayShape | Shape, str] = {}
        self._anything: Shapes | None = ANYTHING_SHAPES
        if shared is None and self.splits and len(schema.nodes) >= _SPLIT_FROM:
            shared = {}
        self._shared = shared

    def writes_anything(self) -> None:
        """Write the rules of any JSON value here, instead of entering their grammar."""
        self._anything = None

    def rule(self, origin: str, *alternatives: Sequence[str], action: Action | None = None) -> str:
        self.rules += [Rule(origin, tuple(alternative)) for alternative in alternatives]
        if action is not None:
            self.actions[origin] = action
        return origin

    def terminal(self, terminal: Terminal) -> str:
        self.terminals.setdefault(terminal.name, terminal)
        return terminal.name

    def grammar(self, title: str) -> Grammar:
        return Grammar(tuple(self.rules), self.terminals, self.actions, title=title)

    # -- JSON values

    def json(self, name: str, definition: Definition) -> str:
        return self.terminal(Terminal(name, definition, Role.JSON))

    def value(self, shapes: Shapes, name: str) -> str:
        """The symbol (rule or terminal) that reads the JSON text of a union; equal unions share one."""
        symbol = self._symbols.get(shapes)
        if symbol is not None:
            return symbol
        if shapes == self._anything:
            return self.terminal(ANY_VALUE)
        groups = constructors(shapes)
        if len(groups) == 1:
            return self._constructor(groups[0], name)
        # The rule is known before what is inside it is written: unions may contain themselves.
        rule = self._symbols[shapes] = self.names.rule(name)
        symbols = [self._constructor(group, f"{name}_{i}") for i, group in enumerate(groups)]
        return self.rule(rule, *((symbol,) for symbol in dict.fromkeys(symbols)))

    def _constructor(self, shapes: Shapes, name: str) -> str:
        """The symbol of one scalar or array, or of all objects of a union."""
        symbol = self._symbols.get(shapes)
        if symbol is None:
            first = shapes[0]
            if not isinstance(first, ObjectShape | ArrayShape):
                symbol = self._symbols[shapes] = self.scalar(first, name)
            elif self._shared is not None:
                symbol = self._symbols[shapes] = self._entered(shapes, name)
            else:
                symbol = self.compound(shapes, name)
        return symbol

    def compound(self, shapes: Shapes, name: str) -> str:
        """The rule of an array, or of the objects of a union, written in this grammar."""
        first = shapes[0]
        if isinstance(first, ArrayShape):
            return self._array(first, name)
        return self.object(tuple(each for each in shapes if isinstance(each, ObjectShape)), name)

    def _entered(self, shapes: Shapes, name: str) -> str:
        """An array or object as a grammar of its own."""
        shared = self._shared
        assert shared is not None
        schema = self.schema

        def grammar(_: object) -> Grammar:
            made = shared.get(shapes)
            if made is None:
                builder = RuleBuilder(schema, shared)
                start = builder.names.rule("start")
                builder.rule(start, (builder.compound(shapes, name),))
                made = shared.setdefault(shapes, builder.grammar(name))
            return made

        entered = Sub(grammar, lambda _: shortest_json(schema, shapes))
        return self.terminal(Terminal(self.names.terminal(name), entered))

    def scalar(self, shape: Shape, name: str) -> str:
        """The symbol of a value that is neither an array nor an object."""
        match shape:
            case StringShape(language) if language.wanted or language.unwanted or language.excluded:
                return self.json(self.names.terminal(f"{name}_string"), JsonText(language))
            case StringShape(language):
                if not language.minimum and language.maximum is None:
                    return self.json("STRING", JsonString())
                bounds = f"{language.minimum}_{'' if language.maximum is None else language.maximum}"
                return self.json(
                    f"STRING_{bounds}".rstrip("_"), JsonString(language.minimum, language.maximum)
                )
            case NumberShape(number):
                if number == replace(PLAIN_NUMBER, integer=number.integer):
                    return self.json("INTEGER" if number.integer else "NUMBER", number)
                return self.json(self.names.terminal(f"{name}_number"), number)
            case EnumShape(("true", "false")):
                return self.json("BOOLEAN", Choice((("true", None), ("false", None))))
            case EnumShape(("null",)):
                return self.json("NULL", Literal("null"))
            case EnumShape(texts):
                return self.json(
                    self.names.terminal(f"{name}_enum"), Choice(tuple((text, None) for text in texts))
                )
        raise TypeError(f"not a scalar shape: {shape!r}")

    # -- objects

    def object(self, shapes: tuple[ObjectShape, ...], name: str) -> str:
        """The rule of the JSON text of objects that have one of some shapes."""
        known = self._symbols.get(shapes)
        if known is not None:
            return known
        rule = self._symbols[shapes] = self.names.rule(name)
        members, member = self.names.rule(f"{name}_members"), self.names.rule(f"{name}_member")
        opener = self.json(self.names.terminal(f"{name}_lbrace"), Literal("{"))
        closer = self.terminal(Terminal("RBRACE", Literal("}"), Role.JSON, Close()))
        written = MemberRules(self.schema, self.names, shapes, name)
        alternatives = self.members(written, name)
        forms: list[tuple[str, ...]] = [(opener, closer)] if written.may_be_empty else []
        if alternatives:
            forms.append((opener, members, closer))
            self.rule(members, (member,), (members, self.comma(), member), action=written.action)
            self.rule(member, *alternatives, action=Pick(0))
        return self.rule(rule, *forms)

    def members(self, written: MemberRules, name: str) -> list[tuple[str, ...]]:
        """What a member of an object may be; the first symbol of each is what may refuse it."""
        return [
            (self.terminal(key), self._colon(), self.value(value, f"{name}_{i}"))
            for i, (key, value) in enumerate(written.keys())
        ]

    # -- arrays

    def _array(self, shape: ArrayShape, name: str) -> str:
        known = self._symbols.get(shape)
        if known is not None:
            return known
        rule = self._symbols[shape] = self.names.rule(name)
        closer = self.terminal(Terminal("RBRACKET", Literal("]"), Role.JSON, Close()))
        opener = self.json(self.names.terminal(f"{name}_lbracket"), Literal("["))
        forms: list[tuple[str, ...]] = [] if shape.minimum else [(opener, closer)]
        if shape.kinds:
            forms = self._kinds(shape, name, opener, closer)
        elif shape.distinct:
            forms += self._distinct(shape, name, opener, closer)
        elif shape.maximum != 0:
            forms += self._places(shape, name, opener, closer)
        return self.rule(rule, *forms)

    def _places(self, shape: ArrayShape, name: str, opener: str, closer: str) -> list[tuple[str, ...]]:
        """A rule for each place of a tuple, then one for all other items."""
        forms: list[tuple[str, ...]] = []
        before: tuple[str, ...] = ()
        count = 0
        for place in shape.prefix:
            if shape.maximum is not None and count >= shape.maximum:
                return forms
            count += 1
            symbol = self.value(self.schema.shapes_of(place[0].node), f"{name}_item_{count}")
            prefix = self.rule(self.names.rule(f"{name}_first_{count}"), (*before, symbol))
            before = prefix, self.comma()
            if count >= shape.minimum:
                forms.append((opener, prefix, closer))
        if not shape.items or (shape.maximum is not None and count >= shape.maximum):
            return forms
        items = self.names.rule(f"{name}_items")
        item = self.value(self.schema.shapes_of(shape.items[0].node), f"{name}_item")
        counted = Items(shape.minimum, shape.maximum)
        # Without bounds the count would only make configurations differ that are alike.
        matters = shape.maximum is not None or shape.minimum > count + 1
        action = CountItems(counted, count) if matters else None
        self.rule(items, (*before, item), (items, self.comma(), item), action=action)
        return [*forms, (opener, items, closer)]

    def _distinct(self, shape: ArrayShape, name: str, opener: str, closer: str) -> list[tuple[str, ...]]:
        """Items out of a finite set, none twice: they are read like the names of members."""
        texts = [
            text
            for each in self.schema.shapes_of(shape.items[0].node)
            if isinstance(each, EnumShape)
            for text in each.texts
        ]
        words = tuple((text, Member(text, 1 << i)) for i, text in enumerate(texts))
        every = Alternative(0, (1 << len(words)) - 1, False, shape.minimum, shape.maximum)
        alternatives = Alternatives((every,), tuple(texts))
        key = AlternativeKey(alternatives, 1)
        item = self.terminal(Terminal(self.names.terminal(f"{name}_item"), Keys(words), Role.JSON, key))
        items = self.names.rule(f"{name}_items")
        action = CollectAlternatives(alternatives)
        self.rule(items, (item,), (items, self.comma(), item), action=action)
        return [(opener, items, closer)]

    def _kinds(self, shape: ArrayShape, name: str, opener: str, closer: str) -> list[tuple[str, ...]]:
        """Items that are counted by kind: what an item is to count for is chosen before it is read."""
        counted = contents(shape)
        forms: list[tuple[str, ...]] = (
            [(opener, closer)] if counted.may_end(0, counted.nothing.counts) else []
        )
        before: str | None = None
        places: list[tuple[str, tuple[ItemClass, ...]]] = [
            (f"{name}_first_{i}", place) for i, place in enumerate(shape.prefix, 1)
        ]
        for origin, place in places:
            rule = self.names.rule(origin)
            for item in place:
                self.rule(rule, self._counted_item(counted, item, name, before), action=Pick(-2))
            forms.append((rule, closer))
            before = rule
        if shape.items:
            rule = self.names.rule(f"{name}_items")
            for item in shape.items:
                self.rule(rule, self._counted_item(counted, item, name, before), action=Pick(-2))
                self.rule(rule, self._counted_item(counted, item, name, rule))
            forms.append((rule, closer))
        return forms

    def _counted_item(
        self, counted: Contents, item: ItemClass, name: str, before: str | None
    ) -> tuple[str, ...]:
        symbol = self.value(self.schema.shapes_of(item.node), f"{name}_item_{item.kinds}")
        if before is None:
            wanted = f"{name.upper()}_LBRACKET_{item.kinds}"
            first = FirstItem(counted, item.kinds)
            return self.terminal(
                Terminal(self.names.terminal(wanted), Literal("["), Role.JSON, first)
            ), symbol
        wanted = f"COMMA_{item.kinds}"
        comma = Terminal(wanted, Pattern(COMMA), Role.JSON, NextItem(item.kinds))
        return before, self.terminal(comma), symbol

    def comma(self) -> str:
        """The terminal between members or items."""
        return self.terminal(Terminal("COMMA", Pattern(COMMA), Role.JSON, More()))

    def _colon(self) -> str:
        return self.json("COLON", Pattern(COLON))


def constructors(shapes: Shapes) -> list[Shapes]:
    """What a union is made of, as far as one byte or attribute tells it apart: all objects are one."""
    objects = tuple(each for each in shapes if isinstance(each, ObjectShape))
    found: list[Shapes] = [(each,) for each in shapes if not isinstance(each, ObjectShape)]
    return [*found, objects] if objects else found


PLAIN_NUMBER = NumberShape().number


def json_grammar(schema: Schema, title: str) -> Grammar:
    """The grammar of a schema's JSON text alone."""
    builder = RuleBuilder(schema)
    start = builder.names.rule("start")
    builder.rule(start, (builder.value(schema.shapes, title),))
    return builder.grammar(title)


@lru_cache(maxsize=1)
def _any_value() -> Grammar:
    """The grammar of any JSON value: the same for all schemas, so that it is made once."""
    builder = RuleBuilder(ANY_SCHEMA)
    builder.writes_anything()
    start = builder.names.rule("start")
    builder.rule(start, (builder.value(ANYTHING_SHAPES, "any_value"),))
    return builder.grammar("any value")


ANY_VALUE = Terminal("ANY_VALUE", Sub(lambda _: _any_value(), lambda _: "0"))
