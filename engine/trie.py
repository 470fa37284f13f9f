"""The vocabulary as a flat byte trie, and merged positions in it.

        root ── b"g" ── b"e" ── b"t"          Nodes are numbered breadth first, so the children of a node
          └──── b"<" ── b"f" …                are neighbours and a level is a numpy slice.

Masks are made by following many trie paths at once. A `Position` is a set of places in the trie: the nodes
whose byte is still to be consumed, and the tokens that end exactly here. All places where a terminal can end
inside a token merge into one position, so what may follow is explored once for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]


class Trie:
    """Byte trie over `tokens` (id → bytes; empty entries are left out).

    Arrays, one entry a node: `byte` uint8; `first_child`, `last_child` int64 (half-open range of nodes);
    `first_token`, `last_token` int64 (half-open range in `ids`, the token ids sorted by bytes). `arrays` are
    those of an earlier trie over the same tokens, to save the time of making them.
    """

    def __init__(self, tokens: Sequence[bytes], width: int, arrays: Arrays | None = None) -> None:
        self.words = (width + 31) // 32
        self.longest = max(map(len, tokens), default=0)
        self.arrays = _build(tokens, self.longest) if arrays is None else arrays
        self.byte = self.arrays["byte"]
        self.ids = self.arrays["ids"]
        self.first_child, self.last_child = self.arrays["first_child"], self.arrays["last_child"]
        self.first_token, self.last_token = self.arrays["first_token"], self.arrays["last_token"]
        self._text, self._offsets = self.arrays["text"].tobytes(), self.arrays["offsets"]
        self._numbers = np.arange(max(len(self.byte), len(self.ids)) + 1)
        self._after: dict[int, Position] = {}
        self.root = self.after(0)

    def after(self, node: int) -> Position:
        """The position after one node: most are of this kind, and merged positions lead to them again."""
        found = self._after.get(node)
        if found is None:
            nodes = self._numbers[self.first_child[node] : self.last_child[node]]
            ids = self.ids[self.first_token[node] : self.last_token[node]]
            found = self._after.setdefault(node, Position(self, nodes, ids))
        return found

    def inside_a_token(self, text: bytes) -> bool:
        """Whether some token contains `text` beyond its first byte."""
        at = self._text.find(text)
        while at >= 0:
            token = int(np.searchsorted(self._offsets, at, "right")) - 1
            end = self._offsets[token + 1] if token + 1 < len(self._offsets) else len(self._text)
            if at > self._offsets[token] and at + len(text) <= end:
                return True
            at = self._text.find(text, at + 1)
        return False

    def children(self, nodes: Nodes) -> tuple[Nodes, NDArray[np.int64]]:
        """All children of `nodes`, and for each the index of its parent in `nodes`."""
        return _ranges(self.first_child[nodes], self.last_child[nodes])

    def tokens(self, nodes: Nodes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids of all tokens that end in `nodes`, and for each the index of its node in `nodes`."""
        indices, owner = _ranges(self.first_token[nodes], self.last_token[nodes])
        return self.ids[indices], owner


def _build(tokens: Sequence[bytes], longest: int) -> Arrays:
    order = [i for i in sorted(range(len(tokens)), key=tokens.__getitem__) if tokens[i]]
    lengths = np.array([len(tokens[i]) for i in order], np.int64)
    text = np.frombuffer(b"".join(tokens[i] for i in order), np.uint8)
    offsets = np.cumsum(lengths) - lengths

    byte = [np.zeros(1, np.uint8)]
    parent = [np.zeros(1, np.int64)]
    last = np.zeros(len(order), np.int64)  # the node in which a token's prefix so far ends
    count = 1
    alive = np.arange(len(order))
    for depth in range(longest):
        alive = alive[lengths[alive] > depth]
        here, above = text[offsets[alive] + depth], last[alive]
        # Sorted order: a new node begins where the byte or the node above differs from the token before.
        new = np.ones(len(alive), bool)
        new[1:] = (here[1:] != here[:-1]) | (above[1:] != above[:-1])
        last[alive] = count - 1 + np.cumsum(new)
        byte.append(here[new])
        parent.append(above[new])
        count += int(new.sum())
    parents = np.concatenate(parent)[1:]  # ascending, since each level is ordered by its parents
    nodes = np.arange(count)
    by_node = np.argsort(last, kind="stable")
    return {
        "byte": np.concatenate(byte),
        "ids": np.array(order, np.int64)[by_node],
        "first_child": np.searchsorted(parents, nodes, "left") + 1,
        "last_child": np.searchsorted(parents, nodes, "right") + 1,
        "first_token": np.searchsorted(last[by_node], nodes, "left"),
        "last_token": np.searchsorted(last[by_node], nodes, "right"),
        "text": text,
        "offsets": offsets,
    }


def _ranges(first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Concatenate the half-open ranges first[i]:last[i]; also say which range each number came from."""
    sizes = last - first
    total = int(sizes.sum())
    if total == 0:
        none = np.zeros(0, np.int64)
        return none, none
    owner = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    return first[owner] + np.arange(total) - starts[owner], owner


class Position:
    """A merged place in the trie: `nodes` to be consumed next, `ids` of the tokens that end here."""

    __slots__ = ("_below", "_bytes", "_children", "_piece", "ids", "nodes", "trie")

    def __init__(self, trie: Trie, nodes: Nodes, ids: NDArray[np.int64]) -> None:
        self.trie, self.nodes, self.ids = trie, nodes, ids
        self._children: dict[int, Position | None] = {}
        self._bytes: bytes | None = None
        self._piece: Piece | None = None
        self._below: Piece | None = None

    def child(self, byte: int) -> Position | None:
        """The position one byte further, or None where no token goes on with it."""
        try:
            return self._children[byte]
        except KeyError:
            # setdefault: two threads may race here, but both must go on with one object.
            return self._children.setdefault(byte, self._find(byte))

    def _find(self, byte: int) -> Position | None:
        trie = self.trie
        if self._bytes is None:
            self._bytes = trie.byte[self.nodes].tobytes()
        at = self._bytes.find(byte)
        if at < 0:
            return None
        if self._bytes.find(byte, at + 1) < 0:
            return trie.after(int(self.nodes[at]))
        nodes = self.nodes[trie.byte[self.nodes] == byte]
        return Position(trie, trie.children(nodes)[0], trie.tokens(nodes)[0])

    @property
    def piece(self) -> Piece:
        """The tokens that end here."""
        if self._piece is None:
            self._piece = Piece.of(self.ids, self.trie.words)
        return self._piece

    @property
    def below(self) -> Piece:
        """All tokens that end here or go on from here."""
        if self._below is None:
            found, nodes = [self.ids], self.nodes
            while len(nodes):
                found.append(self.trie.tokens(nodes)[0])
                nodes = self.trie.children(nodes)[0]
            self._below = Piece.of(np.concatenate(found), self.trie.words)
        return self._below


class Piece:
    """A set of token ids: a list where it is small, packed words where it is large."""

    __slots__ = ("ids", "some", "words")
    _SMALL = 400

    def __init__(self, ids: list[int], words: NDArray[np.uint32] | None) -> None:
        self.ids, self.words = ids, words
        self.some = bool(ids) or words is not None
        """whether the set has any token"""

    def __bool__(self) -> bool:
        return self.some

    @classmethod
    def of(cls, ids: NDArray[np.int64], words: int) -> Piece:
        if len(ids) <= cls._SMALL:
            return cls(ids.tolist(), None)
        bits = np.zeros(words * 32, np.uint8)
        bits[ids] = 1
        return cls([], np.packbits(bits, bitorder="little").view(np.uint32))


def union(pieces: Collection[Piece], words: int) -> NDArray[np.uint32]:
    """Packed union of pieces: a new array of `words` uint32."""
    dense = [piece.words for piece in pieces if piece.words is not None]
    ids = [i for piece in pieces for i in piece.ids]
    if not dense:
        return packed(ids, words)
    out = dense[0].copy()
    for more in dense[1:]:
        np.bitwise_or(out, more, out=out)
    if ids:
        set_bits(out, ids)
    return out


def packed(ids: Iterable[int], words: int) -> NDArray[np.uint32]:
    """A new array of `words` uint32 with the bits of `ids`."""
    buffer = bytearray(4 * words)
    for i in ids:
        buffer[i >> 3] |= 1 << (i & 7)
    return np.frombuffer(buffer, "<u4")


def set_bits(words: NDArray[np.uint32], ids: Iterable[int]) -> None:
    """Set the bits of `ids` in packed words, in place."""
    view = memoryview(words.data).cast("B")  # ten times faster than numpy, element by element
    for i in ids:
        view[i >> 3] |= 1 << (i & 7)


def clear(words: NDArray[np.uint32], piece: Piece) -> None:
    """Remove the tokens of `piece` from packed words, in place."""
    if piece.words is not None:
        np.bitwise_and(words, ~piece.words, out=words)
    for i in piece.ids:
        words[i >> 5] &= np.uint32(~(1 << (i & 31)) & 0xFFFFFFFF)
