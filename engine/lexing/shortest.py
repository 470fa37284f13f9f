"""Shortest ways to the end of a terminal, from any state of its byte automaton.

Best-first search over states (A*: Hart, Nilsson and Raphael, 1968), one byte a step. Of two ways of the same
length the one with the more ordinary bytes wins, so the way from each state on a shortest way is its rest:
the cost of finishing falls with every byte that is written of it.

Nothing here depends on a grammar, so what is found is kept with the terminal's automaton.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from heapq import heappop, heappush
from operator import itemgetter
from typing import NamedTuple

from larksong.engine.automata.dfa import DEAD, DFA, Counted, Row, Words
from larksong.engine.automata.text_until import MatchedText
from larksong.engine.grammar.terminals import Readable, TextUntil
from larksong.engine.lexing.meter import ENTRY_BYTES, Meter
from larksong.engine.lexing.path import LONGEST
from larksong.engine.lexing.terminal_dfa import TerminalDFA

# The bytes by how ordinary they are: printable ASCII, line breaks, parts of other characters, controls.
_ORDER = (*range(0x20, 0x7F), 0x0A, *range(0x80, 0x100), *range(0x0A), *range(0x0B, 0x20), 0x7F)
_RANKS = bytes(_ORDER.index(byte) for byte in range(256))
_BYTES = bytes(_ORDER)
_LAST_FIRST = _ORDER[::-1]
_in_order = itemgetter(*_LAST_FIRST)
_FILL = 0x20
_MANY_STATES = 2048
# Measured with tracemalloc, rounded up: a way beside its bytes; a state with its row, and its distance.
_END_BYTES = 200
_STATE_BYTES = 3000


class End(NamedTuple):
    """A shortest way out: the bytes still to be written, and the accepting state that they lead to."""

    text: bytes
    state: int


class ShortestEnds:
    """The shortest ways out of one terminal, found when asked for and kept; `meter` counts what is kept."""

    def __init__(self, terminal: TerminalDFA, meter: Meter) -> None:
        self._terminal = terminal
        self._meter = meter
        self._ends: dict[int, tuple[End, ...]] = {}

    def from_state(self, state: int) -> tuple[End, ...]:
        """The shortest way out for each `TerminalDFA.outcome` that the terminal can still have.

        None where it is longer than `LONGEST` bytes.
        """
        found = self._ends.get(state)
        if found is None:
            found = self._ends.setdefault(state, tuple(self._find(state).values()))
            self._meter.bytes += ENTRY_BYTES + sum(_END_BYTES + len(end.text) for end in found)
        return found

    def farthest(self, state: int) -> int | None:
        """An upper bound on the bytes of a shortest way out from anywhere behind `state`, for any outcome.

        None where the automaton has too many states to know.
        """
        words = self._terminal.words
        return self._farthest if words is None else _height(words, state)

    def _find(self, state: int) -> dict[Hashable, End]:
        terminal = self._terminal
        if terminal.words is not None:
            return self._among_words(terminal.words, state)
        if isinstance(terminal.dfa, Counted):
            if terminal.dfa.minimum > LONGEST:
                return {}
            filled, fill = _fill(terminal.dfa, state)
            if fill:
                return {
                    terminal.outcome(end.state): End(fill + end.text, end.state)
                    for end in self.from_state(filled)
                }
        return self._search(state)

    def _among_words(self, words: Words, state: int) -> dict[Hashable, End]:
        found: dict[Hashable, End] = {}
        todo = [(b"", state)]
        for text, node in todo:
            if node in words.labels:
                outcome = self._terminal.outcome(node)
                best = found.get(outcome)
                if best is None or (len(text), text) < (len(best.text), best.text):
                    found[outcome] = End(text, node)
            todo += [(text + bytes((byte,)), child) for byte, child in words.edges[node].items()]
        return found

    def _search(self, state: int) -> dict[Hashable, End]:
        terminal = self._terminal
        found: dict[Hashable, End] = {}
        expected = _outcomes(terminal.definition)
        slack = max((len(stop.marker) for stop in terminal.text.stops), default=0) if terminal.text else 0
        limit: int | None = None
        heap: list[tuple[int, bytes, int]] = [(self._at_least(state), b"", state)]
        seen: set[int] = set()
        while heap:
            length, path, at = heappop(heap)
            if length > LONGEST or (limit is not None and length > limit):
                break
            if at in seen:
                continue
            seen.add(at)
            if terminal.accepts(at):
                found.setdefault(terminal.outcome(at), End(path.translate(_BYTES), at))
                if len(found) == expected:
                    break
                # A way to another stop cannot be longer than this one by more than that stop.
                limit = limit or length + slack
            for following, byte in _steps(terminal.row(at)):
                if following not in seen:
                    longer = path + _RANKS[byte : byte + 1]
                    heappush(heap, (len(longer) + self._at_least(following), longer, following))
        return found

    def _at_least(self, state: int) -> int:
        """A lower bound on the way out: without one a search goes through every text that is no longer."""
        terminal, dfa, text = self._terminal, self._terminal.dfa, self._terminal.text
        if dfa.accepts(state):
            return 0
        # In characters, as they are counted; the bytes are no fewer.
        closing = min((len(stop.marker.decode()) for stop in text.stops), default=0) if text else 1
        if isinstance(dfa, Counted):
            base, count = dfa.pair(state)
            return max(self._distances.get(base, 0), dfa.minimum + closing - count)
        if isinstance(dfa, MatchedText) and not (
            isinstance(terminal.definition, TextUntil) and terminal.definition.open_end
        ):
            # What is held back belongs to the value or to the stop.
            _, value = dfa.pair(state)
            return max(0, self._distances.get(value, 0) + closing - len(terminal.held(state)))
        return 0

    @cached_property
    def _distances(self) -> dict[int, int]:
        """The bytes from each state to the end of the automaton without bounds or stops."""
        dfa = self._terminal.dfa
        plain = dfa.dfa if isinstance(dfa, Counted) else dfa.value if isinstance(dfa, MatchedText) else dfa
        before = self._predecessors(plain) or {}
        return _distance_to([state for state in before if plain.accepts(state)], before)

    @cached_property
    def _farthest(self) -> int | None:
        terminal, dfa = self._terminal, self._terminal.dfa
        # With bounds a character is completed first (3 bytes), then blanks come up to the minimum.
        extra = dfa.minimum + 3 if isinstance(dfa, Counted) else 0
        base = dfa.dfa if isinstance(dfa, Counted) else dfa
        before = self._predecessors(base)
        if before is None:
            return None
        by_outcome: dict[Hashable, list[int]] = {}
        for state in before:
            if base.accepts(state):
                outcome = (
                    terminal.outcome(state)
                    if base is dfa
                    else terminal.text and terminal.text.stop.get(state)
                )
                by_outcome.setdefault(outcome, []).append(state)
        return extra + max(max(_distance_to(ends, before).values()) for ends in by_outcome.values())

    def _predecessors(self, dfa: DFA) -> dict[int, list[int]] | None:
        """The states that lead to each state; None where there are too many."""
        before: dict[int, list[int]] = {dfa.start: []}
        todo = [dfa.start]
        for state in todo:
            for following in set(dfa.row(state)) - {DEAD}:
                if following not in before:
                    before[following] = []
                    todo.append(following)
                before[following].append(state)
            if len(todo) > _MANY_STATES:
                break
        self._meter.bytes += _STATE_BYTES * len(before)
        return before if len(todo) <= _MANY_STATES else None


def _fill(dfa: Counted, state: int) -> tuple[int, bytes]:
    """Blanks up to the minimum length, where characters can be added one by one."""
    base, count = dfa.pair(state)
    missing = dfa.minimum - count
    if missing < 2 or dfa.dfa.row(base)[_FILL] != base:
        return state, b""
    return dfa.state(base, dfa.within(base, dfa.minimum)), bytes((_FILL,)) * missing


def _height(words: Words, state: int) -> int:
    height = -1
    level = [state]
    while level:
        height += 1
        level = [child for node in level for child in words.edges[node].values()]
    return height


def _outcomes(definition: Readable) -> int:
    """How many outcomes there can be."""
    if not isinstance(definition, TextUntil):
        return 1
    return len(definition.stops) - len(definition.refused) + definition.open_end


def _steps(row: Row) -> Iterable[tuple[int, int]]:
    """The states that can follow, each with the most ordinary byte that leads there."""
    steps = dict(zip(_in_order(row), _LAST_FIRST, strict=True))
    steps.pop(DEAD, None)
    return steps.items()


def _distance_to(ends: list[int], before: dict[int, list[int]]) -> dict[int, int]:
    """The length of the shortest way to one of `ends`, from each state that has one."""
    distance = dict.fromkeys(ends, 0)
    for state in (queue := list(ends)):
        for earlier in before[state]:
            if earlier not in distance:
                distance[earlier] = distance[state] + 1
                queue.append(earlier)
    return distance
