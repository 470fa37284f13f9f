"""The filter: a matcher as exllamav3 asks for it.

exllamav3 dies of a filter that raises, with every request that runs, and takes token 0 from a mask that
allows nothing. So this filter never does either: whatever fails inside of it, or inside of other filters that
it holds, is kept in `fault`; from then on the mask allows the end alone, and only this request fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from exllamav3 import Filter, Job, Tokenizer
from numpy.typing import NDArray

from larksong.engine.backends.errors import EmptyMask, Refused, SharedFilter
from larksong.engine.backends.exllamav3.others import Others
from larksong.engine.cursor import Cursor
from larksong.engine.errors import EngineError
from larksong.engine.events import Events
from larksong.engine.packed import count_ids, pack_mask

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A token that came, what it revealed, how many the mask had allowed, and when (`perf_counter`).

    `kept`: the probability that the mask left, where it was measured.
    """

    token: int
    events: Events
    allowed: int
    at: float
    forced: bool
    kept: float | None


class MatcherFilter(Filter):  # type: ignore[misc]
    """Constrains one job to a matcher's grammar, and reads it.

    `accepted` are the tokens that came while it was active, without those that exllamav3 took back.
    `ends`: the end-of-sequence ids; they must be the job's stop conditions. `also`: other filters whose masks
    must allow a token too; they are driven from here and must not be given to the job. `trigger_token`:
    constrain only what comes after this token, from the matcher's beginning each time. `min_tokens`: no end
    before so many, where the grammar allows anything else.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        matcher: Cursor,
        *,
        ends: frozenset[int],
        also: Sequence[Filter] = (),
        trigger_token: int | None = None,
        min_tokens: int = 0,
    ) -> None:
        super().__init__(tokenizer, trigger_token, None, eos_after_completed=True)
        self._start = matcher
        self._matcher = matcher.fork()
        self._others = Others(also, ends)
        words = -(-tokenizer.config.vocab_size // 32)
        self._end = pack_mask(ends, words)
        self._min_tokens = min_tokens
        self._mask = np.zeros((1, words), dtype=np.int32)
        self._tensor = torch.from_numpy(self._mask)  # shares the memory
        self._shown: NDArray[np.int32] | None = None
        self._allowed = 0
        self._forced = range(0)
        self._fault: str | None = None
        self._over = False
        self.drafts = True
        """Whether `draft` offers anything."""
        self.accepted: list[Accepted] = []
        self.measured: Callable[[], float | None] = lambda: None
        """What tells the probability that the mask of the last token left."""

    @property
    def fault(self) -> str | None:
        """Why this request has failed, or None. Nothing takes a fault back but a new job."""
        return self._fault

    @property
    def finished(self) -> bool:
        """Whether an end-of-sequence token was accepted."""
        return self._fault is None and self._over

    @property
    def cursor(self) -> Cursor:
        """The matcher where it stands now."""
        return self._matcher

    def finish(self) -> Events:
        """What the end of the text reveals (see `Matcher.finish`)."""
        try:
            return self._matcher.finish()
        except Exception as error:
            self._fail(error)
            return ()

    def draft(self) -> tuple[int, ...]:
        """Tokens for the model to check: those that must come, and what is likely behind them."""
        if not self.drafts or self._fault is not None or not self.is_active or self._others:
            return ()
        try:
            forced, likely = self._matcher.forced(), self._matcher.likely()
        except Exception as error:
            self._fail(error)
            return ()
        self._forced = range(len(self.accepted), len(self.accepted) + len(forced))
        return likely if len(likely) > len(forced) else forced

    # -- exllamav3's side

    def attach(self, job: Job) -> None:
        """A job begins."""
        known = [*job.generator.active_jobs, *job.generator.pending_jobs]
        shared = self.job is not job and any(each is self.job for each in known)
        super().attach(job)
        self.accepted.clear()
        self._forced = range(0)
        self._fault = None
        try:
            if shared:
                raise SharedFilter
            self._others.attach(job)
        except Exception as error:
            self._fail(error)

    def reset(self) -> None:
        """The grammar begins: with the job, and at each trigger."""
        try:
            self._over = False
            self._matcher = self._start.fork()
            self._others.reset()
        except Exception as error:
            self._fail(error)

    def _rebuild(self) -> None:
        """exllamav3 goes back before a trigger, and replays all tokens from the job's beginning."""
        self.accepted.clear()
        super()._rebuild()

    def get_next_logit_mask(self) -> torch.Tensor:
        """The packed mask, shape (1, words), in the same memory every time; never empty."""
        try:
            mask = self._end if self._fault is not None else self._next()
        except Exception as error:
            self._fail(error)
            mask = self._end
        if mask is not self._shown:  # the same tokens are the same mask, and often come one after the other
            np.copyto(self._mask[0], mask)
            self._allowed = count_ids(self._mask)
            self._shown = mask
        return self._tensor

    def _next(self) -> NDArray[np.int32]:
        """What may come next. Raises EmptyMask, and whatever fails inside."""
        mask = self._matcher.mask()
        if self._others:
            mask = self._others.narrow(mask)
        if mask is not self._shown and not mask.any():
            raise EmptyMask("the filters of this request have no token in common that may come next")
        left = mask
        # exllamav3 takes these out of the mask that it gets, and takes token 0 of nothing.
        for why, taken in self._taken_out():
            left = left & ~pack_mask(taken, len(mask))
            if not left.any():
                raise EmptyMask(why)
        if len(self.accepted) < self._min_tokens and (left & ~self._end).any():
            mask = mask & ~self._end
        return mask

    def _taken_out(self) -> Iterator[tuple[str, Sequence[int]]]:
        """The tokens that the job itself bans here, and what is wrong where no other is left."""
        held = getattr(self.job, "checkpoint", None)
        if held and held["offset"] == 0:  # they have begun a banned string here, and may not do so again
            yield "banned strings leave no token that the grammar allows", held["explored_tokens"]
        if self.job is not None and self.job.new_tokens < self.job.min_new_tokens:
            yield (
                "min_new_tokens bans the end, and the grammar allows nothing else",
                [token for token in self.job.stop_tokens if token < self._mask.shape[1] * 32],
            )

    def accept_token(self, token: int) -> None:
        """A token came: sampled, or checked as a draft."""
        events: Events = ()
        try:
            if self._fault is None:  # else it is the end, which the matcher need not allow
                events = self._matcher.advance(token)
                if self._matcher.fault is not None:
                    raise Refused(self._matcher.fault)
                self._over = self._matcher.finished
                if self._others and not self._over:
                    self._others.accept(token)
        except Exception as error:
            self._fail(error)
        forced = len(self.accepted) in self._forced
        now = time.perf_counter()
        self.accepted.append(Accepted(token, events, self._allowed, now, forced, self.measured()))

    def rollback_tokens(self, num_tokens: int) -> bool:
        """exllamav3 takes the last tokens back (banned strings)."""
        try:
            self._over = False
            self._matcher.rollback(num_tokens)
            self._others.rollback(num_tokens)
        except Exception as error:
            self._fail(error)
        del self.accepted[-num_tokens:]
        self._forced = range(0)
        return True

    def is_completed(self) -> bool:
        """Whether the turn is over, or has failed. The job ends with it."""
        return self._fault is not None or self._over

    def use_background_worker(self) -> bool:
        """Masks are made while the GPU works."""
        return True

    def _fail(self, error: Exception) -> None:
        if self._fault is None:
            # llguidance's errors go on for pages, with its state and grammar.
            line = str(error).partition("\n")[0]
            self._fault = line if isinstance(error, EngineError) else f"{type(error).__name__}: {line}"
            _log.error("a request failed: %s", self._fault, exc_info=error)
