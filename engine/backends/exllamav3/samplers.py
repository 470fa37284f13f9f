"""Sampler settings in exllamav3's terms."""

from __future__ import annotations

from typing import Any

from exllamav3 import ComboSampler, Tokenizer
from exllamav3.generator.sampler.custom import dry_sequence_breaker_tokens

from larksong.engine.backends.base import Sampling

_ALL = 10**8  # more tokens than any context has


def sampler_of(sampling: Sampling, tokenizer: Tokenizer) -> Any:
    """exllamav3's sampler for these settings.

    The order is its own: mask, logit bias, repetition, presence and frequency penalties, DRY, temperature,
    min-p, top-k, top-p. A sampler has work space of its own: one for each job.
    """
    breakers = sampling.dry_sequence_breakers
    return ComboSampler(
        rep_p=sampling.repetition_penalty,
        freq_p=sampling.frequency_penalty,
        pres_p=sampling.presence_penalty,
        rep_sustain_range=_ALL if sampling.penalty_range is None else sampling.penalty_range,
        dry_multiplier=sampling.dry_multiplier,
        dry_base=sampling.dry_base,
        dry_allowed_length=sampling.dry_allowed_length,
        dry_range=sampling.dry_range,
        dry_sequence_breakers=(
            None if breakers is None else frozenset(dry_sequence_breaker_tokens(tokenizer, breakers))
        ),
        temperature=sampling.temperature,
        min_p=sampling.min_p,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        logit_bias=dict(sampling.logit_bias),
    )
