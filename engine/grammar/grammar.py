"""A grammar: rules, terminals and the attribute table, as plain data that prints as Lark text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from larksong.engine.grammar.attributes import (
    Action,
    CollectAlternatives,
    CollectMembers,
    CountItems,
    Predicate,
    Value,
)
from larksong.engine.grammar.terminals import Keys, Readable, Role


@dataclass(frozen=True, eq=False)
class Sub:
    """Another grammar, entered here like a subroutine and made when a mask first needs it.

    `choose(value)` gives the grammar for the value on top of the stack (the label of the function's name),
    `shortest(value)` its shortest text: known without the grammar, so that finishing never has to build it.
    Any text that is longer than `larksong.engine.lexing.path.LONGEST` bytes stands for all that are.
    """

    choose: Callable[[Value], Grammar] = field(repr=False)
    shortest: Callable[[Value], str] = field(repr=False)

    def lark(self) -> None:
        return None


Definition = Readable | Keys | Sub
"""What a terminal of a grammar matches."""


@dataclass(frozen=True)
class Terminal:
    """A terminal of a grammar: its name there, what it matches, what it means, who may refuse it."""

    name: str
    definition: Definition
    role: Role = Role.MARKUP
    predicate: Predicate | None = None
    reported_as: str = ""
    """the JSON text to report in the place of what it matches"""


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
