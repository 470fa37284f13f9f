"""How much memory is taken, counted and not measured."""

from __future__ import annotations

from larksong.engine.lexing.trie import TokenSet

# Measured with tracemalloc, rounded up: an entry of a cache with its key; a token id of a list.
ENTRY_BYTES = 400
_ID_BYTES = 40


class Meter:
    """Counts roughly how many bytes are kept."""

    def __init__(self) -> None:
        self.bytes = 0


def bytes_of(tokens: TokenSet) -> int:
    """Roughly what a set of tokens takes by itself."""
    return _ID_BYTES * len(tokens.ids) if tokens.words is None else tokens.words.nbytes
