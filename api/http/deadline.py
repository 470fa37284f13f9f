"""The time by which an answer must be there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import TypeVar

from larksong.api.errors import OutOfTime

T = TypeVar("T")


class Deadline:
    """So many seconds from now; None for never. Made in the event loop."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds or 0.0
        self._at = None if seconds is None else asyncio.get_running_loop().time() + seconds

    async def result(self, work: Awaitable[T]) -> T:
        """The result of `work`. Raises OutOfTime."""
        if self._at is None:
            return await work
        try:
            async with asyncio.timeout_at(self._at):
                return await work
        except TimeoutError:
            raise OutOfTime(self._seconds) from None

    def items(self, items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """The items that come in time. Raises OutOfTime."""
        return items if self._at is None else self._in_time(items)

    async def _in_time(self, items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        async with aclosing(items):
            while True:
                try:
                    # Around each item alone: a timeout must not reach into whoever reads them.
                    item = await self.result(anext(items))
                except StopAsyncIteration:
                    return
                yield item
