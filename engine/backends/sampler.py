"""From one row of logits to a token: penalties, the mask as a cached bias, temperature, top-k, top-p, min-p.

Everything runs in numpy on one thread. A row is small, and torch's threads cost more than they bring here:
with busy cores a plain addition of 151,936 floats takes 16 ms on two threads and 0.07 ms on one.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from larksong.engine.backends.base import Logprobs, Probabilities, Sampling
from larksong.engine.backends.penalties import Penalties
from larksong.engine.packed import count_ids, unpack

Logits = NDArray[np.float32]


class Sampler:
    """Draws the tokens of one sequence, from its own random numbers, whatever else runs.

    `prompt`: what the penalties count beside the answer. `ends`: the tokens that end a turn.
    `breakers`: those of `Sampling.dry_sequence_breakers`.
    """

    def __init__(
        self,
        sampling: Sampling,
        prompt: Sequence[int] = (),
        ends: frozenset[int] = frozenset(),
        breakers: frozenset[int] = frozenset(),
    ) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)
        self._penalties = Penalties(sampling, prompt, ends, breakers)

    def penalised(self, logits: Logits) -> Logits:
        """The logits, shape (width,), with what penalties and biases take and give. Unmasked ones."""
        return self._penalties.apply(logits)

    def took(self, token: int) -> None:
        """Count a token of the answer, drawn or forced."""
        self._penalties.took(token)

    def probabilities(self, raw: Logits, bias: Logits | None, token: int) -> Probabilities:
        """What the model thought of `token`, from its own logits, shape (width,)."""
        top = raw.max()
        weights = np.exp(raw - top, dtype=np.float32)
        total = float(weights.sum(dtype=np.float64))
        kept = 1.0 if bias is None else float(weights[bias == 0].sum(dtype=np.float64)) / total
        if self._sampling.logprobs is None:
            return Probabilities(kept)
        log_total = float(top) + float(np.log(total))
        count = min(self._sampling.logprobs, len(raw))
        best = np.argpartition(raw, -count)[-count:] if count else np.empty(0, np.intp)
        best = best[np.argsort(-raw[best], kind="stable")]
        listed = tuple((int(i), float(raw[i]) - log_total) for i in best)
        return Probabilities(kept, Logprobs(float(raw[token]) - log_total, listed))

    def draw(self, logits: Logits) -> int:
        """A token id for `logits`, shape (width,); masked ones are -inf, at least one is not."""
        settings = self._sampling
        if settings.temperature == 0:
            return int(logits.argmax())
        ids = None
        if 0 < settings.top_k < len(logits):
            ids = np.argpartition(logits, -settings.top_k)[-settings.top_k :]
            logits = logits[ids]
        # Subtracting first keeps a tiny temperature from overflowing.
        weights = np.exp((logits - logits.max()) / np.float32(settings.temperature), dtype=np.float32)
        if settings.top_p < 1:
            kept = _likeliest(weights, settings.top_p)
            weights = weights[kept]
            ids = kept if ids is None else ids[kept]
        if settings.min_p > 0:
            weights = np.where(weights < settings.min_p * weights.max(), np.float32(0), weights)
        # Inverse of the cumulative distribution. "right" never lands on a weight of 0.
        cumulative = weights.cumsum(dtype=np.float64)
        drawn = int(np.searchsorted(cumulative, self._random.random() * cumulative[-1], side="right"))
        return drawn if ids is None else int(ids[drawn])


def _likeliest(weights: Logits, share: float) -> NDArray[np.intp]:
    """Indices of the fewest largest weights that together reach `share` of the sum."""
    target = share * weights.sum(dtype=np.float64)
    size = min(1024, len(weights))  # nearly always enough, and far cheaper than sorting a vocabulary
    while True:
        largest = np.argpartition(weights, -size)[-size:]
        if size == len(weights) or weights[largest].sum(dtype=np.float64) >= target:
            break
        size = len(weights)
    order = largest[np.argsort(-weights[largest], kind="stable")]
    before = np.cumsum(weights[order], dtype=np.float64) - weights[order]
    kept: NDArray[np.intp] = order[before < target]
    return kept


class MaskBias:
    """Packed masks as what is added to the logits: 0 where allowed, -inf elsewhere.

    A matcher gives the identical object for identical masks, so the last few are kept by identity: adding a
    ready bias costs a fifth of unpacking the mask.
    """

    def __init__(self, width: int, keep: int = 64) -> None:
        self._width = width
        self._keep = keep
        # The mask is kept with its bias, so that its id stays its own.
        self._cache: OrderedDict[int, tuple[NDArray[np.int32], Logits, int]] = OrderedDict()

    def get(self, mask: NDArray[np.int32]) -> tuple[Logits, int]:
        """The bias, shape (width,), and how many tokens the mask allows."""
        if (found := self._cache.get(id(mask))) is None:
            bits = unpack(mask, self._width)
            bias = np.where(bits, np.float32(0), np.float32(-np.inf))
            found = self._cache[id(mask)] = (mask, bias, int(np.count_nonzero(bits)))
            if len(self._cache) > self._keep:
                self._cache.popitem(last=False)
        self._cache.move_to_end(id(mask))
        return found[1], found[2]


class AllowedCounts:
    """How many tokens masks allow; the last few are kept by identity, as in `MaskBias`."""

    def __init__(self, keep: int = 256) -> None:
        self._keep = keep
        self._cache: OrderedDict[int, tuple[NDArray[np.int32], int]] = OrderedDict()

    def of(self, mask: NDArray[np.int32]) -> int:
        """The tokens of a packed mask."""
        found = self._cache.get(id(mask))
        if found is None:
            found = self._cache[id(mask)] = (mask, count_ids(mask))
            if len(self._cache) > self._keep:
                self._cache.popitem(last=False)
        return found[1]
