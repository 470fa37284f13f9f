"""Caches of what requests make: keys that compare by content, and results that die with their vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from larksong.engine.vocabulary import Vocabulary

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class CacheKey(Generic[T]):
    """`value` as the key of a cache: equal to another one where their contents are."""

    __slots__ = ("_content", "_hash", "value")

    def __init__(self, value: T, *content: Hashable) -> None:
        self.value = value
        self._content = content
        self._hash = hash(content)

    def holding(self, value: R) -> CacheKey[R]:
        """An equal key with what was made of the value, which its owner may change later."""
        return CacheKey(value, *self._content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CacheKey) and self._content == other._content


def per_vocabulary(
    size: int,
) -> Callable[[Callable[Concatenate[Vocabulary, P], R]], Callable[Concatenate[Vocabulary, P], R]]:
    """`lru_cache` for functions of a vocabulary and more: at most `size` results for each vocabulary.

    They are kept in the vocabulary itself. Grammars hold their vocabulary, so a cache anywhere else would
    keep both for ever.
    """

    def decorate(
        function: Callable[Concatenate[Vocabulary, P], R],
    ) -> Callable[Concatenate[Vocabulary, P], R]:
        @wraps(function)
        def cached(vocabulary: Vocabulary, /, *args: P.args, **kwargs: P.kwargs) -> R:
            kept: Any = vocabulary.kept.get(function)
            if kept is None:
                made = lru_cache(maxsize=size)(partial(function, vocabulary))
                kept = vocabulary.kept.setdefault(function, made)
            found: R = kept(*args, **kwargs)
            return found

        return cached

    return decorate
