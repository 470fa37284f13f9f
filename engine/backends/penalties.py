"""Penalties on what was written before, and biases: what is added to the logits ahead of the mask.

Frequency and presence penalties are OpenAI's and look at the answer; the repetition penalty (Keskar et al.,
"CTRL", 2019) and DRY ("don't repeat yourself", p-e-w, text-generation-webui pull request 5677) look at prompt
and answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from larksong.engine.backends.base import Sampling

Logits = NDArray[np.float32]

# Finite, so that the token is still taken where the mask leaves no other.
_BANNED = np.float32(-1e9)


_BREAKERS = ("\n", ":", '"', "*")  # as DRY's author has them


def breaker_ids(sampling: Sampling, tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens with which the texts end that no repetition goes across."""
    if not sampling.dry_multiplier:
        return frozenset()
    texts = _BREAKERS if sampling.dry_sequence_breakers is None else sampling.dry_sequence_breakers
    ids = [tokenizer.encode("x" + text, add_special_tokens=False).ids for text in texts if text]
    return frozenset(each[-1] for each in ids)


class Penalties:
    """The penalties of one sequence. Free of cost where none is set."""

    def __init__(
        self,
        sampling: Sampling,
        prompt: Sequence[int],
        ends: frozenset[int],
        breakers: frozenset[int] = frozenset(),
    ) -> None:
        self._sampling = sampling
        self._breakers = breakers
        self._ends = sorted(ends)
        self._tokens = list(prompt)
        self._prompt = len(self._tokens)
        self._counts = bool(sampling.frequency_penalty or sampling.presence_penalty)
        biased = sorted(sampling.logit_bias)
        self._biased = np.array([token for token, _ in biased], np.intp)
        self._bias = np.maximum(np.array([bias for _, bias in biased], np.float32), _BANNED)
        self._repeats = sampling.repetition_penalty != 1
        self._any = bool(
            self._counts or self._repeats or biased or sampling.min_tokens or sampling.dry_multiplier
        )

    def took(self, token: int) -> None:
        """Count a token of the answer."""
        self._tokens.append(token)

    def apply(self, logits: Logits) -> Logits:
        """A copy of the logits with everything applied, or the logits themselves."""
        if not self._any:
            return logits
        settings = self._sampling
        logits = logits.copy()
        begin = 0
        if settings.penalty_range is not None:
            begin = max(0, len(self._tokens) - settings.penalty_range)
        if self._repeats:
            seen = np.unique(np.array(self._tokens[begin:], np.intp))
            scores, penalty = logits[seen], np.float32(settings.repetition_penalty)
            logits[seen] = np.where(scores > 0, scores / penalty, scores * penalty)
        if self._counts:
            for token, count in Counter(self._tokens[max(begin, self._prompt) :]).items():
                logits[token] -= settings.presence_penalty + count * settings.frequency_penalty
        if settings.dry_multiplier:
            for token, length in self._repetitions().items():
                over = min(length - settings.dry_allowed_length, 100)  # a float has no room for more
                logits[token] -= min(settings.dry_multiplier * settings.dry_base**over, 1e8)
        if len(self._biased):
            logits[self._biased] += self._bias
        if len(self._tokens) - self._prompt < settings.min_tokens:
            logits[self._ends] += _BANNED
        return logits

    def _repetitions(self) -> dict[int, int]:
        """Tokens that would prolong a repetition of what stands at the end, and its length so far."""
        settings = self._sampling
        tokens = self._tokens[-settings.dry_range :] if settings.dry_range else self._tokens
        if not tokens or tokens[-1] in self._breakers:
            return {}
        last, found = tokens[-1], dict[int, int]()
        for at in np.flatnonzero(np.array(tokens[:-1], np.intp) == last):
            following = tokens[at + 1]
            if following in self._breakers:
                continue
            length = 1
            while length <= at and tokens[at - length] == tokens[-1 - length]:
                if tokens[at - length] in self._breakers:
                    break
                length += 1
            if length >= settings.dry_allowed_length:
                found[following] = max(found.get(following, 0), length)
        return found
