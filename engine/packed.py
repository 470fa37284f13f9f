"""Sets of token ids as packed words: bit `i & 31` of word `i >> 5` stands for id `i`.

Masks are such words as int32, which samplers take; the engine computes with uint32, in which a shift to the
right brings no sign along. All functions but those that make words take both.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int32] | NDArray[np.uint32]


def pack(ids: Iterable[int], words: int) -> NDArray[np.uint32]:
    """A new array of `words` words with the bits of `ids`."""
    buffer = bytearray(4 * words)
    for i in ids:
        buffer[i >> 3] |= 1 << (i & 7)
    return np.frombuffer(buffer, "<u4")


def pack_mask(ids: Iterable[int], words: int) -> NDArray[np.int32]:
    """A new mask of `words` words that allows `ids`."""
    return pack(ids, words).view(np.int32)


def pack_flags(flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """The words of one flag an id; as many flags as words have bits, so a multiple of 32."""
    return np.packbits(flags, bitorder="little").view(np.uint32)


def unpack(words: Words, width: int | None = None) -> NDArray[np.bool_]:
    """Whether each id is in the set, of the first `width` ids; by default of all that words have bits for."""
    return np.unpackbits(words.view(np.uint8), count=width, bitorder="little").view(np.bool_)


def ids_of(words: Words) -> list[int]:
    """The ids of the set, in ascending order."""
    found: list[int] = np.flatnonzero(unpack(words)).tolist()
    return found


def count_ids(words: Words) -> int:
    """How many ids the set has."""
    # numpy counts the bits of a signed number's absolute value.
    return int(np.bitwise_count(words.view(np.uint32)).sum())


def allows(words: Words, token: int) -> bool:
    """Whether an id is in the set."""
    return bool(words[token >> 5] >> (token & 31) & 1)


def allows_each(words: Words, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each of `ids` is in the set."""
    found: NDArray[np.bool_] = (words[ids >> 5] >> (ids & 31)) & 1 == 1
    return found


def set_bits(words: NDArray[np.uint32], ids: Iterable[int]) -> None:
    """Add `ids` to the set, in place."""
    view = memoryview(words.data).cast("B")  # ten times faster than numpy, element by element
    for i in ids:
        view[i >> 3] |= 1 << (i & 7)


def clear_bits(words: NDArray[np.uint32], ids: Iterable[int]) -> None:
    """Take `ids` out of the set, in place."""
    view = memoryview(words.data).cast("B")
    for i in ids:
        view[i >> 3] &= ~(1 << (i & 7))
