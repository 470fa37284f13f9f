"""How a text becomes tokens: as a served model's tokenizer cuts it, or byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from larksong.api.offline.parse import byte_engine
from larksong.api.turns.generation import Model
from larksong.engine.backends.encoding import text_ids
from larksong.engine.engine import Engine
from larksong.engine.vocabulary import Vocabulary

BYTES = "single bytes"
"""what the page calls the vocabulary in which each byte is a token and markers are letters"""


@dataclass(frozen=True)
class Cutting:
    """`cut`: text → ids. `name`: how a token reads. `title`: the model's name, or BYTES."""

    title: str
    engine: Engine
    cut: Callable[[str], list[int]]
    name: Callable[[int], str]

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens."""
        return self.engine.vocabulary

    def spelled(self, tokens: Sequence[int]) -> str:
        """The text of tokens; markers spelled out, ends of turns left out."""
        vocabulary = self.vocabulary
        markers = {id: text.encode() for text, id in vocabulary.special.items()}
        written = (
            vocabulary.tokens[each] or markers.get(each, b"")
            for each in tokens
            if each not in vocabulary.eos_ids
        )
        return b"".join(written).decode(errors="replace")


def as_served(model: Model) -> Cutting:
    """As the model reads and writes."""
    backend = model.backend
    cut = partial(text_ids, backend.tokenizer, backend.vocabulary)
    return Cutting(model.name, model.engine, cut, model.token_text)


def in_bytes() -> Cutting:
    """A byte is a token."""
    return Cutting(BYTES, byte_engine(), lambda text: list(text.encode(errors="replace")), _byte)


def _byte(token: int) -> str:
    return bytes([token]).decode(errors="backslashreplace") if token < 256 else "<end>"
