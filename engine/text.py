"""Text up to a marker: an Aho-Corasick automaton (Aho and Corasick, 1975) over UTF-8 bytes.

A raw value ends where its close marker is followed by the start of a legal next piece; anything else after
the marker is data. Each such end is a `Stop`. While the last bytes could still become a stop they are held
back: how many is the depth of the automaton's node.

    data ──"\\n"──▶ "\\n" ──"<"──▶ "\\n<" … ──▶ "\\n</parameter>\\n<parameter="   (accepts; label: which stop)
      ▲              │ anything else: the longest suffix that could still become a stop stays held back
      └──────────────┘
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from larksong.engine.dfa import DEAD, DFA, Counted, Row, utf8_text
from larksong.engine.product import Trimmed


@dataclass(frozen=True)
class Stop:
    """An end of the text: the bytes that commit it, and the terminals that they complete after the text.

    Where the grammar refuses those terminals, `refused_from` bytes of the marker are already refused.
    """

    marker: bytes
    terminals: tuple[str, ...]
    refused_from: int = 0


class StopText:
    """Valid UTF-8 text that ends at the first of `stops`, or anywhere between characters if `open_end`.

    `refused`: indices of stops that may not come. `before`: bytes that precede the text and may be the start
    of a stop (the line break after an opening tag, so that a value can be empty); they are not part of it.
    States: 0 between characters; the nodes; then the seven UTF-8 states inside a character.
    """

    def __init__(
        self, stops: Sequence[Stop], refused: frozenset[int], before: bytes = b"", open_end: bool = False
    ) -> None:
        self.stops = tuple(stops)
        self.edges: list[dict[int, int]] = [{}]
        self.held: list[bytes] = [b""]
        self.stop: dict[int, int] = {}
        self.refused: set[int] = set()
        self._open_end = open_end
        for index, stop in enumerate(stops):
            self._add(0, stop.marker, 0, index, index in refused)
        fail = self._failures()
        # After `before` the automaton stands inside a stop whose first bytes are not held back: a copy of
        # that node's branch, with nothing held.
        self.start = 0
        if before:
            self.start = self._node(b"")
            fail.append(0)
            for index, stop in enumerate(stops):
                if stop.marker.startswith(before):
                    size = len(before)
                    self._add(self.start, stop.marker[size:], size, index, index in refused)
            for node in range(len(fail), len(self.edges)):
                fail.append(self._find(before + self.held[node]))
            fail[self.start] = self._find(before)
        self.fail = fail
        self.nodes = len(self.edges)
        self.text = utf8_text()
        self._rows: dict[int, Row] = {}
        self._alive = self._nodes_with_a_stop()

    def _node(self, held: bytes) -> int:
        self.edges.append({})
        self.held.append(held)
        return len(self.edges) - 1

    def _add(self, node: int, word: bytes, skipped: int, index: int, refused: bool) -> None:
        for position, byte in enumerate(word):
            following = self.edges[node].get(byte)
            if following is None:
                following = self.edges[node][byte] = self._node(self.held[node] + bytes([byte]))
            node = following
            if refused and position + 1 + skipped == (self.stops[index].refused_from or len(word) + skipped):
                self.refused.add(node)
        self.stop[node] = index

    def _find(self, suffix: bytes) -> int:
        """The node of the longest suffix that is in the trie (for the copied branch)."""
        for begin in range(len(suffix)):
            node: int | None = 0
            for byte in suffix[begin:]:
                node = self.edges[node].get(byte) if node is not None else None
            if node:
                return node
        return 0

    def _failures(self) -> list[int]:
        fail = [0] * len(self.edges)
        queue = list(self.edges[0].values())
        for node in queue:
            for byte, child in self.edges[node].items():
                back = fail[node]
                while back and byte not in self.edges[back]:
                    back = fail[back]
                fail[child] = self.edges[back].get(byte, 0)
                queue.append(child)
        return fail

    def _nodes_with_a_stop(self) -> set[int]:
        """Nodes from which a stop that is not refused can be reached along the trie alone."""
        alive: set[int] = set()
        for node in range(self.nodes - 1, -1, -1):
            if node in self.refused:
                continue
            if node in self.stop or any(child in alive for child in self.edges[node].values()):
                alive.add(node)
        return alive

    def chain(self, node: int) -> list[int]:
        """The node and all shorter suffixes of it, longest first, without the root."""
        found = []
        while node and node < self.nodes:
            found.append(node)
            node = self.fail[node]
        return found

    def can_stop(self, state: int) -> bool:
        """Whether a stop can be reached although not one more character may be released as text."""
        return state >= self.nodes or state == 0 or state in self._alive

    def depth(self, state: int) -> int:
        """How many bytes are held back."""
        return len(self.held[state]) if state < self.nodes else 0

    def text_state(self, state: int) -> int:
        """The state of plain UTF-8 text that corresponds to `state`."""
        return state - self.nodes + 1 if state >= self.nodes else 0

    def accepts(self, state: int) -> bool:
        return state in self.stop or (self._open_end and state < self.nodes)

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            if state in self.stop:
                row = [DEAD] * 256
            else:
                plain = self.text.row(self.text_state(state))
                built = [following + self.nodes - 1 if following > 0 else following for following in plain]
                if state < self.nodes:
                    for node in reversed([*self.chain(state), 0]):
                        for byte, child in self.edges[node].items():
                            built[byte] = DEAD if child in self.refused else child
                row = built
            self._rows[state] = row
        return row


def counted_text(text: StopText, minimum: int, maximum: int | None) -> Counted:
    """`text` with `minimum` to `maximum` characters before its stop.

    Counts all characters; those that are held back are not part of the value yet.
    """
    cap = minimum + max((len(stop.marker) for stop in text.stops), default=0)

    def step(state: int, following: int, count: int) -> int:
        if not text.text_state(state) > 0:  # a character begins
            count += 1
        length = count - text.depth(following)
        if following in text.stop:
            return count if length >= minimum and (maximum is None or length <= maximum) else DEAD
        if maximum is None:
            return min(count, cap)
        return count if _can_go_on(text, following, count, maximum) else DEAD

    return Counted(text, step, minimum, maximum)


def _can_go_on(text: StopText, state: int, count: int, maximum: int) -> bool:
    if count - text.depth(state) > maximum:
        return False
    if text.can_stop(state):
        return True
    # What is held back leads to no stop: some of it must become text first.
    return any(count - text.depth(node) <= maximum for node in [*text.chain(text.fail[state]), 0])


class MatchedText(Trimmed[tuple[int, int]]):
    """`text` whose value, all before its stop, is accepted by `value`.

    A key is a state of the text and the state of `value` after what is certain to belong to the value: bytes
    that are held back have not been read by it yet.
    """

    def __init__(self, text: StopText, value: DFA, limit: int = 20_000) -> None:
        super().__init__(limit)
        self.dfa, self._value = text, value
        self._may_stop = any(node not in text.refused for node in text.stop)
        self.start = self._state(text.start, value.start)
        self._is_live(self.start)

    def base(self, state: int) -> int:
        """The state of the text without the condition on its value."""
        return self._keys[state][0]

    def _state(self, node: int, value: int) -> int:
        text = self.dfa
        if node in text.stop:
            return self._add((node, value), True, True) if self._value.accepts(value) else DEAD
        # The whole marker may come behind what is held back, if the value may end there.
        certain = False
        if self._may_stop and (node < text.nodes):
            held = self._read(value, text.held[node])
            certain = held != DEAD and self._value.accepts(held)
        return self._add((node, value), False, certain)

    def _following(self, state: int) -> Row:
        node, value = self._keys[state]
        held = self._held(node)
        row = [DEAD] * 256
        targets: dict[tuple[int, int], int] = {}
        for byte, following in enumerate(self.dfa.row(node)):
            if following == DEAD:
                continue
            known = held + bytes([byte])
            after = self._read(value, known[: len(known) - len(self._held(following))])
            if after != DEAD:
                key = (following, after)
                if key not in targets:
                    targets[key] = self._state(following, after)
                row[byte] = targets[key]
        return row

    def _held(self, node: int) -> bytes:
        return self.dfa.held[node] if node < self.dfa.nodes else b""

    def _read(self, state: int, data: bytes) -> int:
        for byte in data:
            if state == DEAD:
                break
            state = self._value.row(state)[byte]
        return state
