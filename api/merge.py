"""Several turns as one stream of their items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from larksong.api.generation import TurnEnd, TurnStep

Item = TurnStep | TurnEnd


async def merged(runs: Sequence[AsyncGenerator[Item, None]]) -> AsyncGenerator[tuple[int, Item], None]:
    """The items of all turns as they come, each with its turn's number. What one raises ends all."""
    if len(runs) == 1:
        async with aclosing(runs[0]) as items:
            async for item in items:
                yield 0, item
        return
    queue: asyncio.Queue[tuple[int, Item | BaseException | None]] = asyncio.Queue(maxsize=2 * len(runs))

    async def read(index: int) -> None:
        try:
            async with aclosing(runs[index]) as items:
                async for item in items:
                    await queue.put((index, item))
        except Exception as error:
            await queue.put((index, error))
        else:
            await queue.put((index, None))

    readers = [asyncio.create_task(read(index)) for index in range(len(runs))]
    try:
        running = len(runs)
        while running:
            index, found = await queue.get()
            if found is None:
                running -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield index, found
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
