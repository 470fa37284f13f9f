"""What a backend says of its model, whatever runs it."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Tokenizer

from larksong.engine.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ModelDescription:
    """The part of a `Backend` (see base.py) that does not run anything."""

    name: str
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    context_length: int
    """Most tokens of prompt and answer together."""
    chat_template: str | None
    bos_token: str
    """Text of the token that begins a prompt; "" where there is none."""
    eos_token: str
    """Text of the token that ends a turn; "" where there is none."""


class DescribedBackend:
    """Base of backends: what `description` says, as the attributes that a `Backend` has."""

    def __init__(self, description: ModelDescription) -> None:
        self.name = description.name
        self.tokenizer = description.tokenizer
        self.vocabulary = description.vocabulary
        self.context_length = description.context_length
        self.chat_template = description.chat_template
        self.bos_token = description.bos_token
        self.eos_token = description.eos_token
