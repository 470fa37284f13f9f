"""A budget of tokens for reasoning: when it is spent, the masks lead out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from larksong.engine.backends.base import ReasoningBudget
from larksong.engine.events import Events, Reasoning
from larksong.engine.matcher import Matcher


class Thinking:
    """Counts a turn's reasoning, and closes it when the budget is spent.

    The close marker is asked for one token at a time, each only where the grammar allows it: in the middle of
    a character, or where the model has already begun to close, the model goes on until it does.
    """

    def __init__(self, budget: ReasoningBudget, matcher: Matcher) -> None:
        self._budget = budget
        self._matcher = matcher
        self._tokens = 0
        self._inside = budget.begun
        self._written = 0
        self.closing = False

    def mask(self) -> NDArray[np.int32] | None:
        """The mask with nothing but the next token of the marker, while it has to come; else None."""
        self.closing = False
        if not self._inside or self._tokens < self._budget.tokens:
            return None
        token = self._budget.close[self._written]
        if not self._matcher.allows(token):
            self._written = 0
            return None
        mask = np.zeros_like(self._matcher.end_mask)
        mask.view(np.uint32)[token >> 5] = 1 << (token & 31)
        mask.flags.writeable = False
        self.closing = True
        return mask

    def took(self, token: int, events: Events) -> None:
        """Count a token that was taken."""
        if self.closing and token == self._budget.close[self._written]:
            self._written += 1
            if self._written == len(self._budget.close):
                self._inside = False
        elif any(isinstance(event, Reasoning) for event in events):
            self._inside = True
            self._tokens += 1
        elif events:
            self._inside = False
