"""A budget of tokens for reasoning: when it is spent, the masks lead out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.backends.base import ReasoningBudget
from larksong.engine.budget import Budgeted
from larksong.engine.events import Events, Reasoning
from larksong.engine.matcher import Matcher


class _Point(NamedTuple):
    """How far reasoning has come: its tokens, whether it goes on, tokens of the close marker in a row."""

    tokens: int
    inside: bool
    written: int


class Thinking:
    """A cursor that counts a turn's reasoning, and closes it when the budget is spent.

    The close marker is asked for one token at a time, each only where the grammar allows it: in the middle of
    a character, or where the model has already begun to close, the model goes on until it does.
    """

    def __init__(self, budget: ReasoningBudget, cursor: Matcher | Budgeted) -> None:
        self.cursor = cursor
        self._budget = budget
        self._points = [_Point(0, budget.begun, 0)]

    @property
    def fault(self) -> str | None:
        """See Matcher.fault."""
        return self.cursor.fault

    @property
    def finished(self) -> bool:
        """See Matcher.finished."""
        return self.cursor.finished

    @property
    def closing(self) -> bool:
        """Whether nothing may come but the next token of the close marker."""
        return self._due() is not None

    def _due(self) -> int | None:
        point = self._points[-1]
        if not point.inside or point.tokens < self._budget.tokens:
            return None
        token = self._budget.close[point.written]
        return token if self.cursor.mask()[token >> 5] >> (token & 31) & 1 else None

    def mask(self) -> NDArray[np.int32]:
        """See Matcher.mask; while reasoning has to end, the next token of the marker alone."""
        mask, token = self.cursor.mask(), self._due()
        if token is None:
            return mask
        alone = np.zeros_like(mask)
        alone.view(np.uint32)[token >> 5] = 1 << (token & 31)
        alone.flags.writeable = False
        return alone

    def forced(self) -> tuple[int, ...]:
        """See Matcher.forced."""
        return () if self.closing else self.cursor.forced()

    def likely(self) -> tuple[int, ...]:
        """See Matcher.likely: what is left of the marker, while reasoning has to end."""
        return self._budget.close[self._points[-1].written :] if self.closing else self.cursor.likely()

    def advance(self, token: int) -> Events:
        """See Matcher.advance."""
        tokens, inside, written = self._points[-1]
        due = self._due()
        events = self.cursor.advance(token)
        if token == due:
            written += 1
            inside = written < len(self._budget.close)
        else:
            written = 0
            if any(isinstance(event, Reasoning) for event in events):
                tokens, inside = tokens + 1, True
            elif events:
                inside = False
        self._points.append(_Point(tokens, inside, written))
        return events

    def finish(self) -> Events:
        """See Matcher.finish."""
        return self.cursor.finish()

    def rollback(self, count: int) -> None:
        """See Matcher.rollback."""
        self.cursor.rollback(count)
        if count:
            del self._points[-count:]

    def fork(self) -> Thinking:
        """See Matcher.fork."""
        other = Thinking(self._budget, self.cursor.fork())
        other._points = self._points.copy()
        return other
