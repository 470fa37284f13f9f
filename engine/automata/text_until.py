"""Text up to a marker: an Aho-Corasick automaton (Aho and Corasick, 1975) over UTF-8 bytes.

A raw value ends where its close marker is followed by the start of a legal next piece; anything else after
the marker is data. Each such end is a `Stop`. While the last bytes could still become a stop they are held
back: how many is the depth of the automaton's node.

    data ──"\\n"──▶ "\\n" ──"<"──▶ "\\n<" … ──▶ "\\n</parameter>\\n<parameter="   (accepts; label: which stop)
      ▲              │ anything else: the longest suffix that could still become a stop stays held back
      └──────────────┘
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from larksong.engine.automata.dfa import DEAD, DFA, Counted, Row, utf8_text
from larksong.engine.automata.product import Trimmed


@dataclass(frozen=True)
class Stop:
    """An end of the text: the bytes that commit it, and the terminals that they complete after the text.

    Where the grammar refuses those terminals, `refused_from` bytes of the marker are already refused.
    `label`: what the last of them turned out to be. `initial`: it ends the text only where nothing of the
    text has come yet (a marker that means something at the beginning of a turn and nothing later).
    """

    marker: bytes
    terminals: tuple[str, ...]
    refused_from: int = 0
    label: Hashable = None
    initial: bool = False

    def shifts(self) -> Iterator[tuple[str, Hashable]]:
        """The terminals that it completes, each with its label."""
        last = len(self.terminals) - 1
        for at, name in enumerate(self.terminals):
            yield name, self.label if at == last else None


class AhoCorasick:
    """Valid UTF-8 text that ends at the first of `stops`.

    `refused`: indices of stops that may not come. `before`: bytes that precede the text and may be the start
    of a stop (the line break after an opening tag, so that a value can be empty); they are not part of it.
    No stop may contain another. `open_end`: a text of at least one character, which may also end anywhere
    between characters; only an initial stop lets it be empty.
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
            if not stop.initial:
                self._add(0, stop.marker, 0, index, index in refused)
        fail = self._failures()
        # After `before` the automaton stands inside a stop whose first bytes are not held back: a copy of
        # that node's branch, with nothing held. And a text that must not be empty begins in a copy of the
        # root in which all stops are refused.
        self.start = 0
        if before or open_end:
            self.start = self._node(b"")
            fail.append(0)
            for index, stop in enumerate(stops):
                if stop.marker.startswith(before):
                    size = len(before)
                    barred = open_end and not stop.initial
                    self._add(self.start, stop.marker[size:], size, index, barred or index in refused)
            for node in range(len(fail), len(self.edges)):
                fail.append(self._find(before + self.held[node]))
            fail[self.start] = self._find(before)
        self.fail = fail
        self.nodes = len(self.edges)
        self.text = utf8_text()
        self._rows: dict[int, Row] = {}
        # Where a marker's character is not complete yet, other text can only go on with the same character.
        self._text_states = [self._state_of_text(held) for held in self.held]

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
            early = self.stops[index].refused_from or skipped + len(word)
            if refused and position + 1 + skipped >= early:
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

    def _state_of_text(self, data: bytes) -> int:
        state = self.text.start
        for byte in data:
            state = self.text.row(state)[byte]
        return state

    def chain(self, node: int) -> list[int]:
        """The nodes of all suffixes of what is held back, longest first; between characters the root too."""
        found = []
        while node and node < self.nodes:
            found.append(node)
            node = self.fail[node]
        if node == 0 and (not found or self._text_states[found[0]] == 0):
            found.append(0)
        return found

    def paths(self, node: int) -> Iterator[bytes]:
        """The bytes that lead from `node` to a stop that is not refused, without a way back."""
        for byte, child in self.edges[node].items():
            if child in self.refused:
                continue
            if child in self.stop:
                yield bytes((byte,))
            for path in self.paths(child):
                yield bytes((byte, *path))

    def stop_after(self, state: int, path: bytes) -> bool:
        """Whether a stop is reached exactly at the end of `path`."""
        for byte in path:
            if state in self.stop:
                return False
            state = self.row(state)[byte]
            if state == DEAD:
                return False
        return state in self.stop

    def depth(self, state: int) -> int:
        """How many characters are held back, one that is not complete among them."""
        return sum(byte & 0xC0 != 0x80 for byte in self.held[state]) if state < self.nodes else 0

    def text_state(self, state: int) -> int:
        """The state of plain UTF-8 text that corresponds to `state`."""
        return state - self.nodes + 1 if state >= self.nodes else self._text_states[state]

    def accepts(self, state: int) -> bool:
        if state in self.stop:
            return True
        return self._open_end and state != self.start and self.text_state(state) == 0

    def row(self, state: int) -> Row:
        row = self._rows.get(state)
        if row is None:
            if state in self.stop:
                row = [DEAD] * 256
            else:
                plain = self.text.row(self.text_state(state))
                built = [following + self.nodes - 1 if following > 0 else following for following in plain]
                for node in reversed(self.chain(state)):
                    for byte, child in self.edges[node].items():
                        built[byte] = DEAD if child in self.refused else child
                row = built
            self._rows[state] = row
        return row


def counted_text(text: AhoCorasick, minimum: int, maximum: int | None) -> Counted:
    """`text` with `minimum` to `maximum` characters before its stop.

    Counts all characters, and at a stop those before it: what is held back is not part of the value yet.
    """
    cap = minimum + max((len(stop.marker) for stop in text.stops), default=0)

    def within(state: int, count: int) -> int:
        if state in text.stop:
            count -= text.depth(state)
            return count if minimum <= count and (maximum is None or count <= maximum) else DEAD
        if maximum is None:
            return min(count, cap)
        return count if count < maximum or _can_stop(text, state, count, minimum, maximum) else DEAD

    return Counted(text, lambda state: text.text_state(state) == 0, within, minimum, maximum, text.depth)


def _can_stop(text: AhoCorasick, state: int, count: int, minimum: int, maximum: int) -> bool:
    """Whether the value can end although no further character may be added to it."""
    if count == maximum and (text.text_state(state) != 0 or text.accepts(state)):
        return True  # inside a character that may be the value's last one, or at an open end
    if state >= text.nodes:
        return False
    # Some of what is held back may be the value's last characters, the rest the beginning of a stop. Whether
    # the automaton reads it so is seen by reading: another stop could come first.
    return any(
        text.stop_after(state, path)
        for node in text.chain(state)
        if minimum <= count - text.depth(node) <= maximum
        for path in text.paths(node)
    )


class MatchedText(Trimmed[tuple[int, int]]):
    """`text` whose value, all before its stop, is accepted by `value`.

    A key is a state of the text and the state of `value` after what is certain to belong to the value: bytes
    that are held back have not been read by it yet.
    """

    def __init__(self, text: AhoCorasick, value: DFA, limit: int = 20_000) -> None:
        super().__init__(limit)
        self.dfa, self.value = text, value
        self._moves: dict[int, list[tuple[int, int, list[int]]]] = {}
        self._may_stop = any(node not in text.refused for node in text.stop)
        self.start = self._state(text.start, value.start)
        self._is_live(self.start)

    def pair(self, state: int) -> tuple[int, int]:
        """The state of the text without the condition on its value, and the state of `value`."""
        return self._keys[state]

    def _state(self, node: int, value: int) -> int:
        text = self.dfa
        if node in text.stop:
            return self._add((node, value), True, True) if self.value.accepts(value) else DEAD
        whole = False
        if text.text_state(node) == 0:
            held = self._read(value, self._held(node))
            whole = held != DEAD and self.value.accepts(held)
        accepting = whole and text.accepts(node)
        # The whole marker may come behind what is held back, if the value may end there.
        return self._add((node, value), accepting, whole and (accepting or self._may_stop))

    def _following(self, state: int) -> Row:
        node, value = self._keys[state]
        read = [value]  # after so many of the bytes that are held back
        for byte in self._held(node):
            read.append(self._read(read[-1], bytes((byte,))))
        row = [DEAD] * 256
        for following, released, led_by in self._moves_of(node):
            if released < len(read):
                if (after := read[released]) != DEAD:
                    target = self._state(following, after)
                    for byte in led_by:
                        row[byte] = target
            elif read[-1] != DEAD:
                behind = self.value.row(read[-1])
                afters = [behind[byte] for byte in led_by]
                targets = {after: self._state(following, after) for after in set(afters) - {DEAD}}
                targets[DEAD] = DEAD
                for byte, after in zip(led_by, afters, strict=True):
                    row[byte] = targets[after]
        return row

    def _moves_of(self, node: int) -> list[tuple[int, int, list[int]]]:
        """What of the text follows, how many bytes it no longer holds back, and the bytes that lead there."""
        moves = self._moves.get(node)
        if moves is None:
            by_following: dict[int, list[int]] = {}
            for byte, following in enumerate(self.dfa.row(node)):
                if following != DEAD:
                    by_following.setdefault(following, []).append(byte)
            size = len(self._held(node)) + 1
            moves = self._moves[node] = [
                (following, size - len(self._held(following)), led_by)
                for following, led_by in by_following.items()
            ]
        return moves

    def _held(self, node: int) -> bytes:
        return self.dfa.held[node] if node < self.dfa.nodes else b""

    def _read(self, state: int, data: bytes) -> int:
        for byte in data:
            if state == DEAD:
                break
            state = self.value.row(state)[byte]
        return state
