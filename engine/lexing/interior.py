"""Which parts of a vocabulary's trie stay inside an automaton whatever their tokens are.

Most states of most terminals loop: a letter after a letter of a word, any character in any text. From such a
state a whole branch of the trie stays inside if it has no other bytes than those of the loop. A state of a
bounded repetition leads to the next one instead; then the branch must not be deeper than the repetition goes
on. So each node of the trie knows the bytes below it and how deep it is, and each state the bytes that it
goes on with, by depth. Both are sets in two 64-bit words:

    bits 0 … 94 the printable ASCII characters, 95 ASCII controls, 96 the blanks and line breaks beyond ASCII
    (which `.` and `\\S` of regular expressions leave out), 97 all other characters,
    98 bytes that are no character (in a branch alone: no state goes on with them)

A branch's bytes are read as characters from its root on, so a state inside a character goes on with nothing.

llguidance keeps such sets of tokens for a few regular expressions, and calls them "slices".
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from larksong.engine.automata.charset import CharSet, Range, utf8_sequences
from larksong.engine.automata.dfa import DEAD, DFA, Row, Searching, is_final

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Sets = NDArray[np.uint64]
"""two rows: the lower and the higher words"""

_CONTROL, _BLANK, _OTHER, _BROKEN = 95, 96, 97, 98
_CONTROLS = (*range(0x20), 0x7F)
_BLANKS = CharSet.of(
    *((code, code) for code in (0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF)),
    (0x2000, 0x200A),
)
_WIDE = {
    _BLANK: tuple(utf8_sequences(_BLANKS)),
    _OTHER: tuple(utf8_sequences(~_BLANKS & CharSet.of((0x80, 0x10FFFF)))),
}
"""the characters beyond ASCII by their bits, as sequences of byte ranges"""
_WORD = (1 << 64) - 1
_ALL = (1 << 128) - 1
_DEPTHS = 16
"""depths that are told apart; the last stands for all deeper branches too"""


def _words(bits: int) -> tuple[int, int]:
    return bits & _WORD, bits >> 64


def _reader() -> tuple[Ints, Sets]:
    """An automaton over bytes that says which bits a byte adds: the next state, and a set, by state and byte.

    State 0 is between characters, state 1 after bytes that are no character.
    """
    Rest = frozenset[tuple[int, tuple[Range, ...]]]
    states: dict[Rest, int] = {frozenset(): 0, frozenset({(_BROKEN, ())}): 1}
    after: list[list[int]] = []
    bits: list[list[tuple[int, int]]] = []
    wide = frozenset((bit, sequence) for bit, sequences in _WIDE.items() for sequence in sequences)
    for number, rest in enumerate(states_of := list(states)):
        after.append([])
        bits.append([])
        for byte in range(256):
            if number == 0 and byte < 0x80:
                after[-1].append(0)
                bits[-1].append(_words(1 << (byte - 0x20 if 0x20 <= byte < 0x7F else _CONTROL)))
                continue
            fitting = [
                (bit, sequence[1:])
                for bit, sequence in (rest or wide)
                if sequence and sequence[0][0] <= byte <= sequence[0][1]
            ]
            if not fitting:
                after[-1].append(1)
                bits[-1].append(_words(1 << _BROKEN))
            elif not fitting[0][1]:  # the last byte of a character
                after[-1].append(0)
                bits[-1].append(_words(1 << fitting[0][0]))
            else:
                # A token may end inside a character: there is always another one than a blank that it begins.
                state = states.setdefault(frozenset(fitting), len(states))
                if state == len(states_of):
                    states_of.append(frozenset(fitting))
                after[-1].append(state)
                bits[-1].append(_words(1 << _OTHER))
    return np.array(after), np.array(bits, np.uint64)


def branches(byte: NDArray[np.uint8], parents: Ints, levels: Sequence[int]) -> tuple[Sets, NDArray[np.uint8]]:
    """For each node of a trie the set of what is below it, and how deep that is (255: or deeper).

    `parents`: of all nodes but the root, in ascending order; `levels`: the first node of each level, and
    the number of nodes. Used once a vocabulary.
    """
    after, bits = _reader()
    states = np.zeros(len(byte), np.int64)
    own = np.zeros((len(byte), 2), np.uint64)
    for start, end in pairwise(levels[1:]):
        before, read = states[parents[start - 1 : end - 1]], byte[start:end]
        states[start:end] = after[before, read]
        own[start:end] = bits[before, read]
    below = np.zeros((len(byte), 2), np.uint64)
    depths = np.zeros(len(byte), np.uint8)
    for start, end in reversed(list(pairwise(levels[1:]))):
        above = parents[start - 1 : end - 1]
        begins = np.flatnonzero(np.diff(above, prepend=-1))
        below[above[begins]] = np.bitwise_or.reduceat(own[start:end] | below[start:end], begins, axis=0)
        deepest = np.maximum.reduceat(depths[start:end], begins)
        depths[above[begins]] = np.minimum(deepest, 254) + 1
    below[states != 0] |= np.array(_words(1 << _BROKEN), np.uint64)
    return np.ascontiguousarray(below.T), depths


class Interior:
    """What the states of one automaton go on with."""

    def __init__(self, dfa: DFA) -> None:
        self._dfa = dfa
        self._endless = dfa.endless if isinstance(dfa, Searching) else None
        self._others = np.zeros((2, 16 * _DEPTHS), np.uint64)
        self._known = np.zeros(16, bool)
        self._steps: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def holds(self, states: Ints, distinct: Iterable[int], below: Sets, depths: NDArray[np.uint8]) -> Bools:
        """Which branches stay inside: each is read from one of `states`, which are `distinct`."""
        others = self._complete(distinct)
        place = states * _DEPTHS + np.minimum(depths, _DEPTHS - 1)
        held: Bools = (below[0] & others[0].take(place) | below[1] & others[1].take(place)) == 0
        return held

    def _complete(self, states: Iterable[int]) -> Sets:
        """The bytes with which a branch may not go on, by state and depth, known for `states`.

        Another thread may replace the array by a larger one; one that was given out stays complete.
        """
        with self._lock:
            for state in states:
                while state >= len(self._known):
                    self._others = np.concatenate([self._others, np.zeros_like(self._others)], axis=1)
                    self._known = np.concatenate([self._known, np.zeros_like(self._known)])
                if not self._known[state]:
                    others = np.array([_words(_ALL ^ bits) for bits in self._of(state)], np.uint64)
                    self._others[:, state * _DEPTHS : (state + 1) * _DEPTHS] = others.T
                    self._known[state] = True
            return self._others

    def _of(self, state: int) -> list[int]:
        """The sets of `state` by depth: what all states on the way of most bytes have in common."""
        if self._endless is not None and self._endless(state):
            return [_ALL] + [self._of_any_text(state, self._endless)] * (_DEPTHS - 1)
        bits = _ALL
        found = [_ALL]
        seen: list[int] = []
        while bits and len(found) < _DEPTHS:
            if state in seen:
                return found + [bits] * (_DEPTHS - len(found))
            seen.append(state)
            state, read = self._step(state)
            bits &= read
            found.append(bits)
        found = found[: _DEPTHS - 1]  # no loop: nothing is known of deeper branches
        return found + [0] * (_DEPTHS - len(found))

    def _of_any_text(self, state: int, endless: Callable[[int], bool]) -> int:
        """The set of a state from which every text goes on: all characters that are no escapes."""
        row = self._dfa.row(state)
        goes_on = {target: target != DEAD and endless(target) for target in set(row)}
        bits = sum(1 << place for place, target in enumerate(row[0x20:0x7F]) if goes_on[target])
        if all(goes_on[row[byte]] for byte in _CONTROLS):
            bits |= 1 << _CONTROL
        return bits | 1 << _BLANK | 1 << _OTHER

    def _step(self, state: int) -> tuple[int, int]:
        """Where most bytes lead from `state` without an end of the terminal, and the set of those that do."""
        known = self._steps.get(state)
        if known is None:
            known = self._steps[state] = self._find_step(state)
        return known

    def _find_step(self, state: int) -> tuple[int, int]:
        row = self._dfa.row(state)
        printable = row[0x20:0x7F]
        for target, _ in Counter(printable).most_common():
            if target != DEAD and not is_final(self._dfa, target):
                break
        else:
            return DEAD, 0
        bits = sum(1 << place for place, following in enumerate(printable) if following == target)
        if all(row[byte] == target for byte in _CONTROLS):
            bits |= 1 << _CONTROL
        if target == state:  # beyond ASCII only loops are worth the rows of all states inside a character
            for bit, sequences in _WIDE.items():
                if self._all_lead_to(target, row, sequences):
                    bits |= 1 << bit
        return target, bits

    def _all_lead_to(self, target: int, row: Row, sequences: Iterable[Sequence[Range]]) -> bool:
        """Whether from the state of `row` each of some characters leads to `target`."""
        for (low, high), *tails in sequences:
            states = set(row[low : high + 1])
            for first, last in tails:
                if DEAD in states or len(states) > 1:
                    return False
                states = set(self._dfa.row(states.pop())[first : last + 1])
            if states != {target}:
                return False
        return True
