"""Shortest ways to the end of a terminal, from any state of its byte automaton.

Best-first search over states (A*: Hart, Nilsson and Raphael, 1968), one byte a step. Of two ways of the same
length the one with the more ordinary bytes wins, so the way from each state on a shortest way is its rest:
the cost of finishing falls with every byte that is written of it.

Nothing here depends on a grammar, so what is found is kept as long as the automaton lives.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from operator import itemgetter
from typing import NamedTuple
from weakref import WeakKeyDictionary

from larksong.engine.automata.dfa import DEAD, DFA, Counted, Words
from larksong.engine.automata.text_until import MatchedText
from larksong.engine.grammar.terminals import TextUntil
from larksong.engine.lexing.path import LONGEST
from larksong.engine.lexing.terminal_automaton import TerminalAutomaton

# The bytes by how ordinary they are: printable ASCII, line breaks, parts of other characters, controls.
_ORDER = (*range(0x20, 0x7F), 0x0A, *range(0x80, 0x100), *range(0x0A), *range(0x0B, 0x20), 0x7F)
_RANKS = bytes(_ORDER.index(byte) for byte in range(256))
_BYTES = bytes(_ORDER)
_LAST_FIRST = _ORDER[::-1]
_in_order = itemgetter(*_LAST_FIRST)
_FILL = 0x20
_MANY_STATES = 2048


class End(NamedTuple):
    """A shortest way out: the bytes still to be written, and the accepting state that they lead to."""

    text: bytes
    state: int


class _Known:
    """What is known of one automaton. It must not refer to it: the automaton would never be let go."""

    def __init__(self) -> None:
        self.ends: dict[int, tuple[End, ...]] = {}
        self.distances: dict[int, int] | None = None
        self.farthest: int | None = None
        self.farthest_is_known = False


_KNOWN: WeakKeyDictionary[TerminalAutomaton, _Known] = WeakKeyDictionary()


def _known(automaton: TerminalAutomaton) -> _Known:
    known = _KNOWN.get(automaton)
    return known if known is not None else _KNOWN.setdefault(automaton, _Known())


def shortest_ends(automaton: TerminalAutomaton, state: int) -> tuple[End, ...]:
    """The shortest way out of a terminal for each `TerminalAutomaton.outcome` that it can still have.

    None where it is longer than `LONGEST` bytes.
    """
    known = _known(automaton).ends
    found = known.get(state)
    if found is None:
        found = known.setdefault(state, tuple(_ends(automaton, state).values()))
    return found


def _ends(automaton: TerminalAutomaton, state: int) -> dict[Hashable, End]:
    if automaton.words is not None:
        return _word_ends(automaton, automaton.words, state)
    if isinstance(automaton.dfa, Counted):
        if automaton.dfa.minimum > LONGEST:
            return {}
        filled, fill = _fill(automaton.dfa, state)
        if fill:
            return {
                automaton.outcome(end.state): End(fill + end.text, end.state)
                for end in shortest_ends(automaton, filled)
            }
    return _search(automaton, state)


def _word_ends(automaton: TerminalAutomaton, words: Words, state: int) -> dict[Hashable, End]:
    found: dict[Hashable, End] = {}
    todo = [(b"", state)]
    for text, node in todo:
        if node in words.labels:
            outcome = automaton.outcome(node)
            best = found.get(outcome)
            if best is None or (len(text), text) < (len(best.text), best.text):
                found[outcome] = End(text, node)
        todo += [(text + bytes((byte,)), child) for byte, child in words.edges[node].items()]
    return found


def _fill(dfa: Counted, state: int) -> tuple[int, bytes]:
    """Blanks up to the minimum length, where characters can be added one by one."""
    base, count = dfa.pair(state)
    missing = dfa.minimum - count
    if missing < 2 or dfa.dfa.row(base)[_FILL] != base:
        return state, b""
    return dfa.state(base, dfa.within(base, dfa.minimum)), bytes((_FILL,)) * missing


def _search(automaton: TerminalAutomaton, state: int) -> dict[Hashable, End]:
    found: dict[Hashable, End] = {}
    expected = _outcomes(automaton)
    slack = max((len(stop.marker) for stop in automaton.text.stops), default=0) if automaton.text else 0
    limit: int | None = None
    heap: list[tuple[int, bytes, int]] = [(_at_least(automaton, state), b"", state)]
    seen: set[int] = set()
    while heap:
        length, path, at = heappop(heap)
        if length > LONGEST or (limit is not None and length > limit):
            break
        if at in seen:
            continue
        seen.add(at)
        if automaton.accepts(at):
            found.setdefault(automaton.outcome(at), End(path.translate(_BYTES), at))
            if len(found) == expected:
                break
            # A way to another stop cannot be longer than this one by more than that stop.
            limit = limit or length + slack
        for following, byte in _steps(automaton, at):
            if following not in seen:
                longer = path + _RANKS[byte : byte + 1]
                heappush(heap, (len(longer) + _at_least(automaton, following), longer, following))
    return found


def _outcomes(automaton: TerminalAutomaton) -> int:
    """How many outcomes there can be."""
    definition = automaton.definition
    if not isinstance(definition, TextUntil):
        return 1
    return len(definition.stops) - len(definition.refused) + definition.open_end


def _steps(automaton: TerminalAutomaton, state: int) -> Iterable[tuple[int, int]]:
    """The states that can follow, each with the most ordinary byte that leads there."""
    steps = dict(zip(_in_order(automaton.row(state)), _LAST_FIRST, strict=True))
    steps.pop(DEAD, None)
    return steps.items()


def _at_least(automaton: TerminalAutomaton, state: int) -> int:
    """A lower bound on the way out: without one a search goes through every text that is no longer."""
    dfa, text = automaton.dfa, automaton.text
    if dfa.accepts(state):
        return 0
    # In characters, as they are counted; the bytes are no fewer.
    closing = min((len(stop.marker.decode()) for stop in text.stops), default=0) if text else 1
    if isinstance(dfa, Counted):
        base, count = dfa.pair(state)
        return max(_distances(automaton, dfa.dfa).get(base, 0), dfa.minimum + closing - count)
    if isinstance(dfa, MatchedText) and not (
        isinstance(automaton.definition, TextUntil) and automaton.definition.open_end
    ):
        # What is held back belongs to the value or to the stop.
        _, value = dfa.pair(state)
        return max(0, _distances(automaton, dfa.value).get(value, 0) + closing - len(automaton.held(state)))
    return 0


def _distances(automaton: TerminalAutomaton, dfa: DFA) -> dict[int, int]:
    """The bytes from each state to the end of `dfa`, the automaton without bounds or stops."""
    known = _known(automaton)
    if known.distances is None:
        before = _predecessors(dfa) or {}
        known.distances = _distance_to([state for state in before if dfa.accepts(state)], before)
    return known.distances


def farthest(automaton: TerminalAutomaton, state: int) -> int | None:
    """An upper bound on the bytes of a shortest way out from anywhere behind `state`, whatever the outcome.

    None where the automaton has too many states to know.
    """
    if automaton.words is not None:
        return _height(automaton.words, state)
    known = _known(automaton)
    if not known.farthest_is_known:
        known.farthest, known.farthest_is_known = _farthest(automaton), True
    return known.farthest


def _height(words: Words, state: int) -> int:
    height = -1
    level = [state]
    while level:
        height += 1
        level = [child for node in level for child in words.edges[node].values()]
    return height


def _farthest(automaton: TerminalAutomaton) -> int | None:
    dfa = automaton.dfa
    # With bounds on the length a character is completed first (3 bytes), then blanks come up to the minimum.
    extra = dfa.minimum + 3 if isinstance(dfa, Counted) else 0
    base = dfa.dfa if isinstance(dfa, Counted) else dfa
    before = _predecessors(base)
    if before is None:
        return None
    by_outcome: dict[Hashable, list[int]] = {}
    for state in before:
        if base.accepts(state):
            outcome = (
                automaton.outcome(state) if base is dfa else automaton.text and automaton.text.stop.get(state)
            )
            by_outcome.setdefault(outcome, []).append(state)
    return extra + max(max(_distance_to(ends, before).values()) for ends in by_outcome.values())


def _predecessors(dfa: DFA) -> dict[int, list[int]] | None:
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
            return None
    return before


def _distance_to(ends: list[int], before: dict[int, list[int]]) -> dict[int, int]:
    """The length of the shortest way to one of `ends`, from each state that has one."""
    distance = dict.fromkeys(ends, 0)
    for state in (queue := list(ends)):
        for earlier in before[state]:
            if earlier not in distance:
                distance[earlier] = distance[state] + 1
                queue.append(earlier)
    return distance
