"""How a model is loaded into exllamav3, and how many requests share it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from pathlib import Path

PAGE = 256
"""Tokens in a page of exllamav3's cache; sizes of the cache are multiples of it."""


@dataclass(frozen=True)
class ExllamaV3Settings:
    """What `ExllamaV3Backend.load` does. Raises ValueError naming the setting for one out of range."""

    cache_tokens: int = 32768
    """Tokens of all running requests together, prompts included; rounded up to pages of 256."""
    cache_bits: tuple[int, int] | None = None
    """Bits of a cached key's and a value's numbers, 2 to 8 each; None keeps them in fp16."""
    max_sequence: int | None = None
    """Most tokens of one request, prompt included; None is what model and cache allow."""
    max_batch: int = 64
    """Most requests that are generated at once; more wait."""
    chunk: int = 2048
    """Most tokens of a prompt that are read in one step."""
    requeue_tokens: int | None = 2048
    """Cache that a request claims ahead, in tokens; None claims all that its answer could take."""
    device: str | None = None
    """One device for the whole model; None splits it over all GPUs."""
    gpu_split: tuple[float, ...] | None = None
    """Gigabytes to use of each GPU, 0 for none; None fills them in order."""
    tensor_parallel: bool = False
    """Split every layer over the GPUs, in place of layers one after the other."""
    draft_model: Path | None = None
    """Folder of a small model with the same tokenizer that guesses ahead."""
    draft_tokens: int | None = None
    """How far the draft model or the n-gram draft guesses; None is exllamav3's own number."""
    ngram_draft: int = 0
    """Guess what followed the last so many tokens when they came before; 0 is off."""
    forced_draft: int = 16
    """Tokens that must come are checked together, at most so many in one step; 0 asks for each of them."""

    mass_share: float = 0.01
    """Share of the tokens at which the probability that the mask leaves is measured; 0 is off."""

    def __post_init__(self) -> None:
        for name in ("cache_tokens", "max_batch", "chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in ("max_sequence", "requeue_tokens", "draft_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be 1 or more, not {value}")
        for name in ("ngram_draft", "forced_draft"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, not {getattr(self, name)}")
        if not 0 <= self.mass_share <= 1:
            raise ValueError(f"mass_share must be from 0 to 1, not {self.mass_share}")
        if self.cache_bits is not None and not all(2 <= bits <= 8 for bits in self.cache_bits):
            raise ValueError(f"cache_bits must be from 2 to 8, not {self.cache_bits}")
        if self.gpu_split is not None and not (
            all(0 <= gigabytes < inf for gigabytes in self.gpu_split) and any(self.gpu_split)
        ):
            raise ValueError(f"gpu_split must be gigabytes, 0 to leave a GPU out, not {self.gpu_split}")
        for name in ("forced_draft", "draft_tokens"):
            # A request must have room for a token and for what is guessed behind it.
            if (getattr(self, name) or 0) > self.cache_size - 2:
                raise ValueError(f"{name} must be less than cache_tokens, not {getattr(self, name)}")
        if self.draft_model is not None and self.ngram_draft:
            raise ValueError("draft_model and ngram_draft exclude each other: leave one out")
        if self.tensor_parallel and self.device is not None:
            raise ValueError("tensor_parallel needs several GPUs: leave device out")
        if self.device is not None and self.gpu_split is not None:
            raise ValueError("gpu_split is for several GPUs: leave device out")

    @property
    def cache_size(self) -> int:
        """`cache_tokens`, rounded up to pages."""
        return -(-self.cache_tokens // PAGE) * PAGE

    @property
    def chunk_size(self) -> int:
        """`chunk`, rounded up to pages."""
        return -(-self.chunk // PAGE) * PAGE
