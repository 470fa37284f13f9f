"""Masks as sets, and the same sets found the slow way: one byte after the other."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.engine.packed import ids_of
from larksong.engine.vocabulary import Vocabulary
from tests.support.vocabularies import byte_twin


def allowed(mask: NDArray[np.int32]) -> set[int]:
    """The token ids of a packed mask."""
    return set(ids_of(mask))


class ByteOracle:
    """The same turn read over single-byte tokens, where a mask has nothing to get wrong but single steps.

    A token is allowed if its bytes are accepted one after the other; a marker if its twin is.
    """

    def __init__(self, of: Vocabulary) -> None:
        self.vocabulary = of
        self.twin, self.renamed = byte_twin(of)
        self.engine = Engine(self.twin)
        texts = of.tokens
        self._sorted = sorted((i for i in range(len(texts)) if texts[i]), key=texts.__getitem__)

    def advance(self, matcher: Matcher, token: int) -> None:
        """Read a token of the vocabulary with a matcher over the twin."""
        for one in self._bytes(token):
            matcher.advance(one)
            assert matcher.fault is None

    def _bytes(self, token: int) -> Iterable[int]:
        data = self.vocabulary.tokens[token] if token < len(self.vocabulary.tokens) else b""
        return data or (self.renamed[token],)

    def allowed(self, matcher: Matcher, tokens: Iterable[int] | None = None) -> set[int]:
        """The ids that may come next, of `tokens` (all) and all markers."""
        texts = self.vocabulary.tokens
        wanted = None if tokens is None else set(tokens)
        found = {token for token, twin in self.renamed.items() if matcher.allows(twin)}
        edge = matcher._automaton.edge
        path = b""  # what was read of the token before, and where each of its bytes led
        reached = [matcher._trail[-1]]
        refused: bytes | None = None
        for token in self._sorted:
            data = texts[token]
            if (wanted is not None and token not in wanted) or (refused and data.startswith(refused)):
                continue
            refused = None
            shared = _common_prefix(path, data)
            del reached[shared + 1 :]
            for at in range(shared, len(data)):
                step = edge(reached[-1], data[at])
                if step is None:
                    refused = data[: at + 1]
                    break
                reached.append(step.target)
            else:
                found.add(token)
            path = data[: len(reached) - 1]
        return found


def _common_prefix(first: bytes, second: bytes) -> int:
    shared = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        shared += 1
    return shared
