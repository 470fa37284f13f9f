"""The vocabulary of no model: each byte is a token, so that every marker is letters."""

from __future__ import annotations

from functools import lru_cache

from larksong.engine.engine import Engine
from larksong.engine.vocabulary import Vocabulary

END = 256
"""the token that ends a turn"""

BYTES = Vocabulary(
    tokens=(*(bytes([byte]) for byte in range(256)), b""),
    special={"<end>": END},
    eos_ids=frozenset({END}),
    width=END + 1,
)


@lru_cache(maxsize=1)
def byte_engine() -> Engine:
    """The engine of text alone, one for the process."""
    return Engine(BYTES)
