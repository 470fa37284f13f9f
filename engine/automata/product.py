"""Boolean combinations of byte automata, made lazily and without dead ends."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from larksong.engine.automata.dfa import DEAD, DFA, Row
from larksong.engine.automata.nfa import LazyAutomaton
from larksong.engine.errors import UnsupportedPattern

_LIMIT = 20_000
_DEAD_ROW = (DEAD,) * 256


def intersection(*dfas: DFA, limit: int = _LIMIT) -> DFA:
    """The texts that all of `dfas` accept."""
    return Product(dfas, viable=lambda states: min(states) >= 0, accepting=all, limit=limit)


def difference(first: DFA, *others: DFA, limit: int = _LIMIT) -> DFA:
    """The texts that `first` accepts and none of `others`."""
    return Product(
        (first, *others),
        viable=lambda states: states[0] >= 0,
        accepting=lambda accepts: accepts[0] and not any(accepts[1:]),
        limit=limit,
    )


def exactly_one(*dfas: DFA, limit: int = _LIMIT) -> DFA:
    """The texts that one of `dfas` accepts and the others do not."""
    return Product(
        dfas,
        viable=lambda states: max(states) >= 0,
        accepting=lambda accepts: sum(accepts) == 1,
        limit=limit,
    )


def is_empty(dfa: DFA) -> bool:
    """Whether no text at all is accepted."""
    return not dfa.accepts(dfa.start) and max(dfa.row(dfa.start)) == DEAD


Key = TypeVar("Key", bound=Hashable)


class Trimmed(LazyAutomaton[Key]):
    """An automaton over others that drops the states from which nothing is accepted.

    Whether a state still leads to an accepted text is found by a forward search, ASCII first, that
    stops at the first state known to. What is learnt flows back along all edges seen so far and is kept, so
    that no search settles a state twice. A search over more than `limit` states raises
    `UnsupportedPattern` at construction; while the automaton is used nothing may fail, and the state is taken
    to lead somewhere.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._edges: list[Row | None] = []
        self._before: list[list[int]] = []
        self._lives: list[bool | None] = []

    @abstractmethod
    def _following(self, state: int) -> Row:
        """The row of `state` before trimming."""

    def _add(self, key: Key, accepting: bool, certain: bool) -> int:
        """The state of `key`; `certain`: it is known to lead to an accepted text."""
        state = self._intern(key, accepting)
        if state == len(self._lives):
            self._lives.append(accepting or certain or None)
            self._before.append([])
            self._edges.append(None)
        return state

    def _expand(self, state: int) -> Row:
        edges = self._edges_of(state)
        kept = {DEAD: DEAD}
        for target in set(edges) - {DEAD}:
            try:
                kept[target] = target if self._is_live(target) else DEAD
            except UnsupportedPattern:
                self._revive(target)
                kept[target] = target
        return [kept[target] for target in edges]

    def _edges_of(self, state: int) -> Row:
        edges = self._edges[state]
        if edges is None:
            edges = self._edges[state] = array("i", self._following(state))
            for target in set(edges) - {DEAD}:
                self._before[target].append(state)
                if self._lives[target]:
                    self._revive(state)
        return edges

    def _revive(self, state: int) -> None:
        """Record that `state` and all that lead to it lead to an accepted text."""
        pending = [state]
        while pending:
            state = pending.pop()
            if not self._lives[state]:
                self._lives[state] = True
                pending += self._before[state]

    def _is_live(self, state: int) -> bool:
        if self._lives[state] is None:
            seen = {state}
            ascii_first = deque(seen)
            others: deque[int] = deque()
            while (ascii_first or others) and not self._lives[state]:
                edges = self._edges_of((ascii_first or others).popleft())
                for queue, targets in (ascii_first, edges[:0x80]), (others, edges[0x80:]):
                    new = {t for t in set(targets) - seen if t != DEAD and self._lives[t] is None}
                    seen |= new
                    queue.extend(new)
                if len(seen) > self._limit:
                    raise UnsupportedPattern(f"no accepted text found within {self._limit} product states")
            if not self._lives[state]:
                for reached in seen:
                    self._lives[reached] = False
        return bool(self._lives[state])


class Product(Trimmed[tuple[int, ...]]):
    """The product construction (Rabin and Scott, 1959) over trimmed automata.

    A state holds one state of each automaton, `DEAD` where that one has failed. `viable(states)` is False
    when no text can be accepted any more whatever the living ones do; `accepting(flags)` is the Boolean
    function.
    """

    def __init__(
        self,
        dfas: Sequence[DFA],
        viable: Callable[[Sequence[int]], bool],
        accepting: Callable[[Sequence[bool]], bool],
        limit: int,
    ) -> None:
        super().__init__(limit)
        self._dfas = tuple(dfas)
        self._viable = viable
        self._accept = accepting
        self.start = self._state(tuple(dfa.start for dfa in self._dfas))
        self._is_live(self.start)

    def _state(self, states: tuple[int, ...]) -> int:
        if not self._viable(states):
            return DEAD
        known = self._ids.get(states)
        if known is not None:
            return known
        accepts = [s != DEAD and dfa.accepts(s) for dfa, s in zip(self._dfas, states, strict=True)]
        alive = [s != DEAD for s in states]
        # A single living automaton decides alone, and being trimmed it can still come to accept.
        return self._add(states, self._accept(accepts), sum(alive) == 1 and self._accept(alive))

    def _following(self, state: int) -> Row:
        rows = [
            _DEAD_ROW if s == DEAD else dfa.row(s)
            for dfa, s in zip(self._dfas, self._keys[state], strict=True)
        ]
        columns = list(zip(*rows, strict=True))
        targets = {column: self._state(column) for column in set(columns)}
        return [targets[column] for column in columns]
