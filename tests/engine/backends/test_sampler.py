"""Drawing tokens: each filter keeps what its definition says, the mask is exact, seeds repeat."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from larksong.engine.backends.base import Sampling
from larksong.engine.backends.sampler import AllowedCounts, MaskBias, Sampler

# Five tokens with probabilities 0.05, 0.5, 0.3, 0.1, 0.05.
LOGITS = np.log(np.array([0.05, 0.5, 0.3, 0.1, 0.05], np.float32))
FINITE = st.floats(-50, 50, width=32)
ROWS = arrays.arrays(np.float32, st.integers(1, 3000), elements=FINITE, fill=FINITE)


def drawn(sampling: Sampling, logits: NDArray[np.float32] = LOGITS, count: int = 400) -> set[int]:
    sampler = Sampler(sampling)
    return {sampler.draw(logits.copy()) for _ in range(count)}


def test_temperature_zero_takes_the_likeliest() -> None:
    assert drawn(Sampling(temperature=0, seed=1)) == {1}


def test_everything_may_come_without_filters() -> None:
    assert drawn(Sampling(seed=1)) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(top_k=2, seed=1), {1, 2}),
        (Sampling(top_k=100, seed=1), {0, 1, 2, 3, 4}),
        (Sampling(top_p=0.5, seed=1), {1}),
        (Sampling(top_p=0.7, seed=1), {1, 2}),
        (Sampling(top_p=0.001, seed=1), {1}),
        (Sampling(min_p=0.15, seed=1), {1, 2, 3}),
        (Sampling(min_p=1, seed=1), {1}),
        (Sampling(top_k=3, top_p=0.85, seed=1), {1, 2}),  # 0.5 and 0.3 are 0.89 of what top-k leaves
        (Sampling(top_p=0.97, min_p=0.15, seed=1), {1, 2, 3}),
        (Sampling(temperature=1e-6, seed=1), {1}),
    ],
)
def test_filters_keep_what_they_say(sampling: Sampling, kept: set[int]) -> None:
    assert drawn(sampling) == kept


def test_tokens_come_as_often_as_their_probability_says() -> None:
    sampler = Sampler(Sampling(temperature=2, seed=5))
    counts = np.bincount([sampler.draw(LOGITS) for _ in range(20_000)], minlength=5)
    expected = np.exp(LOGITS / 2) / np.exp(LOGITS / 2).sum()
    np.testing.assert_allclose(counts / 20_000, expected, atol=0.015)


def test_a_flat_row_wider_than_the_shortlist_is_cut_at_the_right_mass() -> None:
    flat = np.zeros(1300, np.float32)
    sampler = Sampler(Sampling(top_p=0.9, seed=2))
    assert len({sampler.draw(flat) for _ in range(20_000)}) == 1170


def test_a_seed_repeats_and_seeds_differ() -> None:
    def run(seed: int | None) -> list[int]:
        sampler = Sampler(Sampling(seed=seed))
        return [sampler.draw(LOGITS) for _ in range(30)]

    assert run(3) == run(3)
    assert run(3) != run(4)
    assert run(None) != run(None)


@given(
    logits=ROWS,
    seed=st.integers(0, 2**32),
    temperature=st.sampled_from([0.0, 1e-4, 0.7, 1.0, 100.0]),
    top_p=st.floats(0.01, 1),
    top_k=st.integers(0, 50),
    min_p=st.floats(0, 1),
    data=st.data(),
)
def test_a_masked_token_is_never_drawn(
    logits: NDArray[np.float32],
    seed: int,
    temperature: float,
    top_p: float,
    top_k: int,
    min_p: float,
    data: st.DataObject,
) -> None:
    allowed = data.draw(st.sets(st.integers(0, len(logits) - 1), min_size=1, max_size=20))
    bias, count = MaskBias(len(logits)).get(pack(allowed, len(logits)))
    assert count == len(allowed)
    sampler = Sampler(Sampling(temperature, top_k, top_p, min_p, seed))
    assert sampler.draw(logits + bias) in allowed


def pack(allowed: set[int], width: int) -> NDArray[np.int32]:
    mask = np.zeros((width + 31) // 32, np.uint32)
    for token in allowed:
        mask[token >> 5] |= np.uint32(1 << (token & 31))
    return mask.view(np.int32)


def test_all_tokens_of_a_mask_are_counted() -> None:
    for allowed in (set(), {31}, {0, 31, 32, 99}, set(range(100))):
        assert AllowedCounts().of(pack(allowed, 100)) == len(allowed)


def test_a_bias_is_kept_by_the_identity_of_its_mask() -> None:
    biases = MaskBias(100, keep=2)
    one, two, three = (pack({token}, 100) for token in range(3))
    first, _ = biases.get(one)
    assert biases.get(one)[0] is first
    biases.get(two)
    biases.get(one)
    biases.get(three)  # drops the one unused for longest: two
    assert biases.get(one)[0] is first
    assert np.flatnonzero(biases.get(two)[0] == 0).tolist() == [1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"min_p": 2.0}, "min_p"),
    ],
)
def test_settings_outside_their_range_are_named(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sampling(**settings)  # type: ignore[arg-type]
