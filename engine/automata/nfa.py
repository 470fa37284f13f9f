"""From characters to bytes: Thompson's NFA, and the DFA that is made from it while it is used."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Hashable, Iterable, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from larksong.engine.automata.charset import ANY, CharSet, Range, json_sequences, utf8_sequences
from larksong.engine.automata.dfa import DEAD, Row
from larksong.engine.errors import UnsupportedPattern

Key = TypeVar("Key", bound=Hashable)


class LazyAutomaton(ABC, Generic[Key]):
    """States are numbered as they are discovered; a row is computed when first asked for, then kept.

    Reads take no lock: a state's number is published only in a row (or as `start`) that is complete.
    """

    start: int

    def __init__(self) -> None:
        self._ids: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._accepting: list[bool] = []
        self._rows: list[Row | None] = []
        self._lock = threading.Lock()

    def row(self, state: int) -> Row:
        row = self._rows[state]
        if row is None:
            with self._lock:
                row = self._rows[state]
                if row is None:
                    row = self._rows[state] = array("i", self._expand(state))
        return row

    def accepts(self, state: int) -> bool:
        return self._accepting[state]

    @abstractmethod
    def _expand(self, state: int) -> Row:
        """The row of `state`; called once for each, under the lock."""

    def _intern(self, key: Key, accepting: bool) -> int:
        state = self._ids.get(key)
        if state is None:
            state = self._ids[key] = len(self._keys)
            self._keys.append(key)
            self._accepting.append(accepting)
            self._rows.append(None)
        return state


@dataclass(frozen=True, eq=False, slots=True)
class ByteTrie:
    """The encodings of a set of characters: byte ranges, each with what follows (None: its last byte)."""

    arcs: tuple[tuple[int, int, ByteTrie | None], ...]


@lru_cache(maxsize=4096)
def byte_trie(chars: CharSet, json_string: bool) -> ByteTrie:
    """The minimal trie of `chars` in UTF-8 or, with `json_string`, as spelt inside a JSON string."""
    made: dict[tuple[tuple[int, int, ByteTrie | None], ...], ByteTrie] = {}

    def build(sequences: Iterable[tuple[Range, ...]]) -> ByteTrie:
        tails: dict[Range, list[tuple[Range, ...]]] = {}
        for first, *tail in sequences:
            tails.setdefault(first, []).append(tuple(tail))
        arcs: list[tuple[int, int, ByteTrie | None]] = []
        for (low, high), following in sorted(tails.items()):
            below = None if following == [()] else build(following)
            if arcs and arcs[-1][1] + 1 == low and arcs[-1][2] is below:
                arcs[-1] = arcs[-1][0], high, below
            else:
                arcs.append((low, high, below))
        return made.setdefault(tuple(arcs), ByteTrie(tuple(arcs)))

    return build(json_sequences(chars) if json_string else utf8_sequences(chars))


BEGIN, END = 1, 2
"""Guards of links, to be combined: passed only before the first byte, only after the last."""


class NFA:
    """Ken Thompson's construction ("Regular Expression Search Algorithm", CACM 11(6), 1968).

    A node has links that consume nothing and at most one move over a character. Moves are over sets of
    characters; the nodes inside a character, one after each byte but the last, are made when first needed,
    so that a repeated class costs one node a repetition.
    """

    def __init__(self, json_string: bool, limit: int) -> None:
        self.json_string = json_string
        self.links: list[list[tuple[int, int]]] = []
        self.moves: list[tuple[ByteTrie, int] | None] = []
        self._limit = limit
        self._inside: dict[tuple[ByteTrie, int], int] = {}
        self._end_guarded: list[int] = []
        self._may_fail = False

    def node(self) -> int:
        if len(self.moves) >= self._limit:
            raise UnsupportedPattern(f"more than {self._limit} NFA nodes, repetitions written out")
        return self._append(None)

    def link(self, source: int, target: int, guard: int = 0) -> None:
        self.links[source].append((target, guard))
        if guard:
            self._may_fail = True
            if guard == END:
                self._end_guarded.append(source)

    def move(self, source: int, chars: CharSet, target: int) -> None:
        self.moves[source] = byte_trie(chars, self.json_string), target
        self._may_fail |= not chars

    def reach(self, node: int, passing: int = 0) -> set[int]:
        """The nodes that are reached from `node` without a byte, over links without guards and `passing`."""
        seen = {node}
        pending = [node]
        while pending:
            for target, guard in self.links[pending.pop()]:
                if target not in seen and not guard & ~passing:
                    seen.add(target)
                    pending.append(target)
        return seen

    def arcs(self, node: int) -> list[tuple[int, int, int]]:
        """What one byte does at `node`: (first byte, last byte, next node)."""
        move = self.moves[node]
        if move is None:
            return []
        trie, target = move
        return [
            (low, high, target if below is None else self._inner(below, target))
            for low, high, below in trie.arcs
        ]

    def close(self, final: int) -> frozenset[int]:
        """Drops the moves that cannot lead to `final`, gives the nodes where a text may end."""
        if not self._may_fail:
            return frozenset({final})
        at_end = self._leading_to({final}, END, over_moves=False)
        ends = frozenset({final, *at_end.intersection(self._end_guarded)})
        live = self._leading_to(ends, 0, over_moves=True)
        self.moves = [move if move and move[0].arcs and move[1] in live else None for move in self.moves]
        return ends

    def _leading_to(self, goals: Set[int], passing: int, over_moves: bool) -> set[int]:
        """The nodes from which one of `goals` is reached."""
        before: list[list[int]] = [[] for _ in self.links]
        for source, (links, move) in enumerate(zip(self.links, self.moves, strict=True)):
            for target, guard in links:
                if not guard & ~passing:
                    before[target].append(source)
            if over_moves and move is not None and move[0].arcs:
                before[move[1]].append(source)
        found = set(goals)
        pending = list(goals)
        while pending:
            new = [source for source in before[pending.pop()] if source not in found]
            found.update(new)
            pending += new
        return found

    def farthest(self, ends: Iterable[int]) -> int:
        """How many moves it takes at most from a node that leads to one of `ends` to the nearest of them."""
        before: list[list[tuple[int, int]]] = [[] for _ in self.links]
        for source, (links, move) in enumerate(zip(self.links, self.moves, strict=True)):
            for target, guard in links:
                if not guard:
                    before[target].append((source, 0))
            if move is not None and move[0].arcs:
                before[move[1]].append((source, 1))
        distances = dict.fromkeys(ends, 0)
        pending = deque(distances)
        settled: set[int] = set()
        while pending:
            node = pending.popleft()
            if node in settled:
                continue
            settled.add(node)
            for source, step in before[node]:
                distance = distances[node] + step
                if source not in distances or distance < distances[source]:
                    distances[source] = distance
                    (pending.append if step else pending.appendleft)(source)
        return max(distances.values(), default=0)

    def _inner(self, trie: ByteTrie, target: int) -> int:
        node = self._inside.get((trie, target))
        if node is None:
            node = self._inside[trie, target] = self._append((trie, target))
        return node

    def _append(self, move: tuple[ByteTrie, int] | None) -> int:
        self.links.append([])
        self.moves.append(move)
        return len(self.moves) - 1


class LazyDFA(LazyAutomaton[tuple[frozenset[int], bool]]):
    """The subset construction (Rabin and Scott, 1959) of `nfa`, done as far as it is asked for.

    A state is a set of nodes, with the flag whether it accepts: the state before the first byte passes
    guards that no other passes. All members lead to `final`, so rows are trimmed; only `start` is a
    state without an end, if the language is empty. Where every further text is accepted, the other members
    are dropped: nothing depends on them any more.
    """

    def __init__(self, nfa: NFA, start: int, final: int) -> None:
        super().__init__()
        self._nfa = nfa
        self._ends = nfa.close(final)
        self.farthest = nfa.farthest(self._ends) + 1
        """so many characters are enough to complete a text from any state, that of the state included"""
        self._members: dict[int, frozenset[int]] = {}
        self._arcs: dict[int, list[tuple[int, int, int]]] = {}
        self._after: dict[tuple[int, ...], int] = {(): DEAD}
        every = byte_trie(ANY, nfa.json_string)
        loops = [node for node, move in enumerate(nfa.moves) if move and move[1] == node and move[0] is every]
        self._loops = frozenset(loops)
        self._universal = frozenset(node for node in loops if final in nfa.reach(node))
        members = self._select(nfa.reach(start, BEGIN))
        self.start = self._state(members, final in nfa.reach(start, BEGIN | END))

    def endless(self, state: int) -> bool:
        """Whether every text may go on from `state`, between two characters, for ever: a search goes on."""
        return not self._loops.isdisjoint(self._keys[state][0])

    def _expand(self, state: int) -> Row:
        members, _ = self._keys[state]
        arcs = [arc for node in members for arc in self._arcs_of(node)]
        cuts = sorted({low for low, _, _ in arcs} | {high + 1 for _, high, _ in arcs})
        place = {cut: index for index, cut in enumerate(cuts)}
        targets: list[list[int]] = [[] for _ in cuts]
        for low, high, target in arcs:
            for index in range(place[low], place[high + 1]):
                targets[index].append(target)
        row = [DEAD] * 256
        for index, reached in enumerate(map(tuple, targets[:-1])):
            following = self._after.get(reached)
            if following is None:
                union = frozenset[int]().union(*map(self._members_of, reached))
                following = self._after[reached] = self._state(union, not self._ends.isdisjoint(union))
            row[cuts[index] : cuts[index + 1]] = [following] * (cuts[index + 1] - cuts[index])
        return row

    def _state(self, members: frozenset[int], accepting: bool) -> int:
        if not self._universal.isdisjoint(members):
            members = self._members_of(min(self._universal))
        return self._intern((members, accepting), accepting)

    def _members_of(self, node: int) -> frozenset[int]:
        members = self._members.get(node)
        if members is None:
            members = self._members[node] = self._select(self._nfa.reach(node))
        return members

    def _select(self, nodes: set[int]) -> frozenset[int]:
        """Those of `nodes` on which the language depends."""
        moves = self._nfa.moves
        return frozenset(node for node in nodes if moves[node] is not None or node in self._ends)

    def _arcs_of(self, node: int) -> list[tuple[int, int, int]]:
        arcs = self._arcs.get(node)
        if arcs is None:
            arcs = self._arcs[node] = self._nfa.arcs(node)
        return arcs
