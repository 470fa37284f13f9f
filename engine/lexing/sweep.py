"""All tokens of a trie position through an automaton at once, one trie level after the other.

A level is a numpy array of trie nodes with the automaton's state before each; one indexing step takes the
whole level through the transition table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.automata.dfa import DFA, is_final
from larksong.engine.lexing.interior import Bools, Interior, Ints
from larksong.engine.lexing.trie import Position, Trie

_NONE = np.zeros(0, np.int64)
# Up to so many nodes, with so many tokens below them for each level, are followed one by one.
_FEW, _FEW_A_LEVEL = 200, 20
# Of so few nodes it is not worth asking which branches stay inside.
_FEW_TO_HOLD = 32


class Exit(NamedTuple):
    """A place where the terminal is complete: in `state`, after so many `characters`.

    `nodes`: trie nodes from which the rest of a token goes on; `ids`: tokens that end exactly here.
    """

    state: int
    characters: int
    nodes: Ints
    ids: Ints


class Sweep(NamedTuple):
    """`ids`: tokens that end inside the automaton, each with its end state and number of characters.

    `nodes`: trie nodes whose whole branches end inside, where it does not matter in which state.
    """

    ids: Ints
    states: Ints
    counts: Ints
    exits: list[Exit]
    nodes: Ints


class Sweeper:
    """Sweeps through one automaton; `begins(state)`: whether a byte read there begins a character."""

    def __init__(self, dfa: DFA, begins: Callable[[int], bool] = lambda state: False) -> None:
        self._dfa, self._begins_character = dfa, begins
        # Most automata are words, which nobody sweeps.
        self._table = np.zeros((0, 256), np.int64)
        self._begins = np.zeros(0, np.int64)
        self._known: set[int] = set()
        self._lock = threading.Lock()

    @cached_property
    def _interior(self) -> Interior:
        return Interior(self._dfa)

    def sweep(self, state: int, position: Position, *, ends: bool = True) -> Sweep:
        """Read all tokens of `position` from `state` on; without `ends` whole branches at once."""
        trie, dfa, nodes = position.trie, self._dfa, position.nodes
        states, counts = np.full(len(nodes), state), np.zeros(len(nodes), np.int64)
        inside: list[tuple[Ints, Ints, Ints]] = []
        whole = [_NONE]
        exits: list[Exit] = []
        while not self._is_thin(trie, nodes):
            distinct = _distinct(states)
            table, begins = self._rows(distinct)
            following = table[states, trie.byte[nodes]]
            accepting = [at for at in distinct if dfa.accepts(at)]
            if accepting:
                left = (following < 0) & _any_of(states, distinct, accepting)
                for at, count, here in _groups(states, counts, left):
                    exits.append(Exit(at, count, nodes[here], _NONE))
            alive = following >= 0
            counts = (counts + begins[states])[alive]
            nodes, states = nodes[alive], following[alive]
            distinct = _distinct(states)
            ended = [at for at in distinct if is_final(dfa, at)]
            if ended:
                complete = _any_of(states, distinct, ended)
                for at, count, here in _groups(states, counts, complete):
                    exits.append(Exit(at, count, trie.children(nodes[here])[0], trie.tokens(nodes[here])[0]))
                nodes, states, counts = nodes[~complete], states[~complete], counts[~complete]
                distinct = [at for at in distinct if at not in ended]
            if not ends and len(nodes) > _FEW_TO_HOLD:
                held = self._held(trie, nodes, states, distinct)
                whole.append(nodes[held])
                nodes, states, counts = nodes[~held], states[~held], counts[~held]
            ids, owner = trie.tokens(nodes)
            inside.append((ids, states[owner], counts[owner]))
            nodes, owner = trie.children(nodes)
            states, counts = states[owner], counts[owner]
        inside.append(self._follow(position, nodes, states, counts, exits))
        ids, states, counts = (np.concatenate(arrays) for arrays in zip(*inside, strict=True))
        return Sweep(ids, states, counts, exits, np.concatenate(whole))

    def _held(self, trie: Trie, nodes: Ints, states: Ints, distinct: list[int]) -> Bools:
        """Which nodes' branches end inside wherever they end; those of leaves always do."""
        depths = trie.depth[nodes]
        held: Bools = depths == 0
        inner = np.flatnonzero(depths)
        if len(inner):
            below = trie.below[:, nodes[inner]]
            held[inner] = self._interior.holds(states[inner], distinct, below, depths[inner])
        return held

    @staticmethod
    def _is_thin(trie: Trie, nodes: Ints) -> bool:
        """Whether following each node by itself is faster than a numpy step for all, level by level."""
        if len(nodes) > _FEW:
            return False
        tokens = int((trie.last_below[nodes] - trie.first_below[nodes]).sum())
        return tokens <= _FEW_A_LEVEL * int(trie.depth[nodes].max(initial=1))

    def _follow(
        self, position: Position, nodes: Ints, states: Ints, counts: Ints, exits: list[Exit]
    ) -> tuple[Ints, Ints, Ints]:
        """The rest of a sweep, node by node: long tokens make many levels with hardly a node in them."""
        dfa, row, begins = self._dfa, self._dfa.row, self._begins_character
        byte, tokens, first_child, last_child, first_token, last_token, run_end = position.trie.one_by_one
        left: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        found: list[tuple[int, int, int]] = []
        todo: list[tuple[int, int, int]] = []

        def read(nodes: Iterable[int], read_bytes: Iterable[int], state: int, count: int) -> None:
            """Go on with the bytes of `nodes` from `state`; the others come after its end, if it is one."""
            step = row(state)
            further = count + begins(state)
            dead: list[int] = []
            for node, each in zip(nodes, read_bytes, strict=True):
                following = step[each]
                if following < 0:
                    dead.append(node)
                elif following == state and further == count:
                    todo.append((run_end[node], state, count))
                else:
                    todo.append((node, following, further))
            if dead and dfa.accepts(state):
                left.setdefault((state, count), ([], []))[0].extend(dead)

        for node, state, count in zip(nodes.tolist(), states.tolist(), counts.tolist(), strict=True):
            read((node,), (byte[node],), state, count)
        for node, state, count in todo:
            first, last = first_child[node], last_child[node]
            ids = tokens[first_token[node] : last_token[node]]
            if is_final(dfa, state):
                group = left.setdefault((state, count), ([], []))
                group[0].extend(range(first, last))
                group[1].extend(ids)
                continue
            for token in ids:
                found.append((token, state, count))
            if first < last:
                read(range(first, last), byte[first:last], state, count)
        for (state, count), (onward, ended) in left.items():
            exits.append(Exit(state, count, np.array(onward, np.int64), np.array(ended, np.int64)))
        ended_inside = np.array(found, np.int64).reshape(-1, 3)
        return ended_inside[:, 0], ended_inside[:, 1], ended_inside[:, 2]

    def _rows(self, states: Iterable[int]) -> tuple[Ints, Ints]:
        """The transition table and what begins a character, complete for `states`.

        Another thread may replace them by larger ones at any time; those given out stay complete.
        """
        with self._lock:
            new = [state for state in states if state not in self._known]
            if new:
                self._make_room(max(new))
                for state in new:
                    self._begins[state] = self._begins_character(state)
                    self._table[state] = self._dfa.row(state)
                self._known.update(new)
            return self._table, self._begins

    def _make_room(self, state: int) -> None:
        """Rows up to `state`: of many states few are read, and what was never written takes no memory."""
        if state >= len(self._table):
            size, known = max(16, 1 << state.bit_length()), list(self._known)
            table, begins = np.zeros((size, 256), np.int64), np.zeros(size, np.int64)
            table[known], begins[known] = self._table[known], self._begins[known]
            self._table, self._begins = table, begins


def _distinct(states: Ints) -> list[int]:
    return np.flatnonzero(np.bincount(states)).tolist()


def _any_of(states: Ints, distinct: list[int], chosen: list[int]) -> Bools:
    """Which of `states`, all among `distinct`, are `chosen`."""
    if len(chosen) == len(distinct):
        return np.ones(len(states), bool)
    is_chosen = np.zeros(max(distinct) + 1, bool)
    is_chosen[chosen] = True
    found: Bools = is_chosen[states]
    return found


def _groups(states: Ints, counts: Ints, chosen: NDArray[np.bool_]) -> list[tuple[int, int, Ints]]:
    """The indices of `chosen` entries, grouped by state and count."""
    indices = np.flatnonzero(chosen)
    if not len(indices):
        return []
    keys = states[indices] << 16 | counts[indices]
    order = np.argsort(keys, kind="stable")
    keys, indices = keys[order], indices[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return [
        (int(keys[start]) >> 16, int(keys[start]) & 0xFFFF, indices[start:end])
        for start, end in zip(starts, [*starts[1:], len(keys)], strict=True)
    ]


def groups(sweep: Sweep) -> list[tuple[int, int, Ints]]:
    """The tokens inside, grouped by end state and number of characters."""
    return [
        (state, count, sweep.ids[indices])
        for state, count, indices in _groups(sweep.states, sweep.counts, np.ones(len(sweep.ids), bool))
    ]
