"""The cursor of one sequence: what may come next, and what a token that came means."""

from __future__ import annotations

from copy import copy
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from larksong.engine.events import Events


class Cursor(Protocol):
    """What a decoding loop drives: `mask` before a token is sampled, `advance` after.

    A `Matcher` is one; `Matcher` says what each method does. Inside the loop nothing raises, see `fault`.
    """

    @property
    def fault(self) -> str | None: ...
    @property
    def finished(self) -> bool: ...
    def mask(self) -> NDArray[np.int32]: ...
    def forced(self) -> tuple[int, ...]: ...
    def likely(self) -> tuple[int, ...]: ...
    def advance(self, token: int) -> Events: ...
    def finish(self) -> Events: ...
    def rollback(self, count: int) -> None: ...
    def fork(self) -> Self: ...


Inner = TypeVar("Inner", bound=Cursor)
State = TypeVar("State")


class CursorWrapper(Generic[Inner, State]):
    """Base of cursors over another one, which belongs to them from then on.

    It keeps what a subclass has to know of the sequence, one immutable state a token: `advance` is the
    subclass's, and appends one. So going back cuts a list, and a fork copies it.
    """

    def __init__(self, inner: Inner, start: State) -> None:
        self.inner = inner
        self._states = [start]

    @property
    def fault(self) -> str | None:
        """See Matcher.fault."""
        return self.inner.fault

    @property
    def finished(self) -> bool:
        """See Matcher.finished."""
        return self.inner.finished

    def mask(self) -> NDArray[np.int32]:
        """See Matcher.mask."""
        return self.inner.mask()

    def forced(self) -> tuple[int, ...]:
        """See Matcher.forced."""
        return self.inner.forced()

    def likely(self) -> tuple[int, ...]:
        """See Matcher.likely."""
        return self.inner.likely()

    def finish(self) -> Events:
        """See Matcher.finish."""
        return self.inner.finish()

    def rollback(self, count: int) -> None:
        """See Matcher.rollback."""
        self.inner.rollback(count)
        if count:
            del self._states[-count:]

    def fork(self) -> Self:
        """See Matcher.fork."""
        other = copy(self)
        other.inner = self.inner.fork()
        other._states = self._states.copy()
        return other
