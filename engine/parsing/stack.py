"""Parser stacks, threads and configurations: the immutable, interned states of a parse.

        Stack      an LALR state with its attribute value, linked to the entry below it (a cons list);
                   pushing the same thing twice gives the same object, so equal stacks are one object
        Thread     a stack, the terminal that is being read on it, and the state of the terminal's DFA
        Configuration   a set of threads: usually one, several while terminals match the same bytes

        root ◀── call ◀── "{" ◀── member ◀── ","          thread: (",", KEY "city", 3 bytes read)
                              ◀── value                    a second branch shares everything below it

In the field's words this is a graph-structured stack (Tomita 1985; GLR parsing), and the threads are those of
a Pike VM. Since all of them are immutable and shared, whatever is known of one (what may follow, the mask,
where a token leads) is stored on it and found again by every sequence that passes through.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from larksong.engine.events import Events
from larksong.engine.grammar.attributes import RAW, Member, Value
from larksong.engine.grammar.grammar import Grammar, Sub, Terminal
from larksong.engine.grammar.terminals import Keys, Role, TextUntil
from larksong.engine.lexing.terminal_automaton import TerminalAutomaton
from larksong.engine.lexing.trie import Position, TokenSet
from larksong.engine.parsing.plan import Plan
from larksong.engine.parsing.tables import State, Symbols

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Return(NamedTuple):
    """The value at the bottom of a sub-grammar's stack: the terminal to shift in the caller at its end."""

    terminal: int


class CompiledGrammar:
    """A grammar on the vocabulary: its terminals and actions by the numbers that its tables use."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        symbols = Symbols(grammar)
        self.tables = symbols.tables
        self.number = symbols.number
        self.terminals = {
            symbols.number[name]: terminal
            for name, terminal in grammar.terminals.items()
            if name in symbols.number
        }
        self.actions = [grammar.actions.get(rule.origin) for rule in grammar.rules]
        self.bound: dict[tuple[int, object], tuple[BoundTerminal, ...]] = {}
        self.fills: dict[tuple[State, Position], Fill] = {}
        self._plain: dict[State, bool] = {}

    def is_plain(self, state: State) -> bool:
        """Whether what may follow in `state` asks nothing of the stack: all is shifted, none refused."""
        known = self._plain.get(state)
        if known is None:
            known = self._plain[state] = bool(state.actions) and all(
                isinstance(action, State) and self._is_plain_terminal(number)
                for number, action in state.actions.items()
            )
        return known

    def _is_plain_terminal(self, number: int) -> bool:
        terminal = self.terminals.get(number)
        if terminal is None or terminal.predicate is not None:
            return False
        definition = terminal.definition
        return not isinstance(definition, Sub | Keys) and not (
            isinstance(definition, TextUntil) and definition.stops
        )


class Fill(NamedTuple):
    """The tokens of a position that can be read from a plain state, whatever the stack.

    `tails`: terminals to shift, and the position behind them, where it does depend on the stack.
    """

    sets: list[TokenSet]
    tails: list[tuple[tuple[tuple[int, Value], ...], Position]]


class BoundTerminal:
    """A terminal of a grammar with its automaton on the vocabulary; of `Keys`, one word, with its label."""

    __slots__ = ("automaton", "label", "number", "streams", "terminal", "unique")

    def __init__(
        self, number: int, terminal: Terminal, automaton: TerminalAutomaton, label: Value = None
    ) -> None:
        self.number, self.terminal, self.automaton, self.label = number, terminal, automaton, label
        # JSON under a label is reported when it is complete; everything else while it is read.
        renamed = bool(terminal.reported_as) or (isinstance(label, Member) and bool(label.reported_as))
        self.streams = (
            terminal.role in _PIECES and not (automaton.labelled and _relabels(automaton)) and not renamed
        )
        self.unique = automaton.words.unique if automaton.words is not None else []

    def label_of(self, outcome: Value) -> Value:
        """What it is shifted with where its automaton has ended with `outcome`: a stop is no label."""
        return outcome if self.label is None and self.automaton.text is None else self.label


def _relabels(automaton: TerminalAutomaton) -> bool:
    return automaton.words is not None and any(
        isinstance(label, str) for label in automaton.words.labels.values()
    )


class Stack:
    """One entry of a parser stack and all below it."""

    __slots__ = (
        "above",
        "begun",
        "compiled",
        "fills",
        "fresh",
        "live",
        "parent",
        "shifts",
        "state",
        "threads",
        "value",
    )

    def __init__(self, parent: Stack | None, compiled: CompiledGrammar, state: State, value: Value) -> None:
        self.parent, self.compiled, self.state, self.value = parent, compiled, state, value
        self.above: dict[tuple[State, Value], Stack] = {}
        self.threads: dict[tuple[BoundTerminal, int], Thread] = {}
        self.shifts: dict[tuple[int, Value], Stack | None] = {}
        self.live: Live | None = None
        self.begun: tuple[Thread, ...] | None = None
        self.fresh: tuple[tuple[Thread, Events], ...] | None = None
        self.fills: dict[Position, list[TokenSet]] = {}

    def push(self, state: State, value: Value) -> Stack:
        """This stack with one more entry."""
        key = (state, value)
        found = self.above.get(key)
        if found is None:
            found = self.above.setdefault(key, Stack(self, self.compiled, state, value))
        return found

    def enter(self, compiled: CompiledGrammar, terminal: int) -> Stack:
        """The bottom entry of a sub-grammar that stands for `terminal` of this one."""
        key = (compiled.tables.start, Return(terminal))
        found = self.above.get(key)
        if found is None:
            found = self.above.setdefault(key, Stack(self, compiled, *key))
        return found

    def thread(self, bound: BoundTerminal, state: int) -> Thread:
        """The thread that reads a terminal on this stack."""
        key = (bound, state)
        found = self.threads.get(key)
        if found is None:
            found = self.threads.setdefault(key, Thread(self, bound, state))
        return found


class Live(NamedTuple):
    """What may follow a stack: terminals, each with the stack on which it is to be shifted."""

    terminals: tuple[tuple[BoundTerminal, Stack], ...]
    end: bool
    """whether the whole turn may end here"""


class Reading(IntEnum):
    """As what a value or name is read while that is open. Where two readings meet, the lower one is kept."""

    JSON = 0
    TEXT = 1
    """a raw string, up to where its close marker has been read too"""
    NAME = 2
    """a name that is not declared"""
    BEFORE_NAME = 3
    """what may stand before a name"""


class Thread:
    """A terminal in the middle of being read on a stack."""

    __slots__ = ("bound", "order", "reading", "stack", "state")

    def __init__(self, stack: Stack, bound: BoundTerminal, state: int) -> None:
        self.stack, self.bound, self.state = stack, bound, state
        self.order = next(_COUNT)
        """the place among other threads: in which order they were met"""
        of_value = Reading.TEXT if stack.value is RAW else Reading.JSON
        self.reading = _READINGS.get(bound.terminal.role, of_value)


class Branch(NamedTuple):
    """What an edge means to one reading of an ambiguous value: what it was before, what it is after."""

    before: Reading
    after: Reading
    events: Events


class Edge(NamedTuple):
    """Where a token leads. `branches` is empty unless the value's type is still open before or after it."""

    target: Configuration
    events: Events
    branches: tuple[Branch, ...] = ()


class Configuration:
    """A set of threads: a state of the token automaton, with its mask and edges as far as they are known."""

    __slots__ = ("ambiguous", "edges", "end", "mask", "parameter", "plan", "threads")

    def __init__(self, threads: tuple[Thread, ...], end: bool) -> None:
        self.threads = threads
        self.end = end
        """an end-of-sequence token was accepted"""
        self.ambiguous = len({thread.reading for thread in threads}) > 1
        """whether the value that is being read could still be a raw string or JSON"""
        (only,) = threads if len(threads) == 1 else (None,)
        names = only is not None and only.bound.terminal.role is Role.PARAMETER_OPEN
        self.parameter = only if only is not None and names and only.bound.label is not None else None
        """the parameter's name that is being read, when no other is possible any more"""
        self.edges: dict[int, Edge | None] = {}
        self.mask: NDArray[np.int32] | None = None
        self.plan: Plan | None = None


_READINGS = {Role.TEXT: Reading.TEXT, Role.NAME: Reading.NAME, Role.BEFORE_NAME: Reading.BEFORE_NAME}
_COUNT = count()
_PIECES = (Role.NAME, Role.JSON, Role.TEXT, Role.CONTENT, Role.REASONING)
