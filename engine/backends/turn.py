"""One sequence's tokens becoming steps: the part of a generation that all backends share."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.errors import EmptyPrompt, PromptError, PromptTooLong
from larksong.engine.events import Content, ParseEvent
from larksong.engine.vocabulary import Vocabulary


class Turn:
    """The cursor of one sequence: which tokens may come, and what a token that came means.

    Raises PromptError for a prompt that the vocabulary or the context cannot hold.
    """

    def __init__(self, generation: Generation, vocabulary: Vocabulary, context_length: int) -> None:
        prompt = generation.prompt
        if not prompt:
            raise EmptyPrompt
        if len(prompt) >= context_length:
            raise PromptTooLong(len(prompt), context_length)
        if not 0 <= min(prompt) <= max(prompt) < vocabulary.width:
            raise PromptError(f"the prompt holds token ids outside the model's 0 to {vocabulary.width - 1}")
        self._matcher = generation.matcher
        self._vocabulary = vocabulary
        self._left = min(generation.max_tokens, context_length - len(prompt))
        self._began = time.perf_counter()

    def mask(self) -> NDArray[np.int32] | None:
        """Packed mask of the tokens that may come next, None where all may. Identical for equal states."""
        return None if self._matcher is None else self._matcher.mask()

    def take(self, token: int, allowed: int) -> tuple[Step | Finish, ...]:
        """What the sampled `token` gives: a step, a step and the end, or the end alone.

        `allowed`: how many tokens the mask of this step allowed.
        """
        text = self._vocabulary.tokens[token] if token < len(self._vocabulary.tokens) else b""
        if self._matcher is None:
            if token in self._vocabulary.eos_ids:
                return (Finish("stop", ()),)
            events: tuple[ParseEvent, ...] = (Content(text),) if text else ()
        else:
            events = self._matcher.advance(token)
            if self._matcher.fault is not None:
                return (Finish("error", events + self._matcher.finish(), self._matcher.fault),)
            if self._matcher.finished:
                return (Finish("stop", events + self._matcher.finish()),)
        step = Step(token, text, events, allowed, time.perf_counter() - self._began)
        self._left -= 1
        return (step,) if self._left else (step, self.end("length"))

    def end(self, reason: Literal["length", "error"], error: str | None = None) -> Finish:
        """End the sequence from outside."""
        return Finish(reason, () if self._matcher is None else self._matcher.finish(), error)
