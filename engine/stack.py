"""Parser stacks, threads and configurations: the immutable, interned states of a parse.

        Stack      an LALR state with its attribute value, linked to the entry below it (a cons list);
                   pushing the same thing twice gives the same object, so equal stacks are one object
        Thread     a stack, the terminal that is being read on it, and the state of the terminal's DFA
        Configuration   a set of threads: usually one, several while terminals match the same bytes

        root ◀── call ◀── "{" ◀── member ◀── ","          thread: (",", KEY "city", 3 bytes read)
                              ◀── value                    a second branch shares everything below it

Since all of them are immutable and shared, whatever is known of one (what may follow, the mask, where a token
leads) is stored on it and found again by every sequence that passes through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from larksong.engine.attributes import Value
from larksong.engine.events import Events, ParseEvent
from larksong.engine.lexeme import Lexeme
from larksong.engine.tables import State
from larksong.engine.terminals import Role, Terminal
from larksong.engine.trie import Piece, Position

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Return(NamedTuple):
    """The value at the bottom of a sub-grammar's stack: the terminal to shift in the caller at its end."""

    terminal: str


class Bound:
    """A terminal of a grammar with its lexeme on the vocabulary."""

    __slots__ = ("lexeme", "streams", "terminal", "unique")

    def __init__(self, terminal: Terminal, lexeme: Lexeme) -> None:
        self.terminal, self.lexeme = terminal, lexeme
        # JSON under a label is reported when it is complete; everything else while it is read.
        self.streams = terminal.role in _PIECES and not (lexeme.labelled and _relabels(lexeme))
        self.unique = lexeme.words.unique if lexeme.words is not None else []


def _relabels(lexeme: Lexeme) -> bool:
    return lexeme.words is not None and any(isinstance(label, str) for label in lexeme.words.labels.values())


class Stack:
    """One entry of a parser stack and all below it."""

    __slots__ = ("above", "fills", "following", "live", "parent", "shifts", "state", "threads", "value")

    def __init__(self, parent: Stack | None, state: State, value: Value) -> None:
        self.parent, self.state, self.value = parent, state, value
        self.above: dict[tuple[State, Value], Stack] = {}
        self.threads: dict[tuple[Bound, int], Thread] = {}
        self.shifts: dict[tuple[str, Value], Stack | None] = {}
        self.live: Live | None = None
        self.following: tuple[tuple[Thread, Events], ...] | None = None
        self.fills: dict[Position, list[Piece]] = {}

    def push(self, state: State, value: Value) -> Stack:
        """This stack with one more entry."""
        key = (state, value)
        found = self.above.get(key)
        if found is None:
            found = self.above.setdefault(key, Stack(self, state, value))
        return found

    def thread(self, bound: Bound, state: int) -> Thread:
        """The thread that reads a terminal on this stack."""
        key = (bound, state)
        found = self.threads.get(key)
        if found is None:
            found = self.threads.setdefault(key, Thread(self, bound, state))
        return found


class Live(NamedTuple):
    """What may follow a stack: terminals, each with the stack on which it is to be shifted."""

    terminals: tuple[tuple[Bound, Stack], ...]
    end: bool
    """whether the whole turn may end here"""


class Thread:
    """A terminal in the middle of being read on a stack."""

    __slots__ = ("bound", "is_text", "stack", "state", "successors")

    def __init__(self, stack: Stack, bound: Bound, state: int) -> None:
        self.stack, self.bound, self.state = stack, bound, state
        self.is_text = bound.terminal.role is Role.TEXT
        self.successors: dict[int, tuple[tuple[Thread, Events], ...]] = {}


class Branch(NamedTuple):
    """What an edge means to one reading of an ambiguous value: raw string (`is_text`) or JSON."""

    was_text: bool
    is_text: bool
    events: Events


class Edge(NamedTuple):
    """Where a token leads. `branches` is empty unless the value's type is still open before or after it."""

    target: Configuration
    events: Events
    branches: tuple[Branch, ...] = ()


class Configuration:
    """A set of threads: a state of the token automaton, with its mask and edges as far as they are known."""

    __slots__ = ("edges", "end", "mask", "threads")

    def __init__(self, threads: tuple[Thread, ...], end: bool) -> None:
        self.threads = threads
        self.end = end
        """an end-of-sequence token was accepted"""
        self.edges: dict[int, Edge | None] = {}
        self.mask: NDArray[np.int32] | None = None

    @property
    def ambiguous(self) -> bool:
        """Whether the value that is being read could still be a raw string or JSON."""
        return len({thread.is_text for thread in self.threads}) > 1


_PIECES = (Role.JSON, Role.TEXT, Role.CONTENT, Role.REASONING)

__all__ = ["Bound", "Branch", "Configuration", "Edge", "Live", "ParseEvent", "Return", "Stack", "Thread"]
