"""One sequence's tokens becoming steps: the part of a generation that all backends share."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from larksong.engine.backends.base import UNSEEN, Finish, Generation, Look, Step
from larksong.engine.backends.errors import BudgetTooSmall, EmptyPrompt, PromptError, PromptTooLong
from larksong.engine.backends.thinking import Thinking
from larksong.engine.budget import Budgeted
from larksong.engine.cursor import Cursor
from larksong.engine.events import Content, ParseEvent
from larksong.engine.vocabulary import Vocabulary


def tokens_left(generation: Generation, vocabulary: Vocabulary, context_length: int) -> int:
    """Most tokens that can be written. Raises PromptError for a prompt that cannot be read."""
    prompt = generation.prompt
    if not prompt:
        raise EmptyPrompt
    if len(prompt) >= context_length:
        raise PromptTooLong(len(prompt), context_length)
    if not 0 <= min(prompt) <= max(prompt) < vocabulary.width:
        raise PromptError(f"the prompt holds token ids outside the model's 0 to {vocabulary.width - 1}")
    return min(generation.max_tokens, context_length - len(prompt))


def budgeted(generation: Generation, left: int) -> Budgeted | None:
    """The matcher that keeps to `left` tokens, None where that was not asked for. Raises BudgetTooSmall."""
    if not generation.finish_within_budget or generation.matcher is None:
        return None
    needed = generation.matcher.needed()
    if needed > left:
        raise BudgetTooSmall(needed, left)
    return Budgeted(generation.matcher, left)


class Turn:
    """The cursor of one sequence: which tokens may come, and what a token that came means.

    Raises PromptError for a prompt that the vocabulary or the context cannot hold, BudgetTooSmall where the
    answer has to be finished within fewer tokens than it takes.
    """

    def __init__(self, generation: Generation, vocabulary: Vocabulary, context_length: int) -> None:
        self._left = tokens_left(generation, vocabulary, context_length)
        self._matcher: Cursor | None = generation.matcher
        self._forces = generation.forced_tokens
        self._vocabulary = vocabulary
        self._budget = budgeted(generation, self._left)
        if self._budget is not None:
            self._matcher = self._budget
        if generation.reasoning_budget is not None and generation.matcher is not None:
            self._matcher = Thinking(generation.reasoning_budget, self._budget or generation.matcher)
        self.cached_tokens = 0
        """tokens of the prompt that need not be read again; set by the backend"""
        self._mask_seconds = 0.0
        self._began = time.perf_counter()

    def mask(self) -> NDArray[np.int32] | None:
        """Packed mask of the tokens that may come next, None where all may. Identical for equal states."""
        if self._matcher is None:
            return None
        began = time.perf_counter()
        mask = self._matcher.mask()
        self._mask_seconds = time.perf_counter() - began
        return mask

    @property
    def closes_reasoning(self) -> bool:
        """Whether nothing may come but the end of reasoning."""
        return isinstance(self._matcher, Thinking) and self._matcher.closing

    def forced(self) -> tuple[Step | Finish, ...]:
        """What must come now, whatever the model says; taken."""
        items: tuple[Step | Finish, ...] = ()
        if self._forces and self._matcher is not None:
            for token in self._matcher.forced():
                items += self.take(token, 1, forced=True)
                if isinstance(items[-1], Finish):
                    break
        return items

    def likely(self) -> tuple[int, ...]:
        """What will probably come: for the model to check."""
        return self._matcher.likely() if self._forces and self._matcher is not None else ()

    def take(
        self, token: int, allowed: int, *, forced: bool = False, look: Look = UNSEEN
    ) -> tuple[Step | Finish, ...]:
        """What `token` gives: a step, a step and the end, or the end alone.

        `allowed`: how many tokens the mask of this step allowed. `forced`: it was not sampled.
        """
        text = self._vocabulary.text(token)
        if self._matcher is None:
            if token in self._vocabulary.eos_ids:
                return (self._finish("stop", ()),)
            events: tuple[ParseEvent, ...] = (Content(text),) if text else ()
        else:
            events = self._matcher.advance(token)
            if self._matcher.fault is not None:
                return (self._finish("error", events + self._matcher.finish(), self._matcher.fault),)
            if self._matcher.finished:
                limited = self._budget is not None and self._budget.limited
                return (self._finish("length" if limited else "stop", events + self._matcher.finish()),)
        elapsed = time.perf_counter() - self._began
        step = Step(
            token,
            text,
            events,
            allowed,
            elapsed,
            forced,
            look.logprobs,
            look.kept,
            self._mask_seconds,
            self.cached_tokens,
        )
        self._mask_seconds = 0.0
        self._left -= 1
        return (step,) if self._left else (step, self.end("length"))

    def end(self, reason: Literal["length", "error"], error: str | None = None) -> Finish:
        """End the sequence from outside."""
        return self._finish(reason, () if self._matcher is None else self._matcher.finish(), error)

    def _finish(
        self,
        reason: Literal["stop", "length", "error"],
        events: tuple[ParseEvent, ...],
        error: str | None = None,
    ) -> Finish:
        finished_calls = self._budget.finished_calls if self._budget is not None else None
        return Finish(reason, events, error, finished_calls, self.cached_tokens)
