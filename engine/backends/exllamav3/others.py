"""Other filters beside ours: formatron's, llguidance's, anybody's. A token must be allowed by all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from exllamav3 import Filter, Job
from numpy.typing import NDArray

from larksong.engine.packed import pack_flags, pack_mask


class Others:
    """Filters that exllamav3 does not know of. What they raise goes through to the caller, who catches it.

    A filter that is complete allows the `ends` alone where it would end the job (`eos_after_completed`), and
    everything where it would go to sleep.
    """

    def __init__(self, filters: Sequence[Filter], ends: Iterable[int]) -> None:
        self._filters = tuple(filters)
        self._ends = frozenset(ends)
        self._done: list[int] = []
        """How many filters were complete, after each token."""

    def __bool__(self) -> bool:
        return bool(self._filters)

    def attach(self, job: Job) -> None:
        """A job begins."""
        self._done.clear()
        for other in self._filters:
            other.attach(job)

    def reset(self) -> None:
        """Back to the beginning."""
        self._done.clear()
        for other in self._filters:
            other.reset()
            other.is_active = other.trigger_token is None

    def narrow(self, mask: NDArray[np.int32]) -> NDArray[np.int32]:
        """What all of them allow of `mask`; may be nothing."""
        if self._done and self._done[-1]:
            return mask & pack_mask(self._ends, len(mask))
        for other in self._filters:
            if other.is_active:
                mask = mask & _words(other.get_next_logit_mask(), len(mask))
        return mask

    def accept(self, token: int) -> None:
        """A token came."""
        done = self._done[-1] if self._done else 0
        self._done.append(done + sum(other.feed(token) for other in self._filters))

    def rollback(self, count: int) -> None:
        """The last tokens are taken back."""
        fed = min(count, len(self._done))  # the end of the turn is not fed
        for other in self._filters:
            other.rewind(fed)
        del self._done[len(self._done) - fed :]


def _words(mask: torch.Tensor, words: int) -> NDArray[np.int32]:
    """A mask in either of exllamav3's formats as `words` packed words; what it does not reach is refused."""
    row = mask.reshape(-1)
    if row.dtype == torch.int32:
        found = row.numpy()
    else:
        flags = (row > float("-inf")).numpy()
        found = pack_flags(np.pad(flags, (0, -len(flags) % 32))).view(np.int32)
    return np.pad(found[:words], (0, max(words - len(found), 0)))
