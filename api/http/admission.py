"""How many requests run at once, how many wait, and what happens to those beyond."""

from __future__ import annotations

import asyncio
import math
import time

from larksong.api.errors import QueueFull

_LONGEST_ADVICE = 60  # seconds


class Admission:
    """Lets `running` requests in at once; up to `waiting` more stand in line, first come, first served."""

    def __init__(self, running: int, waiting: int) -> None:
        self._slots = asyncio.Semaphore(running)
        self._most_running = running
        self._most_waiting = waiting
        self._usual_seconds = 1.0
        self.running = 0
        self.waiting = 0

    @property
    def is_full(self) -> bool:
        """Whether the next request would be sent away."""
        return self._slots.locked() and self.waiting >= self._most_waiting

    async def enter(self) -> float:
        """Wait for a slot; returns when it was given. Raises QueueFull. A slot is given back by `leave`."""
        if self.is_full:
            rounds = (self.waiting + 1) / self._most_running
            raise QueueFull(min(_LONGEST_ADVICE, max(1, math.ceil(rounds * self._usual_seconds))))
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        return time.monotonic()

    def leave(self, entered: float) -> None:
        """Give back a slot."""
        self.running -= 1
        self._slots.release()
        # A moving average, to tell those who are sent away when to come again.
        self._usual_seconds += 0.1 * (time.monotonic() - entered - self._usual_seconds)
