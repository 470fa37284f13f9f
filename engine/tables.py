"""LALR(1) tables: Lark's own analysis, in a form that is cheap to step.

Two thirds of `Lark(text)` is spent on reading the text, so the rules go straight into Lark's analyzer; a test
proves that the printed text gives the same tables.
"""

from __future__ import annotations

from functools import lru_cache

from lark.common import ParserConf
from lark.exceptions import GrammarError as LarkGrammarError
from lark.grammar import NonTerminal, RuleOptions
from lark.grammar import Rule as LarkRule
from lark.grammar import Terminal as LarkTerminal
from lark.parsers.lalr_analysis import LALR_Analyzer, Shift

from larksong.engine.attributes import Action
from larksong.engine.errors import GrammarConflict
from larksong.engine.grammar import Grammar

END = "$END"


class Production:
    """A rule to reduce by: how many symbols it pops, what it becomes, how its value is made."""

    __slots__ = ("action", "origin", "size")

    def __init__(self, size: int, origin: str, action: Action | None) -> None:
        self.size, self.origin, self.action = size, origin, action


class State:
    """An LALR state: `actions` by terminal name (shift to a state, or reduce), `gotos` by rule name."""

    __slots__ = ("actions", "gotos", "tables")

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.actions: dict[str, State | Production] = {}
        self.gotos: dict[str, State] = {}


class Tables:
    """The tables of one grammar. `accept`: the state in which the start symbol is complete."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        try:
            analyzer = LALR_Analyzer(ParserConf(lark_rules(grammar), {}, [grammar.start]), strict=True)
            analyzer.compute_lalr()
        except LarkGrammarError as error:
            raise GrammarConflict(str(error)) from error
        table = analyzer.parse_table
        self.states = [State(self) for _ in table.states]
        productions: dict[int, Production] = {}
        for index, row in table.states.items():
            state = self.states[index]
            for symbol, (action, argument) in row.items():
                if action is not Shift:
                    production = productions.get(id(argument))
                    if production is None:
                        origin = argument.origin.name
                        production = Production(len(argument.expansion), origin, grammar.actions.get(origin))
                        productions[id(argument)] = production
                    state.actions[symbol] = production
                elif symbol == END or symbol in grammar.terminals:
                    state.actions[symbol] = self.states[argument]
                else:
                    state.gotos[symbol] = self.states[argument]
        self.start = self.states[table.start_states[grammar.start]]
        self.accept = self.states[table.end_states[grammar.start]]


def lark_rules(grammar: Grammar) -> list[LarkRule]:
    """The grammar's rules as objects of Lark."""
    options = RuleOptions()
    symbols: dict[str, LarkTerminal | NonTerminal] = {}
    for name in grammar.terminals:
        symbols[name] = LarkTerminal(name)
    rules = []
    for order, rule in enumerate(grammar.rules):
        origin = symbols.setdefault(rule.origin, NonTerminal(rule.origin))
        expansion = [symbols.setdefault(name, NonTerminal(name)) for name in rule.expansion]
        rules.append(LarkRule(origin, expansion, order, None, options))
    return rules


@lru_cache(maxsize=512)
def tables(grammar: Grammar) -> Tables:
    """The tables of a grammar; grammars are compared by identity."""
    return Tables(grammar)
