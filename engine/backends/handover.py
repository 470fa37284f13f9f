"""Items on their way from a worker thread to one asyncio consumer, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Handover(Generic[T]):
    """A queue between threads that never blocks the producer: it asks `full` and does something else instead.

    Made inside the consumer's running event loop. `on_space` is called, in that loop, when a full queue has
    room again.
    """

    def __init__(self, bound: int, on_space: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._bound = bound
        self._on_space = on_space
        self._items: deque[T] = deque()
        self._arrived = asyncio.Event()

    @property
    def full(self) -> bool:
        return len(self._items) >= self._bound

    def put(self, item: T) -> None:
        """From the producer's thread. A consumer whose loop has ended gets nothing."""
        self.put_unannounced(item)
        announce([self])

    def put_unannounced(self, item: T) -> None:
        """Like `put`, but the consumer is not woken: `announce` does that for many at once."""
        self._items.append(item)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The consumer's loop."""
        return self._loop

    def wake(self) -> None:
        """In the consumer's loop: there are items."""
        self._arrived.set()

    async def get(self) -> T:
        """In the consumer's loop: the next item, in order."""
        while not self._items:
            self._arrived.clear()
            # An item that came before the clear set an event that is now lost: look again.
            if not self._items:
                await self._arrived.wait()
        was_full = self.full
        item = self._items.popleft()
        if was_full and not self.full:
            self._on_space()
        return item


def announce(handovers: Sequence[Handover[Any]]) -> None:
    """Wake the consumers of all of them, with one call into each loop.

    A call a consumer would let the loop take the interpreter from the producer as many times in every step.
    """
    for loop in {handover.loop for handover in handovers}:
        woken = [handover for handover in handovers if handover.loop is loop]
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_wake, woken)


def _wake(handovers: Sequence[Handover[Any]]) -> None:
    for handover in handovers:
        handover.wake()
