"""How long reading a schema may take."""

from __future__ import annotations

from time import perf_counter, thread_time


class Clock:
    """A limit of `seconds` of this thread's processor time.

    Asking for that time is a system call, so the wall clock is asked first: no more can have been spent.
    """

    _UNASKED = 0.05

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun: float | None = None
        self._asks_at = perf_counter() + min(self._UNASKED, seconds)

    def is_over(self) -> bool:
        if perf_counter() < self._asks_at:
            return False
        now = thread_time()
        if self._begun is None:
            self._begun = now - min(self._UNASKED, self._seconds)
        left = self._begun + self._seconds - now
        self._asks_at = perf_counter() + left
        return left <= 0
