"""JSON that nobody constrained: any names, any numbers, blanks where JSON allows them."""

from __future__ import annotations

from larksong.engine.grammar.grammar import Definition, Grammar, Terminal
from larksong.engine.grammar.terminals import Choice, JsonString, Literal, Pattern, Role
from larksong.grammars.json.rules import ANY_SCHEMA, RuleBuilder

_BLANKS = r"[ \t\n\r]*"
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"


class OpenJson:
    """Writes rules for JSON values by kind: object, array, string, number, boolean, null."""

    def __init__(self, builder: RuleBuilder | None = None) -> None:
        self.builder = builder or RuleBuilder(ANY_SCHEMA)
        self._symbols: dict[str, str] = {}
        for name, definition in (
            ("OBJECT_OPEN", Pattern(r"\{" + _BLANKS)),
            ("OBJECT_END", Pattern(_BLANKS + r"\}")),
            ("ARRAY_OPEN", Pattern(r"\[" + _BLANKS)),
            ("ARRAY_END", Pattern(_BLANKS + r"\]")),
            ("NEXT", Pattern(_BLANKS + "," + _BLANKS)),
            ("MEMBER_COLON", Pattern(_BLANKS + ":" + _BLANKS)),
            ("MEMBER_NAME", JsonString()),
        ):
            self.builder.terminal(Terminal(name, definition, Role.JSON))

    def grammar(self, kind: str) -> Grammar:
        """The grammar of one value."""
        self.builder.rule("start", (self.value(kind),))
        return self.builder.grammar(f"any {kind}")

    def value(self, kind: str) -> str:
        """The symbol of a kind of value; `any` for all of them."""
        scalars: dict[str, Definition] = {
            "string": JsonString(),
            "number": Pattern(_NUMBER),
            "boolean": Choice((("true", None), ("false", None))),
            "null": Literal("null"),
        }
        known = self._symbols.get(kind)
        if known is not None:
            return known
        match kind:
            case "any":
                symbol = self._symbols[kind] = self.builder.names.rule("open_any")
                kinds = ("object", "array", "string", "number", "boolean", "null")
                return self.builder.rule(symbol, *((self.value(each),) for each in kinds))
            case "object":
                symbol = self._symbols[kind] = self.builder.names.rule("open_object")
                members, member = (
                    self.builder.names.rule("open_members"),
                    self.builder.names.rule("open_member"),
                )
                self.builder.rule(
                    symbol, ("OBJECT_OPEN", "OBJECT_END"), ("OBJECT_OPEN", members, "OBJECT_END")
                )
                self.builder.rule(members, (member,), (members, "NEXT", member))
                self.builder.rule(member, ("MEMBER_NAME", "MEMBER_COLON", self.value("any")))
                return symbol
            case "array":
                symbol = self._symbols[kind] = self.builder.names.rule("open_array")
                items = self.builder.names.rule("open_items")
                self.builder.rule(symbol, ("ARRAY_OPEN", "ARRAY_END"), ("ARRAY_OPEN", items, "ARRAY_END"))
                self.builder.rule(items, (self.value("any"),), (items, "NEXT", self.value("any")))
                return symbol
        symbol = self.builder.terminal(Terminal(f"OPEN_{kind.upper()}", scalars[kind], Role.JSON))
        self._symbols[kind] = symbol
        return symbol
