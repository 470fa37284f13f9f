"""Sampler settings in exllamav3's terms."""

from __future__ import annotations

import logging
import random
from typing import Any

import torch
from exllamav3 import ComboSampler, Tokenizer
from exllamav3.generator.sampler.custom import dry_sequence_breaker_tokens

from larksong.engine.backends.base import Sampling

_log = logging.getLogger(__name__)

_ALL = 10**8  # more tokens than any context has


class MeasuringSampler(ComboSampler):  # type: ignore[misc]
    """Measures, at a `share` of the tokens, the probability that the mask leaves.

    It is done here, where logits and mask are on the model's device and belong together. exllamav3's
    `return_logits` copies all logits to the host, and dies where a model's are not of the padded width.
    """

    def __init__(self, share: float, **settings: Any) -> None:
        super().__init__(**settings)
        self._share = share
        self._kept: torch.Tensor | None = None

    def forward(
        self,
        logits: torch.Tensor,
        sequence_ids: torch.Tensor | None = None,
        rand_u32: int | None = None,
        tokenizer: Tokenizer | None = None,
        **kwargs: Any,
    ) -> Any:
        """See exllamav3's."""
        mask: torch.Tensor | None = kwargs.get("logit_mask")
        self._kept = None
        if mask is not None and mask.dtype == torch.int32 and random.random() < self._share:
            # What is behind the tokenizer's tokens is never sampled.
            known = logits if tokenizer is None else logits[..., : tokenizer.actual_vocab_size]
            self._kept = _mass(known, mask)
        return super().forward(logits, sequence_ids, rand_u32, tokenizer, **kwargs)

    def take(self) -> float | None:
        """The probability that the mask left at the last token, None where it was not measured."""
        kept, self._kept = self._kept, None
        return None if kept is None else kept.item()


def _mass(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor | None:
    """The probability of what a packed mask allows. exllamav3 would die of an error here."""
    try:
        row = logits.reshape(-1).float()
        bits = (mask.reshape(-1, 1) >> torch.arange(32, device=mask.device)) & 1
        allowed = bits.reshape(-1)[: row.shape[0]].bool()
        return torch.softmax(row, -1)[: allowed.shape[0]][allowed].sum()
    except RuntimeError:
        _log.exception("the probability that a mask leaves could not be measured")
        return None


def sampler_of(sampling: Sampling, tokenizer: Tokenizer, share: float = 0.0) -> MeasuringSampler:
    """exllamav3's sampler for these settings, which measures at a `share` of the tokens.

    The order is its own: mask, logit bias, repetition, presence and frequency penalties, DRY, temperature,
    min-p, top-k, top-p. A sampler has work space of its own: one for each job.
    """
    breakers = sampling.dry_sequence_breakers
    return MeasuringSampler(
        share,
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
