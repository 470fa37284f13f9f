"""Penalties, biases and probabilities: each is what its formula says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from larksong.engine.backends.base import Sampling
from larksong.engine.backends.penalties import Penalties
from larksong.engine.backends.sampler import Sampler

LOGITS = np.array([1.0, -1.0, 2.0, 0.5, 0.0], np.float32)
ENDS = frozenset({4})


def applied(prompt: list[int], written: list[int], **settings: Any) -> list[float]:
    breakers = settings.pop("breakers", frozenset())
    penalties = Penalties(Sampling(**settings), prompt, ENDS, breakers)
    for token in written:
        penalties.took(token)
    before = LOGITS.copy()
    found = penalties.apply(LOGITS)
    assert (before == LOGITS).all()
    return [round(float(value), 4) for value in found]


def test_without_settings_nothing_is_copied() -> None:
    assert Penalties(Sampling(), [1], ENDS).apply(LOGITS) is LOGITS


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"frequency_penalty": 0.5}, [0.0, -1.0, 1.5, 0.5, 0.0]),
        ({"presence_penalty": 0.5}, [0.5, -1.0, 1.5, 0.5, 0.0]),
        ({"frequency_penalty": -0.5, "presence_penalty": 1.0}, [1.0, -1.0, 1.5, 0.5, 0.0]),
        ({"repetition_penalty": 2.0}, [0.5, -2.0, 1.0, 0.5, 0.0]),
        ({"repetition_penalty": 2.0, "penalty_range": 1}, [0.5, -1.0, 2.0, 0.5, 0.0]),
        ({"frequency_penalty": 0.5, "penalty_range": 2}, [0.5, -1.0, 1.5, 0.5, 0.0]),
        ({"logit_bias": ((3, 7.0), (1, -2.0))}, [1.0, -3.0, 2.0, 7.5, 0.0]),
        ({"min_tokens": 3}, [1.0, -1.0, 2.0, 0.5, 0.0]),
    ],
)
def test_a_setting_changes_the_logits_as_its_formula_says(
    settings: dict[str, Any], expected: list[float]
) -> None:
    assert applied([1], [0, 2, 0], **settings) == expected


def test_no_end_comes_before_the_least_tokens_where_another_token_may() -> None:
    sampler = Sampler(Sampling(temperature=0, min_tokens=2), [1], ENDS)
    likes_the_end = np.array([0, 0, 1, 0, 9], np.float32)
    assert sampler.draw(sampler.penalised(likes_the_end)) == 2
    only_the_end = np.where(np.arange(5) == 4, 0, -np.inf).astype(np.float32)
    assert sampler.draw(sampler.penalised(likes_the_end) + only_the_end) == 4
    for _ in range(2):
        sampler.took(2)
    assert sampler.draw(sampler.penalised(likes_the_end)) == 4


def test_a_banned_token_comes_only_where_the_mask_leaves_no_other() -> None:
    sampler = Sampler(Sampling(temperature=0, logit_bias=((2, float("-inf")),)))
    assert sampler.draw(sampler.penalised(LOGITS)) == 0
    only_two = np.where(np.arange(5) == 2, 0, -np.inf).astype(np.float32)
    assert sampler.draw(sampler.penalised(LOGITS) + only_two) == 2


def test_dry_takes_from_what_would_prolong_a_repetition() -> None:
    settings: dict[str, Any] = {"dry_multiplier": 1.0, "dry_base": 2.0, "dry_allowed_length": 2}
    # "0 1 2" came before; after "0 1" the 2 would make it three.
    assert applied([0, 1, 2, 3], [0, 1], **settings) == [1.0, -1.0, 1.0, 0.5, 0.0]
    assert applied([3, 0, 1, 2, 3], [3, 0, 1], **settings) == [1.0, -1.0, 0.0, 0.5, 0.0]
    assert applied([0, 1, 2, 3], [3, 1], **settings) == [1.0, -1.0, 2.0, 0.5, 0.0]
    broken = {**settings, "breakers": frozenset({0})}
    assert applied([0, 1, 2, 3], [0, 1], **broken) == [1.0, -1.0, 2.0, 0.5, 0.0]
    assert applied([0, 1, 2, 3], [0, 1], **settings, dry_range=3) == [1.0, -1.0, 2.0, 0.5, 0.0]


def test_probabilities_are_those_of_the_model_itself() -> None:
    sampler = Sampler(Sampling(logprobs=2))
    bias = np.array([0, -np.inf, -np.inf, 0, 0], np.float32)
    found = sampler.probabilities(LOGITS, bias, 0)
    shares = np.exp(LOGITS) / np.exp(LOGITS).sum()
    assert found.kept == pytest.approx(shares[[0, 3, 4]].sum(), rel=1e-5)
    assert found.logprobs.chosen == pytest.approx(np.log(shares[0]), rel=1e-5)
    assert [token for token, _ in found.logprobs.top] == [2, 0]
    assert [logprob for _, logprob in found.logprobs.top] == pytest.approx(
        np.log(shares[[2, 0]]).tolist(), rel=1e-5
    )
    assert Sampler(Sampling(logprobs=0)).probabilities(LOGITS, None, 0).logprobs.top == ()
    assert Sampler(Sampling()).probabilities(LOGITS, None, 0).logprobs is None


def test_a_repetition_penalty_must_be_positive() -> None:
    with pytest.raises(ValueError, match="repetition_penalty"):
        Sampling(repetition_penalty=0)
