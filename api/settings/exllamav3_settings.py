"""The settings of the exllamav3 backend, as flags and environment variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings

from larksong.engine.backends.exllamav3.settings import ExllamaV3Settings

_DEFAULT = ExllamaV3Settings()


class ExllamaV3Fields(BaseSettings):
    """What `--backend exllamav3` reads; other backends ignore it."""

    cache_tokens: int = Field(
        _DEFAULT.cache_tokens, ge=1, description="Tokens of all running requests together, prompts included."
    )
    cache_bits: str | None = Field(
        None, description="Bits of the cache's numbers, 2 to 8: one for all, or keys,values. Without it fp16."
    )
    max_sequence: int | None = Field(
        None, ge=1, description="Most tokens of one request, prompt included; without it what fits."
    )
    max_batch: int = Field(_DEFAULT.max_batch, ge=1, description="Most requests that are generated at once.")
    chunk: int = Field(_DEFAULT.chunk, ge=1, description="Most tokens of a prompt that one step reads.")
    requeue_tokens: int = Field(
        2048,
        ge=0,
        description="Cache that a request claims ahead, in tokens; 0 claims all that it could take.",
    )
    device: str | None = Field(
        None, description="One device for the whole model, such as cuda:0; without it all GPUs."
    )
    gpu_split: str | None = Field(
        None, description="Gigabytes to use of each GPU, such as 20,24; without it they are filled in order."
    )
    tensor_parallel: bool = Field(False, description="Split every layer over the GPUs.")
    draft_model: Path | None = Field(None, description="Folder of a small model that guesses ahead.")
    draft_tokens: int | None = Field(None, ge=1, description="How many tokens are guessed ahead.")
    ngram_draft: int = Field(
        0, ge=0, description="Guess what followed the last so many tokens when they came before; 0 is off."
    )
    forced_draft: int = Field(
        _DEFAULT.forced_draft,
        ge=0,
        description="Most tokens that must come and are checked in one step; 0 asks for each of them.",
    )

    mass_share: float = Field(
        _DEFAULT.mass_share,
        ge=0,
        le=1,
        description="Share of the tokens at which the probability that the mask leaves is measured.",
    )

    @field_validator("cache_bits", "gpu_split", "device", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        """A TOML file can have numbers and lists; an empty environment variable is one that is not set."""
        if isinstance(value, list):
            return ",".join(map(str, value)) or None
        return str(value) if isinstance(value, int | float) else value or None

    @field_validator("cache_bits", "gpu_split")
    @classmethod
    def _numbers(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None:
            try:
                found = [float(part) for part in value.split(",")]
            except ValueError:
                raise ValueError("numbers with commas between them are wanted, such as 8 or 6,5") from None
            if info.field_name == "cache_bits" and (
                len(found) > 2 or not all(bits in range(2, 9) for bits in found)
            ):
                raise ValueError("one or two whole numbers from 2 to 8 are wanted")
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        self.exllamav3()
        return self

    def exllamav3(self) -> ExllamaV3Settings:
        """The engine's settings. Raises ValueError for some that exclude each other."""
        options: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("cache_tokens", "max_sequence", "max_batch", "chunk", "device", "tensor_parallel")
        }
        bits = [int(float(part)) for part in self.cache_bits.split(",")] if self.cache_bits else []
        return ExllamaV3Settings(
            **options,
            cache_bits=(bits[0], bits[-1]) if bits else None,
            requeue_tokens=self.requeue_tokens or None,
            gpu_split=tuple(map(float, self.gpu_split.split(","))) if self.gpu_split else None,
            draft_model=self.draft_model,
            draft_tokens=self.draft_tokens,
            ngram_draft=self.ngram_draft,
            forced_draft=self.forced_draft,
            mass_share=self.mass_share,
        )
