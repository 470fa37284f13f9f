"""Deterministic automata over bytes: the protocol, and the small ones that are written by hand.

States are small ints, `-1` is dead. A row never leads to a state from which acceptance is impossible:
a mask made from such a row would let the model run into a dead end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

DEAD = -1
Row = Sequence[int]


class DFA(Protocol):
    """A byte automaton; `row(state)[byte]` is the next state."""

    start: int

    def row(self, state: int) -> Row: ...

    def accepts(self, state: int) -> bool: ...


def is_final(dfa: DFA, state: int) -> bool:
    """Accepting, and no byte can follow: the terminal is complete without a look at the next byte."""
    return dfa.accepts(state) and max(dfa.row(state)) == DEAD


def row_of(edges: Mapping[int, int]) -> Row:
    """The row of a state whose edges are `edges`."""
    row = [DEAD] * 256
    for byte, following in edges.items():
        row[byte] = following
    return row


class Table:
    """An automaton given by its edges: `edges[state]` maps bytes to states."""

    def __init__(self, edges: Sequence[Mapping[int, int]], accepting: Iterable[int]) -> None:
        self.start = 0
        self._edges = edges
        self._rows: dict[int, Row] = {}
        self._accepting = frozenset(accepting)

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            row = self._rows[state] = row_of(self._edges[state])
        return row

    def accepts(self, state: int) -> bool:
        return state in self._accepting


class Words:
    """A finite set of byte strings as a trie; each may carry a label.

    `unique[state]` is the label when all strings below the state carry the same one, else None.
    """

    def __init__(self, words: Iterable[tuple[bytes, object]]) -> None:
        self.start = 0
        self.edges: list[dict[int, int]] = [{}]
        self.labels: dict[int, object] = {}
        self.unique: list[object | None] = []
        self._rows: dict[int, Row] = {}
        below: list[set[object]] = [set()]
        for word, label in words:
            state = 0
            below[0].add(label)
            for byte in word:
                following = self.edges[state].get(byte)
                if following is None:
                    following = self.edges[state][byte] = len(self.edges)
                    self.edges.append({})
                    below.append(set())
                state = following
                below[state].add(label)
            self.labels[state] = label
        self.unique = [next(iter(labels)) if len(labels) == 1 else None for labels in below]
        self.prefix_free = not any(self.edges[state] for state in self.labels)

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            row = self._rows[state] = row_of(self.edges[state])
        return row

    def accepts(self, state: int) -> bool:
        return state in self.labels


def utf8_edges(edges: list[dict[int, int]], base: int, first: int) -> None:
    """Add to state `base` the multi-byte UTF-8 sequences that lead back to it (Unicode 15, table 3-7).

    Uses the seven states `first` … `first + 6`; surrogates and overlong forms are left out.
    """
    one, two, three = first, first + 1, first + 2  # so many continuation bytes are still owed
    after_e0, after_ed, after_f0, after_f4 = range(first + 3, first + 7)
    lead = edges[base]
    lead.update(dict.fromkeys(range(0xC2, 0xE0), one))
    lead.update(dict.fromkeys(range(0xE1, 0xF0), two))
    lead.update(dict.fromkeys(range(0xF1, 0xF4), three))
    lead.update({0xE0: after_e0, 0xED: after_ed, 0xF0: after_f0, 0xF4: after_f4})
    for byte in range(0x80, 0xC0):
        edges[one][byte] = base
        edges[two][byte] = one
        edges[three][byte] = two
        edges[after_e0 if byte >= 0xA0 else after_ed][byte] = one
        edges[after_f0 if byte >= 0x90 else after_f4][byte] = two


def utf8_text() -> Table:
    """Any valid UTF-8 text. State 0: between characters."""
    edges: list[dict[int, int]] = [{} for _ in range(8)]
    edges[0].update(dict.fromkeys(range(0x80), 0))
    utf8_edges(edges, 0, 1)
    return Table(edges, {0})


JSON_BODY, JSON_END = 1, 2


def json_string() -> Table:
    """A JSON string with its quotes (RFC 8259), without lone surrogates in `\\u` escapes.

    State 1 (`JSON_BODY`): between two characters. State 2 (`JSON_END`): after the closing quote.
    """
    hexadecimal = b"0123456789abcdefABCDEF"
    escape, u1, u2, u3, u4, after_d, high3, high4, low0, low1, low2, low3 = range(3, 15)
    low4, low5 = 15, 16
    edges: list[dict[int, int]] = [{} for _ in range(17 + 7)]
    edges[0][ord('"')] = JSON_BODY
    edges[JSON_BODY].update({b: JSON_BODY for b in range(0x20, 0x80) if b not in b'"\\'})
    edges[JSON_BODY][ord('"')] = JSON_END
    edges[JSON_BODY][ord("\\")] = escape
    edges[escape].update(dict.fromkeys(b'"\\/bfnrt', JSON_BODY))
    edges[escape][ord("u")] = u1
    edges[u1].update({b: after_d if b in b"dD" else u2 for b in hexadecimal})
    edges[u2].update(dict.fromkeys(hexadecimal, u3))
    edges[u3].update(dict.fromkeys(hexadecimal, u4))
    edges[u4].update(dict.fromkeys(hexadecimal, JSON_BODY))
    # \uD800-\uDBFF is half a character: \uDC00-\uDFFF must follow, and may not come alone.
    edges[after_d].update(dict.fromkeys(b"01234567", u3))
    edges[after_d].update(dict.fromkeys(b"89abAB", high3))
    edges[high3].update(dict.fromkeys(hexadecimal, high4))
    edges[high4].update(dict.fromkeys(hexadecimal, low0))
    edges[low0][ord("\\")] = low1
    edges[low1][ord("u")] = low2
    edges[low2].update(dict.fromkeys(b"dD", low3))
    edges[low3].update(dict.fromkeys(b"cdefCDEF", low4))
    edges[low4].update(dict.fromkeys(hexadecimal, low5))
    edges[low5].update(dict.fromkeys(hexadecimal, JSON_BODY))
    utf8_edges(edges, JSON_BODY, 17)
    return Table(edges, {JSON_END})


class Quoted:
    """`"` inside `"`: puts quotes around an automaton whose texts have none that are not escaped."""

    def __init__(self, inside: DFA) -> None:
        self.start = 0
        self._inside = inside
        self._rows: dict[int, Row] = {}
        self._opening = [DEAD] * 256
        self._opening[ord('"')] = inside.start + 2

    def row(self, state: int) -> Row:
        if state < 2:
            return self._opening if state == 0 else [DEAD] * 256
        row = self._rows.get(state)
        if row is None:
            built = [following + 2 if following >= 0 else DEAD for following in self._inside.row(state - 2)]
            if self._inside.accepts(state - 2):
                built[ord('"')] = 1
            row = self._rows[state] = built
        return row

    def accepts(self, state: int) -> bool:
        return state == 1


class Except:
    """The texts of `dfa` other than some words.

    States are pairs: of `dfa`, and of the trie of the words, dead as soon as the text is none of them. It is
    for automata in which every state leads to endlessly many texts, so that nothing has to be trimmed.
    """

    def __init__(self, dfa: DFA, words: Iterable[bytes]) -> None:
        self.dfa = dfa
        self.words = Words([(word, None) for word in words])
        self._ids: dict[tuple[int, int], int] = {}
        self._pairs: list[tuple[int, int]] = []
        self._rows: dict[int, Row] = {}
        self._lock = threading.Lock()
        self.start = self._state(dfa.start, self.words.start)

    def base(self, state: int) -> int:
        """The state of the automaton without exceptions."""
        return self._pairs[state][0]

    def node(self, state: int) -> int:
        """The node in the trie of the words, or dead."""
        return self._pairs[state][1]

    def accepts(self, state: int) -> bool:
        base, node = self._pairs[state]
        return self.dfa.accepts(base) and node not in self.words.labels

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            base, node = self._pairs[state]
            inside = self.dfa.row(base)
            edges = self.words.edges[node] if node != DEAD else {}
            plain = {DEAD: DEAD, **{to: self._state(to, DEAD) for to in set(inside) - {DEAD}}}
            built = [plain[to] for to in inside]
            for byte, child in edges.items():
                # The last byte of a word ends it, and with it the text.
                built[byte] = DEAD if child in self.words.labels else self._state(inside[byte], child)
            row = self._rows[state] = built
        return row

    def _state(self, base: int, node: int) -> int:
        pair = (base, node)
        state = self._ids.get(pair)
        if state is None:
            with self._lock:
                state = self._ids.get(pair)
                if state is None:
                    state = len(self._pairs)
                    self._pairs.append(pair)
                    self._ids[pair] = state
        return state


Step = Callable[[int, int, int], int]


class Counted:
    """An automaton with a bounded number of characters.

    `step(state, following, count)` gives the count after an edge, or -1 where the bounds forbid it. States
    are made only for the (state, count) pairs that are met, so a large bound costs nothing.
    """

    def __init__(self, dfa: DFA, step: Step, minimum: int, maximum: int | None) -> None:
        self.dfa, self.minimum, self.maximum = dfa, minimum, maximum
        self._step = step
        self._ids: dict[tuple[int, int], int] = {}
        self._pairs: list[tuple[int, int]] = []
        self._rows: dict[int, Row] = {}
        self._lock = threading.Lock()
        self.start = self._state(dfa.start, 0)

    def _state(self, base: int, count: int) -> int:
        pair = (base, count)
        state = self._ids.get(pair)
        if state is None:
            with self._lock:
                state = self._ids.get(pair)
                if state is None:
                    state = self._ids[pair] = len(self._pairs)
                    self._pairs.append(pair)
        return state

    def base(self, state: int) -> int:
        """The state of the automaton without its bounds."""
        return self._pairs[state][0]

    def count(self, state: int) -> int:
        """The characters so far."""
        return self._pairs[state][1]

    def is_far(self, state: int, longest: int) -> bool:
        """Whether no token of at most `longest` characters can meet a bound: as if there were none."""
        count = self._pairs[state][1]
        if self.maximum is not None and self.maximum - count < longest:
            return False
        return count >= self.minimum

    def accepts(self, state: int) -> bool:
        return self.dfa.accepts(self._pairs[state][0])

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            base, count = self._pairs[state]
            seen: dict[int, int] = {DEAD: DEAD}
            built = []
            for following in self.dfa.row(base):
                target = seen.get(following)
                if target is None:
                    after = self._step(base, following, count)
                    target = seen[following] = DEAD if after == DEAD else self._state(following, after)
                built.append(target)
            row = self._rows[state] = built
        return row


def counted_json_string(minimum: int, maximum: int | None) -> Counted:
    """A JSON string of `minimum` to `maximum` characters (code points, as JSON Schema counts)."""

    def step(state: int, following: int, count: int) -> int:
        if state != JSON_BODY:
            return count
        if following == JSON_END:
            return count if count >= minimum else DEAD
        if maximum is None:
            return min(count + 1, minimum)
        return count + 1 if count < maximum else DEAD

    return Counted(json_string(), step, minimum, maximum)
