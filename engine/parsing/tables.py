"""LALR(1) tables: Lark's own analysis, in a form that is cheap to step.

Two thirds of `Lark(text)` is spent on reading the text, so the rules go straight into Lark's analyzer; a test
proves that the printed text gives the same tables. And tables depend on the shape of the rules alone, not on
what their symbols are called or match: two tools that differ only in their words share theirs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lark.common import ParserConf
from lark.exceptions import GrammarError as LarkGrammarError
from lark.grammar import NonTerminal, RuleOptions
from lark.grammar import Rule as LarkRule
from lark.grammar import Terminal as LarkTerminal
from lark.parsers.lalr_analysis import LALR_Analyzer, Shift

from larksong.engine.errors import GrammarConflict
from larksong.engine.grammar.grammar import Grammar

END = -1
"""The symbol of the end of the input."""

Shape = tuple[tuple[int, tuple[int, ...]], ...]
"""Rules with numbered symbols: rules' names have even numbers, terminals odd ones."""


class Production:
    """A rule to reduce by: its index in the grammar's rules, how many symbols it pops, what it becomes."""

    __slots__ = ("index", "origin", "size")

    def __init__(self, index: int, size: int, origin: int) -> None:
        self.index, self.size, self.origin = index, size, origin


class State:
    """An LALR state: `actions` by terminal (shift to a state, or reduce), `gotos` by rule name.

    `only`: the production that is reduced whatever comes next. Reducing at once, without a look at the next
    terminal, is safe, since what may come next is asked of the state below; and stacks that differ only in
    what they are about to forget become one.
    """

    __slots__ = ("actions", "gotos", "only")

    def __init__(self) -> None:
        self.actions: dict[int, State | Production] = {}
        self.gotos: dict[int, State] = {}
        self.only: Production | None = None

    def settle(self) -> None:
        """Find `only`, when all actions are there."""
        found = set(self.actions.values())
        if len(found) == 1 and not self.gotos:
            (action,) = found
            self.only = action if isinstance(action, Production) else None


class Tables:
    """The tables of one shape. `accept`: the state in which the start symbol is complete."""

    def __init__(self, shape: Shape, start: int) -> None:
        table, rules = _analyse(shape, start)
        productions = {
            rule: Production(index, len(expansion), origin)
            for index, (rule, (origin, expansion)) in enumerate(zip(rules, shape, strict=True))
        }
        states = {index: State() for index in table.states}
        for index, row in table.states.items():
            state = states[index]
            for name, (action, argument) in row.items():
                symbol = END if name == "$END" else int(name[1:])
                if action is not Shift:
                    state.actions[symbol] = productions[argument]
                elif symbol % 2:
                    state.actions[symbol] = states[argument]
                else:
                    state.gotos[symbol] = states[argument]
        self.states = list(states.values())
        for state in self.states:
            state.settle()
        self.start = states[table.start_states[f"n{start}"]]
        self.accept = states[table.end_states[f"n{start}"]]
        self.accept.actions = {END: self.accept}


def _analyse(shape: Shape, start: int) -> tuple[Any, list[LarkRule]]:
    """Lark's LALR(1) analysis; `strict`, since Lark would else resolve conflicts by itself."""
    symbols: dict[int, LarkTerminal | NonTerminal] = {}
    for _, expansion in shape:
        for symbol in expansion:
            symbols[symbol] = LarkTerminal(f"T{symbol}") if symbol % 2 else NonTerminal(f"n{symbol}")
    options = RuleOptions()
    rules = [
        LarkRule(NonTerminal(f"n{origin}"), [symbols[each] for each in expansion], index, None, options)
        for index, (origin, expansion) in enumerate(shape)
    ]
    analyzer: Any = LALR_Analyzer(ParserConf(rules, {}, [f"n{start}"]), strict=True)
    analyzer.compute_lalr()
    return analyzer.parse_table, rules


@lru_cache(maxsize=4096)
def tables(shape: Shape, start: int) -> Tables:
    """The tables of a shape, made once."""
    return Tables(shape, start)


class Symbols:
    """The numbers of a grammar's symbols, and its tables."""

    def __init__(self, grammar: Grammar) -> None:
        self.number: dict[str, int] = {}
        terminals = grammar.terminals
        shape = []
        for rule in grammar.rules:
            numbers = []
            for name in (rule.origin, *rule.expansion):
                number = self.number.get(name)
                if number is None:
                    number = self.number[name] = 2 * len(self.number) + (name in terminals)
                numbers.append(number)
            shape.append((numbers[0], tuple(numbers[1:])))
        try:
            self.tables = tables(tuple(shape), self.number[grammar.start])
        except LarkGrammarError as error:
            raise GrammarConflict(grammar.title, str(error)) from error
