"""Masks as sets, and the same sets found the slow way: one byte after the other."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from tests.support.vocabularies import byte_twin


def allowed(mask: NDArray[np.int32]) -> set[int]:
    """The token ids of a packed mask."""
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


class ByteOracle:
    """The same turn read over single-byte tokens, where a mask has nothing to get wrong but single steps.

    A token is allowed if its bytes are accepted one after the other; a marker if its twin is.
    """

    def __init__(self, of: Vocabulary) -> None:
        self.vocabulary = of
        self.twin, self.renamed = byte_twin(of)
        self.engine = Engine(self.twin)

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
        candidates = range(len(texts)) if tokens is None else tokens
        found = {token for token, twin in self.renamed.items() if matcher.allows(twin)}
        cursor = matcher.fork()
        path = b""  # what the fork has read
        refused: bytes | None = None
        for token in sorted((i for i in candidates if texts[i]), key=texts.__getitem__):
            data = texts[token]
            if refused is not None and data.startswith(refused):
                continue
            refused = None
            shared = _common_prefix(path, data)
            cursor.rollback(len(path) - shared)
            path = path[:shared]
            for byte in data[shared:]:
                if not cursor.allows(byte):
                    refused = path + bytes([byte])
                    break
                cursor.advance(byte)
                path += bytes([byte])
            else:
                found.add(token)
        return found


def _common_prefix(first: bytes, second: bytes) -> int:
    shared = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        shared += 1
    return shared
