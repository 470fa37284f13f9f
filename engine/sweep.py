"""All tokens of a trie position through an automaton at once, one trie level after the other.

A level is a numpy array of trie nodes with the automaton's state before each; one indexing step takes the
whole level through the transition table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.dfa import DEAD, DFA, is_final
from larksong.engine.trie import Position

Ints = NDArray[np.int64]
_NONE = np.zeros(0, np.int64)
_FEW = 48  # nodes up to which following each by itself is faster than a numpy step for all


class Exit(NamedTuple):
    """A place where the terminal is complete: in `state`, after so many `characters`.

    `nodes`: trie nodes from which the rest of a token goes on; `ids`: tokens that end exactly here.
    """

    state: int
    characters: int
    nodes: Ints
    ids: Ints


class Sweep(NamedTuple):
    """`ids`: tokens that end inside the automaton, each with its end state and number of characters."""

    ids: Ints
    states: Ints
    counts: Ints
    exits: list[Exit]


class Sweeper:
    """Sweeps through one automaton; `begins(state)`: whether a byte read there begins a character."""

    def __init__(self, dfa: DFA, begins: Callable[[int], bool] = lambda state: False) -> None:
        self._dfa, self._begins_character = dfa, begins
        self._table = np.full((16, 256), DEAD - 1, np.int64)
        self._begins = np.zeros(16, np.int64)
        self._lock = threading.Lock()

    def sweep(self, state: int, position: Position) -> Sweep:
        """Read all tokens of `position` from `state` on."""
        trie, dfa, nodes = position.trie, self._dfa, position.nodes
        states, counts = np.full(len(nodes), state), np.zeros(len(nodes), np.int64)
        inside: list[tuple[Ints, Ints, Ints]] = []
        exits: list[Exit] = []
        while len(nodes) > _FEW:
            table, begins = self._rows(states)
            following = table[states, trie.byte[nodes]]
            for at, count, here in _groups(states, counts, following < 0):
                if dfa.accepts(at):
                    exits.append(Exit(at, count, nodes[here], _NONE))
            counts = counts + begins[states]
            alive = following >= 0
            nodes, states, counts = nodes[alive], following[alive], counts[alive]
            ended = [at for at in _distinct(states) if is_final(dfa, at)]
            if ended:
                complete = np.isin(states, ended)
                for at, count, here in _groups(states, counts, complete):
                    exits.append(Exit(at, count, trie.children(nodes[here])[0], trie.tokens(nodes[here])[0]))
                nodes, states, counts = nodes[~complete], states[~complete], counts[~complete]
            ids, owner = trie.tokens(nodes)
            inside.append((ids, states[owner], counts[owner]))
            nodes, owner = trie.children(nodes)
            states, counts = states[owner], counts[owner]
        inside.append(self._follow(position, nodes, states, counts, exits))
        ids, states, counts = (np.concatenate(arrays) for arrays in zip(*inside, strict=True))
        return Sweep(ids, states, counts, exits)

    def _follow(
        self, position: Position, nodes: Ints, states: Ints, counts: Ints, exits: list[Exit]
    ) -> tuple[Ints, Ints, Ints]:
        """The rest of a sweep, node by node: long tokens make many levels with hardly a node in them."""
        trie, dfa, begins = position.trie, self._dfa, self._begins_character
        left: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        found: list[tuple[int, int, int]] = []
        todo = list(zip(nodes.tolist(), states.tolist(), counts.tolist(), strict=True))
        for node, state, count in todo:
            following = dfa.row(state)[trie.byte[node]]
            if following < 0:
                if dfa.accepts(state):
                    left.setdefault((state, count), ([], []))[0].append(node)
                continue
            count += begins(state)
            children = range(int(trie.first_child[node]), int(trie.last_child[node]))
            ids = trie.ids[trie.first_token[node] : trie.last_token[node]].tolist()
            if is_final(dfa, following):
                group = left.setdefault((following, count), ([], []))
                group[0].extend(children)
                group[1].extend(ids)
            else:
                found += [(token, following, count) for token in ids]
                todo += [(child, following, count) for child in children]
        for (state, count), (onward, ended) in left.items():
            exits.append(Exit(state, count, np.array(onward, np.int64), np.array(ended, np.int64)))
        ended_inside = np.array(found, np.int64).reshape(-1, 3)
        return ended_inside[:, 0], ended_inside[:, 1], ended_inside[:, 2]

    def _rows(self, states: Ints) -> tuple[Ints, Ints]:
        """The transition table and what begins a character, complete for `states`.

        Another thread may replace them by larger ones at any time; those given out stay complete.
        """
        with self._lock:
            for state in _distinct(states):
                while state >= len(self._table):
                    self._table = np.vstack([self._table, np.full_like(self._table, DEAD - 1)])
                    self._begins = np.concatenate([self._begins, np.zeros_like(self._begins)])
                if self._table[state, 0] == DEAD - 1:
                    self._begins[state] = self._begins_character(state)
                    self._table[state] = self._dfa.row(state)
            return self._table, self._begins


def _distinct(states: Ints) -> list[int]:
    return np.flatnonzero(np.bincount(states)).tolist()


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
