"""A budget of tokens for reasoning: when it is spent, the masks lead out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.backends.base import ReasoningBudget
from larksong.engine.cursor import Cursor, CursorWrapper
from larksong.engine.events import Events, Reasoning
from larksong.engine.packed import allows, pack_mask


class _Reasoned(NamedTuple):
    """How far reasoning has come: its tokens, whether it goes on, tokens of the close marker in a row."""

    tokens: int
    inside: bool
    written: int


class Thinking(CursorWrapper[Cursor, _Reasoned]):
    """A cursor that counts a turn's reasoning, and closes it when the budget is spent.

    The close marker is asked for one token at a time, each only where the grammar allows it: in the middle of
    a character, or where the model has already begun to close, the model goes on until it does.
    """

    def __init__(self, budget: ReasoningBudget, inner: Cursor) -> None:
        super().__init__(inner, _Reasoned(0, budget.begun, 0))
        self._budget = budget

    @property
    def closing(self) -> bool:
        """Whether nothing may come but the next token of the close marker."""
        return self._due() is not None

    def _due(self) -> int | None:
        now = self._states[-1]
        if not now.inside or now.tokens < self._budget.tokens:
            return None
        token = self._budget.close[now.written]
        return token if allows(self.inner.mask(), token) else None

    def mask(self) -> NDArray[np.int32]:
        """See Matcher.mask; while reasoning has to end, the next token of the marker alone."""
        mask, token = self.inner.mask(), self._due()
        if token is None:
            return mask
        alone = pack_mask([token], len(mask))
        alone.flags.writeable = False
        return alone

    def forced(self) -> tuple[int, ...]:
        """See Matcher.forced."""
        return () if self.closing else self.inner.forced()

    def likely(self) -> tuple[int, ...]:
        """See Matcher.likely: what is left of the marker, while reasoning has to end."""
        return self._budget.close[self._states[-1].written :] if self.closing else self.inner.likely()

    def advance(self, token: int) -> Events:
        """See Matcher.advance."""
        tokens, inside, written = self._states[-1]
        due = self._due()
        events = self.inner.advance(token)
        if token == due:
            written += 1
            inside = written < len(self._budget.close)
        else:
            written = 0
            if any(isinstance(event, Reasoning) for event in events):
                tokens, inside = tokens + 1, True
            elif events:
                inside = False
        self._states.append(_Reasoned(tokens, inside, written))
        return events
