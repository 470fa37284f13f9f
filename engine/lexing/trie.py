"""The vocabulary as a flat byte trie, and merged positions in it.

        root ── b"g" ── b"e" ── b"t"          Nodes are numbered breadth first, so the children of a node
          └──── b"<" ── b"f" …                are neighbours and a level is a numpy slice.

Masks are made by following many trie paths at once. A `Position` is a set of places in the trie: the nodes
whose byte is still to be consumed, and the tokens that end exactly here. All places where a terminal can end
inside a token merge into one position, so what may follow is explored once for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from larksong.engine.lexing.interior import branches
from larksong.engine.packed import clear_bits, pack, pack_flags, set_bits

Nodes = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]


class OneByOne(NamedTuple):
    """Arrays of a trie for reading single entries, which takes a fraction of the time that numpy needs."""

    byte: memoryview
    ids: memoryview
    first_child: memoryview
    last_child: memoryview
    first_token: memoryview
    last_token: memoryview
    run_end: memoryview


class Trie:
    """Byte trie over `tokens` (id → bytes; empty entries are left out).

    Arrays, one entry a node: `byte` uint8; `first_child`, `last_child` int64 (half-open range of nodes);
    `first_token`, `last_token` int64 (half-open range in `ids`, the ids of tokens that end in it);
    `first_below`, `last_below` (half-open range in `sorted_ids`: those that end in it or below); `below`,
    `depth` (what is below, see `engine/lexing/interior.py`); `run_end` (the last node of those that only
    repeat the node's byte, one below the other, without a token that ends before it). `arrays` are those of
    an earlier trie over the same tokens, to save the time of making them.
    """

    def __init__(self, tokens: Sequence[bytes], width: int, arrays: Arrays | None = None) -> None:
        self.words = (width + 31) // 32
        self.longest = max(map(len, tokens), default=0)
        self.arrays = _build(tokens, self.longest) if arrays is None else arrays
        self.byte = self.arrays["byte"]
        self.ids, self.sorted_ids = self.arrays["ids"], self.arrays["sorted_ids"]
        self.first_child, self.last_child = self.arrays["first_child"], self.arrays["last_child"]
        self.first_token, self.last_token = self.arrays["first_token"], self.arrays["last_token"]
        self.first_below, self.last_below = self.arrays["first_below"], self.arrays["last_below"]
        self.below, self.depth = self.arrays["below"], self.arrays["depth"]
        self.one_by_one = OneByOne(*(self.arrays[name].data for name in OneByOne._fields))
        self._text, self._offsets = self.arrays["text"].tobytes(), self.arrays["offsets"]
        self._numbers = np.arange(max(len(self.byte), len(self.ids)) + 1)
        self._after: dict[int, Position] = {}
        self._merged: WeakValueDictionary[bytes, Position] = WeakValueDictionary()
        self.root = self.after(0)

    def after(self, node: int) -> Position:
        """The position after one node: most are of this kind, and merged positions lead to them again."""
        found = self._after.get(node)
        if found is None:
            nodes = self._numbers[self.first_child[node] : self.last_child[node]]
            ids = self.ids[self.first_token[node] : self.last_token[node]]
            found = self._after.setdefault(node, Position(self, nodes, ids))
        return found

    def position(self, nodes: Nodes, ids: NDArray[np.int64]) -> Position:
        """The position of these places; the same object for the same places as long as somebody has it."""
        key = nodes.tobytes() + b"|" + ids.tobytes()
        found = self._merged.get(key)
        return self._merged.setdefault(key, Position(self, nodes, ids)) if found is None else found

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

    def tokens_below(self, nodes: Nodes) -> NDArray[np.int64]:
        """Ids of all tokens that end in `nodes` or below."""
        return self.sorted_ids[_ranges(self.first_below[nodes], self.last_below[nodes])[0]]

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
    first_below, last_below = [np.zeros(1, np.int64)], [np.full(1, len(order))]
    levels = [0, 1]
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
        begins = np.flatnonzero(new)
        first_below.append(alive[begins])
        last_below.append(alive[np.append(begins[1:], len(alive)) - 1] + 1)
        count += len(begins)
        levels.append(count)
    parents = np.concatenate(parent)[1:]  # ascending, since each level is ordered by its parents
    nodes = np.arange(count)
    by_node = np.argsort(last, kind="stable")
    bytes_, ids = np.concatenate(byte), np.array(order, np.int64)
    first_child = np.searchsorted(parents, nodes, "left") + 1
    last_child = np.searchsorted(parents, nodes, "right") + 1
    below, depths = branches(bytes_, parents, levels)
    first_token = np.searchsorted(last[by_node], nodes, "left")
    last_token = np.searchsorted(last[by_node], nodes, "right")
    return {
        "byte": bytes_,
        "ids": ids[by_node],
        "sorted_ids": ids,
        "first_child": first_child,
        "last_child": last_child,
        "first_below": np.concatenate(first_below),
        "last_below": np.concatenate(last_below),
        "below": below,
        "depth": depths,
        "first_token": first_token,
        "last_token": last_token,
        "run_end": _run_ends(
            bytes_, first_child, (last_child - first_child == 1) & (first_token == last_token)
        ),
        "text": text,
        "offsets": offsets,
    }


def _run_ends(byte: NDArray[np.uint8], first_child: Nodes, is_passed: NDArray[np.bool_]) -> Nodes:
    nodes = np.arange(len(byte))
    child = np.where(is_passed, first_child, nodes)
    ends = np.where(byte[child] == byte, child, nodes)
    while True:
        further = ends[ends]
        if np.array_equal(further, ends):
            return ends
        ends = further


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

    __slots__ = ("__weakref__", "_below", "_bytes", "_children", "_tokens", "ids", "nodes", "trie")

    def __init__(self, trie: Trie, nodes: Nodes, ids: NDArray[np.int64]) -> None:
        self.trie, self.nodes, self.ids = trie, nodes, ids
        self._children: dict[int, Position | None] = {}
        self._bytes: bytes | None = None
        self._tokens: TokenSet | None = None
        self._below: TokenSet | None = None

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
        return trie.position(trie.children(nodes)[0], trie.tokens(nodes)[0])

    @property
    def tokens(self) -> TokenSet:
        """The tokens that end here."""
        if self._tokens is None:
            self._tokens = TokenSet.of(self.ids, self.trie.words)
        return self._tokens

    @property
    def below(self) -> TokenSet:
        """All tokens that end here or go on from here."""
        if self._below is None:
            found, nodes = [self.ids], self.nodes
            while len(nodes):
                found.append(self.trie.tokens(nodes)[0])
                nodes = self.trie.children(nodes)[0]
            self._below = TokenSet.of(np.concatenate(found), self.trie.words)
        return self._below


class TokenSet:
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
    def of(cls, ids: NDArray[np.int64], words: int) -> TokenSet:
        if len(ids) <= cls._SMALL:
            return cls(ids.tolist(), None)
        flags = np.zeros(words * 32, np.bool_)
        flags[ids] = True
        return cls([], pack_flags(flags))


def union(sets: Collection[TokenSet], words: int) -> NDArray[np.uint32]:
    """Packed union of sets: a new array of `words` uint32."""
    dense = [tokens.words for tokens in sets if tokens.words is not None]
    ids = [i for tokens in sets for i in tokens.ids]
    if not dense:
        return pack(ids, words)
    out = dense[0].copy()
    for more in dense[1:]:
        np.bitwise_or(out, more, out=out)
    if ids:
        set_bits(out, ids)
    return out


def clear(words: NDArray[np.uint32], tokens: TokenSet) -> None:
    """Remove the tokens of `tokens` from packed words, in place."""
    if tokens.words is not None:
        np.bitwise_and(words, ~tokens.words, out=words)
    clear_bits(words, tokens.ids)
