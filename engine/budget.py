"""A matcher that keeps to a number of tokens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.events import CallClose, Content, Events, FunctionOpen, Reasoning
from larksong.engine.matcher import Matcher


class _Point(NamedTuple):
    """A place in the sequence. `calls`: how many have begun; `open`: whether the last one is not closed.

    `touched`: the calls in which something was left out of a mask; `pending`: whether something was left out
    since the last call or text, so perhaps at the beginning of a call whose name is not certain yet.
    """

    calls: int
    open: bool
    touched: tuple[int, ...]
    pending: bool


class Budgeted:
    """A matcher whose turn is over, end-of-sequence token included, within `tokens` more tokens.

    Far from the limit its masks are the matcher's own. Near it they lead to the shortest valid end of value,
    call and turn. Where `tokens` is below `Matcher.needed` the end is out of reach: masks still lead towards
    it. The matcher belongs to this object from then on.
    """

    def __init__(self, matcher: Matcher, tokens: int) -> None:
        self._matcher = matcher
        self._left = tokens
        self._points = [_Point(0, False, (), False)]

    @property
    def finished_calls(self) -> tuple[int, ...]:
        """The calls, counted from 0, whose rest was not the model's free choice."""
        return self._points[-1].touched

    @property
    def limited(self) -> bool:
        """Whether some mask left something out."""
        point = self._points[-1]
        return bool(point.touched) or point.pending
