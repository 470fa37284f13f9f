"""Deterministic automata over bytes: the protocol, and the small ones that are written by hand.

States are small ints, `-1` is dead. A row never leads to a state from which acceptance is impossible:
a mask made from such a row would let the model run into a dead end.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

DEAD = -1
_NOTHING = object()
Row = Sequence[int]
"""256 states; those that are kept are arrays, which the garbage collector need not go through"""


class DFA(Protocol):
    """A byte automaton; `row(state)[byte]` is the next state."""

    start: int

    def row(self, state: int) -> Row: ...

    def accepts(self, state: int) -> bool: ...


@runtime_checkable
class Searching(Protocol):
    """An automaton that knows states from which every text may go on for ever."""

    def endless(self, state: int) -> bool:
        """Whether `state` is one: it stands between two characters, and each leads to such a state again."""


def is_final(dfa: DFA, state: int) -> bool:
    """Accepting, and no byte can follow: the terminal is complete without a look at the next byte."""
    return dfa.accepts(state) and max(dfa.row(state)) == DEAD


class Table:
    """An automaton given by its edges: `edges[state]` maps bytes to states."""

    def __init__(self, edges: Sequence[Mapping[int, int]], accepting: Iterable[int]) -> None:
        self.start = 0
        self._rows = [[DEAD] * 256 for _ in edges]
        for row, mapping in zip(self._rows, edges, strict=True):
            for byte, following in mapping.items():
                row[byte] = following
        self._accepting = frozenset(accepting)

    def row(self, state: int) -> Row:
        return self._rows[state]

    def accepts(self, state: int) -> bool:
        return state in self._accepting


class Words:
    """A finite set of byte strings as a trie; each may carry a label.

    `prefix`: what stands before every word.
    `unique[state]` is the label when all strings below the state carry the same one, else None.
    """

    def __init__(self, words: Iterable[tuple[bytes, object]], prefix: bytes = b"") -> None:
        self.start = 0
        self.edges: list[dict[int, int]] = [{} for _ in range(len(prefix) + 1)]
        self.labels: dict[int, object] = {}
        self._rows: dict[int, Row] = {}
        root = len(prefix)
        for at, byte in enumerate(prefix):
            self.edges[at][byte] = at + 1
        unique: list[object | None] = [_NOTHING] * (root + 1)
        for word, label in words:
            state = root
            for byte in word:
                if unique[state] is not label:
                    unique[state] = label if unique[state] is _NOTHING else None
                following = self.edges[state].get(byte)
                if following is None:
                    following = self.edges[state][byte] = len(self.edges)
                    self.edges.append({})
                    unique.append(_NOTHING)
                state = following
            if unique[state] is not label:
                unique[state] = label if unique[state] is _NOTHING else None
            self.labels[state] = label
        self.unique = [unique[root]] * root + unique[root:]
        # An empty word would be complete before it is read.
        self.prefix_free = self.start not in self.labels and not any(self.edges[s] for s in self.labels)

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            built = [DEAD] * 256
            for byte, following in self.edges[state].items():
                built[byte] = following
            row = self._rows[state] = array("h" if len(self.edges) < 1 << 15 else "i", built)
        return row

    def accepts(self, state: int) -> bool:
        return state in self.labels


def utf8_edges(edges: list[dict[int, int]], base: int, first: int) -> None:
    """Add to state `base` the multi-byte UTF-8 sequences that lead back to it (Unicode 15, table 3-7).

    Uses the seven states `first` … `first + 6`; surrogates and overlong forms are left out.
    """
    one, two, three = first, first + 1, first + 2  # so many continuation bytes are still missing
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


def canonical_json_string() -> Table:
    """A JSON string in which only what must be escaped is, in the way that `json.dumps` does it."""
    escape, u1, u2, u3, u4 = range(3, 8)
    edges: list[dict[int, int]] = [{} for _ in range(9 + 7)]
    edges[0][ord('"')] = JSON_BODY
    edges[JSON_BODY].update({b: JSON_BODY for b in range(0x20, 0x80) if b not in b'"\\'})
    edges[JSON_BODY][ord('"')] = JSON_END
    edges[JSON_BODY][ord("\\")] = escape
    edges[escape].update(dict.fromkeys(b'"\\bfnrt', JSON_BODY))
    edges[escape][ord("u")] = u1
    edges[u1][ord("0")] = u2
    edges[u2][ord("0")] = u3
    edges[u3].update({ord("0"): u4, ord("1"): 8})
    edges[u4].update(dict.fromkeys(b"01234567bef", JSON_BODY))  # the others have short escapes
    edges[8].update(dict.fromkeys(b"0123456789abcdef", JSON_BODY))
    utf8_edges(edges, JSON_BODY, 9)
    return Table(edges, {JSON_END})


class StringsExcept:
    """Canonical JSON strings other than some: a trie of those beside the automaton of any string.

    States: the nodes of the trie, while the text could still become one of `excluded`; then those of the
    string, `nodes` higher.
    """

    def __init__(self, excluded: Iterable[bytes]) -> None:
        self.words = Words((text, None) for text in excluded)
        self.nodes = len(self.words.edges) if self.words.labels else 0
        self.start = 0
        self._string = canonical_json_string()
        self._rows: dict[int, Row] = {}
        self._states = [0] * self.nodes
        for node, edges in enumerate(self.words.edges):  # children have higher numbers
            for byte, child in edges.items():
                self._states[child] = self._string.row(self._states[node])[byte]

    def string_state(self, state: int) -> int:
        """The state of the string's automaton that corresponds to `state`."""
        return self._states[state] if state < self.nodes else state - self.nodes

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            string = self._string.row(self.string_state(state))
            built = [DEAD if following < 0 else following + self.nodes for following in string]
            if state < self.nodes:
                for byte, child in self.words.edges[state].items():
                    built[byte] = DEAD if child in self.words.labels else child
            row = self._rows[state] = array("i", built)
        return row

    def accepts(self, state: int) -> bool:
        return self._string.accepts(self.string_state(state))


class Quoted:
    """`"` inside `"`: puts quotes around an automaton whose texts have none that are not escaped."""

    def __init__(self, inside: DFA) -> None:
        self.start = 0
        self.inside = inside
        self._rows: dict[int, Row] = {}
        self._opening = [DEAD] * 256
        self._opening[ord('"')] = inside.start + 2

    def endless(self, state: int) -> bool:
        return state >= 2 and isinstance(self.inside, Searching) and self.inside.endless(state - 2)

    def row(self, state: int) -> Row:
        if state < 2:
            return self._opening if state == 0 else [DEAD] * 256
        row = self._rows.get(state)
        if row is None:
            built = [following + 2 if following >= 0 else DEAD for following in self.inside.row(state - 2)]
            if self.inside.accepts(state - 2):
                built[ord('"')] = 1
            row = self._rows[state] = array("i", built)
        return row

    def accepts(self, state: int) -> bool:
        return state == 1


class Counted:
    """An automaton with a bounded number of characters.

    `begins(state)`: whether a byte read in `state` begins a character. `within(state, count)`: what to count
    as read in `state` after `count` characters, or -1 where the bounds forbid to be there. `held(state)`: how
    many of the counted characters may still turn out to stand behind the end. States are made only for the
    (state, count) pairs that are met, so a large bound costs nothing.
    """

    def __init__(
        self,
        dfa: DFA,
        begins: Callable[[int], bool],
        within: Callable[[int, int], int],
        minimum: int,
        maximum: int | None,
        held: Callable[[int], int] = lambda state: 0,
    ) -> None:
        self.dfa, self.begins, self.within = dfa, begins, within
        self.minimum, self.maximum = minimum, maximum
        self._held = held
        self._ids: dict[tuple[int, int], int] = {}
        self._pairs: list[tuple[int, int]] = []
        self._rows: dict[int, Row] = {}
        self._lock = threading.Lock()
        self.start = self.state(dfa.start, 0)

    def state(self, base: int, count: int) -> int:
        """The number of a pair of a state of the automaton and a count."""
        pair = (base, count)
        state = self._ids.get(pair)
        if state is None:
            with self._lock:
                state = self._ids.get(pair)
                if state is None:
                    # Reads take no lock: the number is published when there is something behind it.
                    state = len(self._pairs)
                    self._pairs.append(pair)
                    self._ids[pair] = state
        return state

    def pair(self, state: int) -> tuple[int, int]:
        """The state of the automaton without its bounds, and the characters counted."""
        return self._pairs[state]

    def is_far(self, state: int, longest: int) -> bool:
        """Whether no token of at most `longest` characters can meet a bound: as if there were none."""
        base, count = self._pairs[state]
        if self.maximum is not None and self.maximum - count < longest:
            return False
        return count - self._held(base) >= self.minimum

    def accepts(self, state: int) -> bool:
        base, count = self._pairs[state]
        return self.dfa.accepts(base) and self.minimum <= count

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            base, count = self._pairs[state]
            count += self.begins(base)
            seen: dict[int, int] = {DEAD: DEAD}
            built = []
            for following in self.dfa.row(base):
                target = seen.get(following)
                if target is None:
                    after = self.within(following, count)
                    target = seen[following] = DEAD if after == DEAD else self.state(following, after)
                built.append(target)
            row = self._rows[state] = array("i", built)
        return row


def counted_json_string(minimum: int, maximum: int | None) -> Counted:
    """A JSON string of `minimum` to `maximum` characters (code points, as JSON Schema counts)."""

    def within(state: int, count: int) -> int:
        if state == JSON_END:
            count -= 1  # the closing quote is no character
            return count if minimum <= count and (maximum is None or count <= maximum) else DEAD
        if maximum is None:
            return min(count, minimum)
        return count if count <= maximum else DEAD

    return Counted(json_string(), lambda state: state == JSON_BODY, within, minimum, maximum)
