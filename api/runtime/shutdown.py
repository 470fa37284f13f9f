"""The end of a server: running answers go on for a while, then each is told why it is cut off."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from larksong.api.errors import ShuttingDown

KEEP_ALIVE_SECONDS = 75
"""How long a connection may lie idle. Clients keep theirs for 5 s (httpx) or longer, and agents pause that
long: were it closed then, too, a request now and then would go out on a connection that ends that moment."""


class Shutdown:
    """`begun`: no answer is begun any more. Those that run may go on for `seconds` then."""

    def __init__(self, seconds: float) -> None:
        self.begun = False
        self._over = False
        self._seconds = seconds
        self._answers: set[asyncio.Timeout] = set()

    def reset(self) -> None:
        """The server begins."""
        self.begun = self._over = False

    def begin(self) -> None:
        """The server was told to end. Called in its event loop."""
        self.begun = True
        asyncio.get_running_loop().call_later(self._seconds, self._cut)

    @asynccontextmanager
    async def cutting(self) -> AsyncIterator[None]:
        """Cuts off what is inside when the time is over. Raises ShuttingDown."""
        if self._over:
            raise ShuttingDown
        try:
            async with asyncio.timeout(None) as answer:
                self._answers.add(answer)
                try:
                    yield
                finally:
                    self._answers.discard(answer)
        except TimeoutError:
            if answer.expired():
                raise ShuttingDown from None
            raise

    def _cut(self) -> None:
        self._over = True
        now = asyncio.get_running_loop().time()
        for answer in self._answers:
            answer.reschedule(now)


class Server(uvicorn.Server):
    """Serves a Larksong application, and tells it when it is told to end itself."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._shutdown: Shutdown = app.state.served.shutdown

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and wait for those that are open."""
        self._shutdown.begin()
        await super().shutdown(sockets)
