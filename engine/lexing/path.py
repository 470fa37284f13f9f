"""A way to the end of a turn, and what it costs in tokens.

A way is a list of pieces, shared from its end: all ways that lead through a place have one rest. Its cost is
the fewest tokens that write exactly these pieces, found from the end to the beginning: a token that begins
here leads to a place whose cost is known. So one of the tokens that may come next lowers the cost by one.

    ⟨":⟩ 3 ─▶ ⟨0⟩ 2 ─▶ ⟨}}⟩ 1 ─▶ end        `":0}}` in three tokens, though `":0` would be one byte longer
"""

from __future__ import annotations

from collections.abc import Iterator

from larksong.engine.lexing.trie import Position

Piece = bytes | int
"""Bytes to be written, or the id of a special token."""

UNREACHABLE = 1 << 30
"""The cost where the end cannot be reached: too far away, no token for some byte, or a wrong grammar."""
LONGEST = 1 << 17
"""Bytes of a way, or of a piece of one, that are looked at; the end is out of reach beyond. To count the
tokens of so many takes half a second, and no answer is as long."""
_WINDOW = 32  # bytes of a token that are looked at: longer ones are runs of blanks and the like


class Path:
    """The way that begins with `piece` and goes on with `rest` (None: the turn has ended).

    `size`: bytes and special tokens on it, an upper bound on its cost.
    """

    __slots__ = ("_costs", "_head", "piece", "rest", "size")

    def __init__(self, piece: Piece, rest: Path | None) -> None:
        self.piece, self.rest = piece, rest
        self.size = 0
        self._head = b""  # the next bytes before a special token
        self._costs: list[int] | None = None  # by how many of them are written
        if rest is None:
            self._costs = [0]
        elif isinstance(piece, int):
            self.size = 1 + rest.size
        else:
            self.size = len(piece) + rest.size
            self._head = (piece + rest._head)[:_WINDOW]

    def __iter__(self) -> Iterator[Piece]:
        path: Path = self
        while path.rest is not None:
            yield path.piece
            path = path.rest

    def cost(self, root: Position) -> int:
        """The tokens to the end of the turn; `root`: the root of the vocabulary's trie."""
        costs = self._costs
        if costs is None:
            todo = [self]
            while (rest := todo[-1].rest) is not None and rest._costs is None:
                todo.append(rest)
            for path in reversed(todo):
                costs = path._costs = path._find_costs(root)
        assert costs is not None
        return costs[0]

    def _find_costs(self, root: Position) -> list[int]:
        piece, rest = self.piece, self.rest
        assert rest is not None
        assert rest._costs is not None
        if isinstance(piece, int):
            return [1 + rest._costs[0]]
        if len(piece) > LONGEST:
            return [UNREACHABLE] * (len(self._head) + 1)
        data = piece + rest._head
        costs = [UNREACHABLE] * len(piece) + rest._costs
        for begin in range(len(piece) - 1, -1, -1):
            position = root
            for at in range(begin, min(begin + _WINDOW, len(data))):
                child = position.child(data[at])
                if child is None:
                    break
                position = child
                if costs[at + 1] + 1 < costs[begin] and len(position.ids):
                    costs[begin] = costs[at + 1] + 1
        return costs[: len(self._head) + 1]


ENDED = Path(b"", None)
"""The way of a turn that has ended."""


def spelled(piece: Piece) -> bytes:
    """A piece as bytes, to compare ways by; no text has the byte that stands for a special token."""
    return piece if isinstance(piece, bytes) else b"\xff"
