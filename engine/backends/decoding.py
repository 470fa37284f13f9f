"""One sequence's tokens becoming steps: the part of decoding that all but exllamav3 share."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from larksong.engine.backends.base import UNMEASURED, Finish, Generation, Probabilities, Step
from larksong.engine.backends.constraint import budget_report, constrain
from larksong.engine.backends.thinking import Thinking
from larksong.engine.events import Content, ParseEvent
from larksong.engine.vocabulary import Vocabulary


class Decoding:
    """The state of one sequence: which tokens may come, and what a token that came means.

    Raises PromptError for a prompt that the vocabulary or the context cannot hold, BudgetTooSmall where the
    answer has to be finished within fewer tokens than it takes.
    """

    def __init__(self, generation: Generation, vocabulary: Vocabulary, context_length: int) -> None:
        self._cursor, self._left = constrain(generation, vocabulary, context_length)
        self._forces = generation.forced_tokens
        self._vocabulary = vocabulary
        self.cached_tokens = 0
        """tokens of the prompt that need not be read again; set by the backend"""
        self._mask_seconds = 0.0
        self._began = time.perf_counter()

    def mask(self) -> NDArray[np.int32] | None:
        """Packed mask of the tokens that may come next, None where all may. Identical for equal states."""
        if self._cursor is None:
            return None
        began = time.perf_counter()
        mask = self._cursor.mask()
        self._mask_seconds = time.perf_counter() - began
        return mask

    @property
    def closes_reasoning(self) -> bool:
        """Whether nothing may come but the end of reasoning."""
        return isinstance(self._cursor, Thinking) and self._cursor.closing

    def forced(self) -> tuple[Step | Finish, ...]:
        """What must come now, whatever the model says; taken."""
        items: tuple[Step | Finish, ...] = ()
        if self._forces and self._cursor is not None:
            for token in self._cursor.forced():
                items += self.take(token, 1, forced=True)
                if isinstance(items[-1], Finish):
                    break
        return items

    def likely(self) -> tuple[int, ...]:
        """What will probably come: for the model to check."""
        return self._cursor.likely() if self._forces and self._cursor is not None else ()

    def take(
        self, token: int, allowed: int, *, forced: bool = False, probabilities: Probabilities = UNMEASURED
    ) -> tuple[Step | Finish, ...]:
        """What `token` gives: a step, a step and the end, or the end alone.

        `allowed`: how many tokens the mask of this step allowed. `forced`: it was not sampled.
        """
        text = self._vocabulary.text(token)
        if self._cursor is None:
            if token in self._vocabulary.eos_ids:
                return (self._finish("stop", ()),)
            events: tuple[ParseEvent, ...] = (Content(text),) if text else ()
        else:
            events = self._cursor.advance(token)
            if self._cursor.fault is not None:
                return (self._finish("error", events + self._cursor.finish(), self._cursor.fault),)
            if self._cursor.finished:
                return (self._finish("stop", events + self._cursor.finish()),)
        elapsed = time.perf_counter() - self._began
        step = Step(
            token,
            text,
            events,
            allowed,
            elapsed,
            forced,
            probabilities.logprobs,
            probabilities.kept,
            self._mask_seconds,
            self.cached_tokens,
        )
        self._mask_seconds = 0.0
        self._left -= 1
        return (step,) if self._left else (step, self.end("length"))

    def end(self, reason: Literal["length", "error"], error: str | None = None) -> Finish:
        """End the sequence from outside."""
        return self._finish(reason, () if self._cursor is None else self._cursor.finish(), error)

    def _finish(
        self,
        reason: Literal["stop", "length", "error"],
        events: tuple[ParseEvent, ...],
        error: str | None = None,
    ) -> Finish:
        budget = budget_report(self._cursor)
        if reason == "stop" and budget.limited:
            reason = "length"
        return Finish(reason, events, error, budget.finished_calls, self.cached_tokens)
