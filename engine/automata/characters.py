"""A byte automaton as one over characters: what grammars that are written in characters can say of it."""

from __future__ import annotations

from collections.abc import Iterator

from larksong.engine.automata.dfa import DEAD, DFA

Range = tuple[int, int]
"""First and last code point."""

# Bytes that lead so many continuation bytes, and the bits that they carry.
_LEADS = ((0xC2, 0xDF, 1, 0x1F), (0xE0, 0xEF, 2, 0x0F), (0xF0, 0xF4, 3, 0x07))


class CharacterAutomaton:
    """States reachable between characters, numbered from 0, the start.

    `edges[state]`: the states that follow, each with its ranges of code points in ascending order.
    `accepting`: where the text may end. Raises TooManyStates above `limit` states.
    """

    def __init__(self, dfa: DFA, *, limit: int = 2000) -> None:
        self._dfa = dfa
        self._known: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        numbers = {dfa.start: 0}
        pending = [dfa.start]
        self.edges: list[dict[int, list[Range]]] = []
        self.accepting: set[int] = set()
        for state in pending:
            if len(numbers) > limit:
                raise TooManyStates(f"more than {limit} states")
            if dfa.accepts(state):
                self.accepting.add(numbers[state])
            found: dict[int, list[Range]] = {}
            for low, high, target in self._row(state):
                if target not in numbers:
                    numbers[target] = len(numbers)
                    pending.append(target)
                found.setdefault(numbers[target], []).append((low, high))
            self.edges.append(found)

    def _row(self, state: int) -> Iterator[tuple[int, int, int]]:
        """Ranges of code points that lead somewhere, with the byte automaton's state."""
        row = self._dfa.row(state)
        runs = [(byte, byte, row[byte]) for byte in range(0x80) if row[byte] != DEAD]
        for first, last, missing, bits in _LEADS:
            for byte in range(first, last + 1):
                if row[byte] != DEAD:
                    base = (byte & bits) << 6 * missing
                    runs += [
                        (base + low, base + high, to) for low, high, to in self._below(row[byte], missing)
                    ]
        yield from _merged(runs)

    def _below(self, state: int, missing: int) -> list[tuple[int, int, int]]:
        """The same inside a character, with so many bytes to come; code points relative to its first."""
        known = self._known.get((state, missing))
        if known is None:
            row = self._dfa.row(state)
            size = 1 << 6 * (missing - 1)
            runs = []
            for byte in range(0x80, 0xC0):
                if row[byte] != DEAD:
                    base = (byte & 0x3F) * size
                    inner = [(0, 0, row[byte])] if missing == 1 else self._below(row[byte], missing - 1)
                    runs += [(base + low, base + high, target) for low, high, target in inner]
            known = self._known[state, missing] = list(_merged(runs))
        return known


class TooManyStates(ValueError):
    """An automaton too large to be written down."""


def _merged(runs: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    last: tuple[int, int, int] | None = None
    for low, high, target in runs:
        if last is not None and last[2] == target and last[1] + 1 == low:
            last = (last[0], high, target)
        else:
            if last is not None:
                yield last
            last = (low, high, target)
    if last is not None:
        yield last
