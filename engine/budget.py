"""A matcher that keeps to a number of tokens, and remembers which calls it had to finish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.cursor import CursorWrapper
from larksong.engine.events import CallClose, Content, Events, FunctionOpen, Json, ParseEvent, Reasoning
from larksong.engine.matcher import Matcher


class _Calls(NamedTuple):
    """What the sequence has written so far.

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


class Budgeted(CursorWrapper[Matcher, _Calls]):
    """A matcher whose turn is over, end-of-sequence token included, within `tokens` more tokens.

    Far from the limit its masks are the matcher's own. Near it they leave out what would lead too far away
    from the shortest valid end of value, call and turn. Where `tokens` is below `Matcher.needed` the end is
    out of reach: masks still lead towards it.
    """

    def __init__(self, matcher: Matcher, tokens: int) -> None:
        super().__init__(matcher, _Calls())
        self._tokens = tokens

    @property
    def left(self) -> int:
        """The tokens that may still be written."""
        return self._tokens - (len(self._states) - 1)

    @property
    def finished_calls(self) -> tuple[int, ...]:
        """The calls, counted from 0 and complete, in which something had to be left out of a mask."""
        return self._states[-1].finished

    @property
    def limited(self) -> bool:
        """The turn is over, and the budget had a part in it: in a call or answer, or nothing else fitted."""
        return self._states[-1].limited

    def mask(self) -> NDArray[np.int32]:
        """See Matcher.mask: the tokens that may come next and leave enough to finish."""
        plain = self.inner.mask()
        mask = self.inner.mask_within(self.left)
        if mask is not plain:
            self._states[-1] = self._states[-1]._replace(touched=True, ends=mask is self.inner.end_mask)
        return mask

    def forced(self) -> tuple[int, ...]:
        """See Matcher.forced: as many as leave enough to finish, since the model's own tokens may be more."""
        matcher, tokens = self.inner, self.inner.forced()
        for token in tokens:
            matcher.advance(token)
        for count in range(len(tokens), 0, -1):
            enough = matcher.needed() <= self.left - count
            matcher.rollback(count if enough else 1)
            if enough:
                return tokens[:count]
        return ()

    def advance(self, token: int) -> Events:
        """See Matcher.advance."""
        events = self.inner.advance(token)
        before = self._states[-1]
        after = _read(before, events)
        if self.inner.finished:
            cut = before.ends or (after.answer and before.touched)
            after = after._replace(limited=bool(after.finished) or cut)
        self._states.append(after)
        return events


def _read(before: _Calls, events: Iterable[ParseEvent]) -> _Calls:
    calls, is_open, touched, finished, _, answer, _ = before
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
    return _Calls(calls, is_open, touched, finished, answer=answer)
