"""The extension's host functions: strings, pages, the suffix automaton."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

EXPORTS = ("BC_SAM", "cache_rotate", "count_match_tensor", "generator_stage_decode", "partial_strings_match")


def partial_strings_match(held: Any, offsets: Any, strings: Any) -> int:
    """Where the first of `strings` begins in `held` (both UTF-32, packed; `offsets` in bytes).

    -1: none of them is in there; -2: one of them may have begun at the end, before any whole one.
    """
    text = bytes(held).decode("utf-32-le", "surrogatepass")
    packed = bytes(strings)
    places = np.frombuffer(bytes(offsets), dtype=np.int32)
    whole, part = len(text) + 1, len(text) + 1
    for begin, end in pairwise(places):
        wanted = packed[begin:end].decode("utf-32-le", "surrogatepass")
        if not wanted:
            continue
        found = text.find(wanted)
        if found >= 0:
            whole = min(whole, found)
        sizes = range(min(len(wanted) - 1, len(text)), 0, -1)
        tail = next((size for size in sizes if text.endswith(wanted[:size])), 0)
        if tail:
            part = min(part, len(text) - tail)
    if part < whole:
        return -2
    return whole if whole <= len(text) else -1


def count_match_tensor(left: torch.Tensor, right: torch.Tensor, limit: int) -> int:
    """How many tokens two rows begin with in common, at most `limit`."""
    size = min(limit, right.shape[-1], left.shape[-1])
    differ = (left[0, :size] != right[0, :size]).nonzero()
    return int(differ[0]) if len(differ) else size


def generator_stage_decode(
    arena: torch.Tensor,
    width: int,
    block_indices: Sequence[torch.Tensor],
    positions: Sequence[int],
    rope_offsets: Sequence[int],
    batch_ids: torch.Tensor | None,
    sequences: Sequence[torch.Tensor],
    pages: Sequence[torch.Tensor],
    page_offsets: Sequence[int],
) -> None:
    """Fill a step's tables: block rows, sequence lengths, and each row's next token with its page."""
    rows = len(block_indices)
    blocks = arena[: rows * width].view(rows, width)
    lengths = arena[rows * width : rows * width + rows]
    for row, (index, position) in enumerate(zip(block_indices, positions, strict=True)):
        size = min(index.numel(), width)
        blocks[row, :size] = index.view(-1)[:size]
        blocks[row, size:] = 0
        lengths[row] = position
    for row, offset in enumerate(rope_offsets):
        arena[rows * width + rows + row] = positions[row] + offset
    for row, (sequence, page) in enumerate(zip(sequences, pages, strict=True)):
        if positions[row] >= sequence.shape[-1] or page_offsets[row] >= page.shape[-1]:
            raise RuntimeError("token index out of range")
        assert batch_ids is not None
        token = sequence[0, positions[row]]
        batch_ids[row, 0] = token
        page[0, page_offsets[row]] = token


def cache_rotate(cache: torch.Tensor, order: torch.Tensor, spare: torch.Tensor) -> None:
    """Copy pages in `order` (pairs of target and source; -1 is the spare page)."""
    for target, source in order.view(-1, 2).tolist():
        value = spare if source < 0 else cache[source]
        (spare if target < 0 else cache[target]).copy_(value.clone())


class BC_SAM:
    """Finds where the longest suffix of a sequence occurred before; a search in place of an automaton."""

    LONGEST = 64

    def __init__(self) -> None:
        self._tokens: list[int] = []

    def accept_tensor(self, tokens: torch.Tensor) -> tuple[int, int]:
        """(begin, end) of the first earlier occurrence of the longest suffix of `tokens`, (-1, -1) if none.

        `tokens` is the whole sequence; one that has become shorter was rewound. Nothing new gives (-1, -1).
        """
        sequence: list[int] = tokens.view(-1).tolist()
        if len(sequence) == len(self._tokens):
            return -1, -1
        self._tokens = sequence
        size = len(sequence)
        best, end = 0, -1
        for at in range(1, size):
            length = 0
            while length < min(at, self.LONGEST) and sequence[at - 1 - length] == sequence[size - 1 - length]:
                length += 1
            if length > best:
                best, end = length, at
        return (end - best, end) if best else (-1, -1)
