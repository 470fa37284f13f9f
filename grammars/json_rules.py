"""Types → grammar rules for their JSON text.

The shapes matter: every LALR state has at most one complete item, so no conflict can arise.

    object:  LBRACE_o RBRACE | LBRACE_o members RBRACE      first alternative only if nothing is required
    members: member | members COMMA member                  any order; attributes keep what was seen
    member:  KEY_a COLON value | KEY_b COLON value | …
    array:   LBRACKET_a RBRACKET | LBRACKET_a items RBRACKET
    items:   value | items COMMA value

Openers and keys are terminals of their own for each object and array, so that branches of a union can be told
apart; all other terminals are shared. A union is one rule over constructors, never over unions.
"""

from __future__ import annotations

from collections.abc import Sequence

from larksong.engine.attributes import (
    Action,
    Close,
    CollectMembers,
    CountItems,
    Items,
    Key,
    Member,
    Members,
    More,
    Pick,
)
from larksong.engine.grammar import Grammar, Rule
from larksong.engine.terminals import (
    Choice,
    Definition,
    JsonKey,
    JsonString,
    Keys,
    Literal,
    Pattern,
    Role,
    Terminal,
)
from larksong.grammars.names import Names
from larksong.grammars.schema import (
    AnyType,
    ArrayType,
    BooleanType,
    EnumType,
    NullType,
    NumberType,
    ObjectType,
    StringType,
    Type,
    UnionType,
    json_text,
)

# Digits are bounded so that no model can idle in them, and so that every number fits a double.
INTEGER = r"-?(?:0|[1-9][0-9]{0,17})"
NUMBER = INTEGER + r"(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?"


class RuleBuilder:
    """Collects the rules, terminals and attributes of one grammar."""

    def __init__(self) -> None:
        self.names = Names()
        self.rules: list[Rule] = []
        self.terminals: dict[str, Terminal] = {}
        self.actions: dict[str, Action] = {}
        self._symbols: dict[Type, str] = {}

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

    def _json(self, name: str, definition: Definition) -> str:
        return self.terminal(Terminal(name, definition, Role.JSON))

    def value(self, type_: Type, name: str) -> str:
        """The symbol (rule or terminal) that reads the JSON text of a type; equal types share one."""
        symbol = self._symbols.get(type_)
        if symbol is None:
            if isinstance(type_, AnyType):
                return self._any()
            if isinstance(type_, UnionType):
                symbol = self._union(type_, name)
            elif isinstance(type_, ObjectType):
                return self.object(type_, name)
            elif isinstance(type_, ArrayType):
                return self._array(type_, name)
            else:
                symbol = self._scalar(type_, name)
            self._symbols[type_] = symbol
        return symbol

    def _scalar(self, type_: Type, name: str) -> str:
        match type_:
            case StringType(0, None):
                return self._json("STRING", JsonString())
            case StringType(minimum, maximum):
                return self._json(
                    self.names.terminal(f"string_{minimum}_{maximum or ''}"), JsonString(minimum, maximum)
                )
            case NumberType(integer=True):
                return self._json("INTEGER", Pattern(INTEGER))
            case NumberType():
                return self._json("NUMBER", Pattern(NUMBER))
            case BooleanType():
                return self._json("BOOLEAN", Choice((("true", None), ("false", None))))
            case NullType():
                return self._json("NULL", Literal("null"))
            case EnumType(values):
                return self._json(
                    self.names.terminal(f"{name}_enum"), Choice(tuple((text, None) for text in values))
                )
        raise TypeError(f"not a scalar type: {type_!r}")

    def _union(self, type_: UnionType, name: str) -> str:
        rule = self.names.rule(name)
        symbols = [self.value(option, f"{name}_{i}") for i, option in enumerate(type_.options)]
        return self.rule(rule, *((symbol,) for symbol in dict.fromkeys(symbols)))

    def object(self, type_: ObjectType, name: str) -> str:
        """The rule of an object's JSON text."""
        if type_ in self._symbols:
            return self._symbols[type_]
        rule = self._symbols[type_] = self.names.rule(name)
        bits = {key: 1 << i for i, (key, _) in enumerate(type_.properties)}
        seen = Members(
            required=sum(bits[key] for key in type_.required),
            declared=sum(bits.values()),
            open=type_.additional is not None,
            names=tuple(bits),
        )
        members, member = self.names.rule(f"{name}_members"), self.names.rule(f"{name}_member")
        opener = self._json(self.names.terminal(f"{name}_lbrace"), Literal("{"))
        closer = self.terminal(Terminal("RBRACE", Literal("}"), Role.JSON, Close()))
        by_symbol: dict[str, list[tuple[str, Member]]] = {}
        for key, value in type_.properties:
            symbol = self.value(value, f"{name}__{key}")
            by_symbol.setdefault(symbol, []).append((json_text(key), Member(key, bits[key])))
        alternatives: list[tuple[str, ...]] = []
        for symbol, words in by_symbol.items():
            keys = Terminal(self.names.terminal(f"{name}_{symbol}_key"), Keys(tuple(words)), Role.JSON, Key())
            alternatives.append((self.terminal(keys), self._colon(), symbol))
        if type_.additional is not None:
            symbol = self.value(type_.additional, f"{name}__other")
            other = Terminal(self.names.terminal(f"{name}_other_key"), JsonKey(tuple(bits)), Role.JSON, Key())
            alternatives.append((self.terminal(other), self._colon(), symbol))
        shapes: list[tuple[str, ...]] = [] if type_.required else [(opener, closer)]
        if alternatives:
            shapes.append((opener, members, closer))
        self.rule(rule, *shapes)
        if alternatives:
            separated = (members, self._comma(), member)
            self.rule(members, (member,), separated, action=CollectMembers(seen))
            self.rule(member, *alternatives, action=Pick(0))
        return rule

    def _array(self, type_: ArrayType, name: str) -> str:
        if type_ in self._symbols:
            return self._symbols[type_]
        rule = self._symbols[type_] = self.names.rule(name)
        counted = Items(type_.minimum, type_.maximum)
        opener = self._json(self.names.terminal(f"{name}_lbracket"), Literal("["))
        closer = self.terminal(Terminal("RBRACKET", Literal("]"), Role.JSON, Close()))
        shapes: list[tuple[str, ...]] = [] if type_.minimum else [(opener, closer)]
        if type_.maximum != 0:
            items = self.names.rule(f"{name}_items")
            item = self.value(type_.items, f"{name}_item")
            # Without bounds the count would only make configurations differ that are alike.
            action = CountItems(counted) if counted.cap else None
            self.rule(items, (item,), (items, self._comma(), item), action=action)
            shapes.append((opener, items, closer))
        return self.rule(rule, *shapes)

    def _any(self) -> str:
        known = self._symbols.get(AnyType())
        if known is None:
            known = self._symbols[AnyType()] = self.names.rule("any_value")
            scalars = [
                self.value(type_, "any")
                for type_ in (StringType(), NumberType(integer=False), BooleanType(), NullType())
            ]
            everything = ObjectType((), frozenset(), AnyType()), ArrayType(AnyType())
            symbols = [
                *scalars,
                self.object(everything[0], "any_object"),
                self._array(everything[1], "any_array"),
            ]
            self.rule(known, *((symbol,) for symbol in symbols))
        return known

    def _comma(self) -> str:
        return self.terminal(Terminal("COMMA", Pattern(", ?"), Role.JSON, More()))

    def _colon(self) -> str:
        return self._json("COLON", Pattern(": ?"))


def json_grammar(type_: Type, title: str) -> Grammar:
    """The grammar of a type's JSON text alone."""
    builder = RuleBuilder()
    start = builder.names.rule("start")
    builder.rule(start, (builder.value(type_, title),))
    return builder.grammar(title)
