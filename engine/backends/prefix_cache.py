"""Key-value caches of ended sequences, for prompts that begin with the same tokens.

An agent's next request begins with its last one and the answer to it. Needs torch and transformers only for
what is kept: caches are handed over, cut to the common beginning, and never copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from transformers import DynamicCache

_KEPT_SEQUENCES = 4
_KEPT_TOKENS = 65_536  # of all kept sequences together
_WORTHWHILE = 16  # a common beginning shorter than this is read again


class _Kept(NamedTuple):
    tokens: list[int]
    cache: DynamicCache


class PrefixCache:
    """The caches of the last few sequences. For one thread."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []

    def keep(self, tokens: list[int], cache: DynamicCache) -> None:
        """Take over the cache of an ended sequence; it holds `tokens`."""
        if len(tokens) < _WORTHWHILE or not can_be_cut(cache):
            return
        # What another one goes on from is in that one.
        self._kept = [each for each in self._kept if common(each.tokens, tokens) < len(each.tokens)]
        self._kept.append(_Kept(tokens, cache))
        while (
            len(self._kept) > _KEPT_SEQUENCES or sum(len(each.tokens) for each in self._kept) > _KEPT_TOKENS
        ):
            del self._kept[0]

    def take(self, prompt: Sequence[int]) -> tuple[list[int], DynamicCache] | None:
        """The tokens at the beginning of `prompt` that a cache holds, and that cache, cut to them.

        One token of the prompt is always left to read: its logits are wanted. The cache is not kept further.
        """
        best = max(self._kept, key=lambda each: common(each.tokens, prompt), default=None)
        if best is None:
            return None
        length = min(common(best.tokens, prompt), len(prompt) - 1)
        if length < _WORTHWHILE:
            return None
        self._kept.remove(best)
        if surplus := len(best.tokens) - length:
            best.cache.crop(-surplus)
        return best.tokens[:length], best.cache


def can_be_cut(cache: DynamicCache) -> bool:
    """Whether the last tokens can be taken back."""
    # Layers with a window or a recurrent state have forgotten what came before.
    return all(type(layer).__name__ == "DynamicLayer" for layer in cache.layers)


def common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences begin with together."""
    for at, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return at
    return min(len(first), len(second))
