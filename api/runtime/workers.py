"""Threads for work of milliseconds that must not hold up the streams: chat templates, encoding, grammars."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# They share one interpreter with the event loop, which waits for each one that computes: a few are enough.
_POOL = ThreadPoolExecutor(4, thread_name_prefix="larksong-worker")


async def in_worker(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What `function` returns, in the caller's context."""
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(
        _POOL, lambda: context.run(function, *args, **kwargs)
    )
