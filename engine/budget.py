"""A matcher that keeps to a number of tokens, and remembers which calls it had to finish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.events import CallClose, Content, Events, FunctionOpen, Json, ParseEvent, Reasoning
from larksong.engine.matcher import Matcher


class _Point(NamedTuple):
    """A place in the sequence.

    `calls`: how many have begun. `open`: the last of them is not closed. `touched`: something was left out
    of a mask in it; while no call is open: since the last text or call, so perhaps in the beginning of the
    next one. `finished`: the calls that were touched and are closed. `ends`: only the end was left.
    `answer`: JSON was written outside of calls, as the answer itself. `limited`: the turn is over, and not of
    the model's own choice alone.
    """

    calls: int = 0
    open: bool = False
    touched: bool = False
    finished: tuple[int, ...] = ()
    ends: bool = False
    answer: bool = False
    limited: bool = False


class Budgeted:
    """A matcher whose turn is over, end-of-sequence token included, within `tokens` more tokens.

    Far from the limit its masks are the matcher's own. Near it they leave out what would lead too far away
    from the shortest valid end of value, call and turn. Where `tokens` is below `Matcher.needed` the end is
    out of reach: masks still lead towards it. The matcher belongs to this object from then on.
    """

    def __init__(self, matcher: Matcher, tokens: int) -> None:
        self._matcher = matcher
        self._left = tokens
        self._points = [_Point()]

    @property
    def fault(self) -> str | None:
        """See Matcher.fault."""
        return self._matcher.fault

    @property
    def finished(self) -> bool:
        """See Matcher.finished."""
        return self._matcher.finished

    @property
    def left(self) -> int:
        """The tokens that may still be written."""
        return self._left

    @property
    def finished_calls(self) -> tuple[int, ...]:
        """The calls, counted from 0 and complete, in which something had to be left out of a mask."""
        return self._points[-1].finished

    @property
    def limited(self) -> bool:
        """The turn is over, and the budget had a part in it: in a call or answer, or nothing else fitted."""
        return self._points[-1].limited

    def mask(self) -> NDArray[np.int32]:
        """See Matcher.mask: the tokens that may come next and leave enough to finish."""
        plain = self._matcher.mask()
        mask = self._matcher.mask_within(self._left)
        if mask is not plain:
            self._points[-1] = self._points[-1]._replace(touched=True, ends=mask is self._matcher.end_mask)
        return mask

    def forced(self) -> tuple[int, ...]:
        """See Matcher.forced: as many as leave enough to finish, since the model's own tokens may be more."""
        matcher, tokens = self._matcher, self._matcher.forced()
        for token in tokens:
            matcher.advance(token)
        for count in range(len(tokens), 0, -1):
            enough = matcher.needed() <= self._left - count
            matcher.rollback(count if enough else 1)
            if enough:
                return tokens[:count]
        return ()

    def likely(self) -> tuple[int, ...]:
        """See Matcher.likely: whatever is drafted, the masks keep to the budget."""
        return self._matcher.likely()

    def advance(self, token: int) -> Events:
        """See Matcher.advance."""
        events = self._matcher.advance(token)
        point = _read(self._points[-1], events)
        if self._matcher.finished:
            before = self._points[-1]
            cut = before.ends or (point.answer and before.touched)
            point = point._replace(limited=bool(point.finished) or cut)
        self._points.append(point)
        self._left -= 1
        return events

    def finish(self) -> Events:
        """See Matcher.finish."""
        return self._matcher.finish()

    def rollback(self, count: int) -> None:
        """See Matcher.rollback: the tokens may be spent again."""
        self._matcher.rollback(count)
        if count:
            del self._points[-count:]
            self._left += count

    def fork(self) -> Budgeted:
        """See Matcher.fork."""
        other = Budgeted(self._matcher.fork(), self._left)
        other._points = self._points.copy()
        return other


def _read(point: _Point, events: Iterable[ParseEvent]) -> _Point:
    calls, is_open, touched, finished, _, answer, _ = point
    for event in events:
        if isinstance(event, FunctionOpen):
            calls, is_open = calls + 1, True
        elif isinstance(event, CallClose):
            if touched:
                finished = (*finished, calls - 1)
            is_open = touched = False
        elif isinstance(event, Content | Reasoning):
            touched = False
        elif isinstance(event, Json) and not is_open:
            answer = True
    return _Point(calls, is_open, touched, finished, answer=answer)
