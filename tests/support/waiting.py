"""Waiting for what must come, however slow the machine is, instead of sleeping for a guessed time."""

import asyncio
import time
from collections.abc import Callable

LIMIT = 60.0  # seconds


def wait_until(true: Callable[[], object], *, pause: float = 0.01) -> None:
    """Look every `pause` seconds; fail after a minute."""
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(pause)


async def until(true: Callable[[], object], *, pause: float = 0.002) -> None:
    """The same, while the event loop goes on."""
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(pause)
