"""Several streams as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

from larksong.api.turns.turn import Turn, TurnEnd, TurnStep

T = TypeVar("T")


def merged(runs: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    """What all of them give, as it comes. What one raises ends all."""
    return runs[0] if len(runs) == 1 else _merged(runs)


def numbered(turns: Sequence[Turn]) -> AsyncGenerator[tuple[int, TurnStep | TurnEnd], None]:
    """The items of all turns as they come, each with its turn's number."""
    return merged([_numbered(index, turn) for index, turn in enumerate(turns)])


async def _numbered(index: int, turn: Turn) -> AsyncGenerator[tuple[int, TurnStep | TurnEnd], None]:
    async with aclosing(turn.run()) as items:
        async for item in items:
            yield index, item


async def _merged(runs: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    queue: asyncio.Queue[tuple[T] | Exception | None] = asyncio.Queue(maxsize=2 * len(runs))

    async def read(run: AsyncGenerator[T, None]) -> None:
        try:
            async with aclosing(run) as items:
                async for item in items:
                    await queue.put((item,))
        except Exception as error:
            await queue.put(error)
        else:
            await queue.put(None)

    readers = [asyncio.create_task(read(run)) for run in runs]
    try:
        running = len(runs)
        while running:
            found = await queue.get()
            if found is None:
                running -= 1
            elif isinstance(found, Exception):
                raise found
            else:
                yield found[0]
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
