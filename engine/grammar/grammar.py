"""A grammar: rules, terminals and the attribute table, as plain data that prints as Lark text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from larksong.engine.grammar.attributes import Action, CollectAlternatives, CollectMembers, CountItems
from larksong.engine.grammar.terminals import Sub, Terminal


@dataclass(frozen=True)
class Rule:
    """One alternative of a rule. Terminals are the names in upper case, as in Lark."""

    origin: str
    expansion: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Grammar:
    """Rules in Lark's sense, with `start` as their start symbol.

    `actions`: how a rule's value is made of its symbols' values, by rule name (missing: no value).
    `title` is for people: the tool or format it was made for.
    """

    rules: tuple[Rule, ...]
    terminals: Mapping[str, Terminal]
    actions: Mapping[str, Action] = field(default_factory=dict)
    start: str = "start"
    title: str = ""

    def lark(self) -> str:
        """The grammar as Lark text: what `Lark(text, parser="lalr", strict=True)` takes."""
        lines = [f"// {self.title}"] if self.title else []
        origins: dict[str, list[str]] = {}
        for rule in self.rules:
            origins.setdefault(rule.origin, []).append(" ".join(rule.expansion))
        for origin, alternatives in origins.items():
            action = self.actions.get(origin)
            if isinstance(action, CollectAlternatives | CollectMembers | CountItems):
                lines.append(f"// {action}")
            lines.append(f"{origin}: " + "\n  | ".join(alternatives))
        lines.append("")
        entered = [name for name, terminal in self.terminals.items() if isinstance(terminal.definition, Sub)]
        if entered:
            lines.append("// entered like a subroutine")
            lines.append("%declare " + " ".join(entered))
        for name, terminal in self.terminals.items():
            if text := terminal.definition.lark():
                lines.append(f"{name}: {text}")
        return "\n".join(lines) + "\n"
