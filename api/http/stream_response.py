"""A response that streams an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
from sse_starlette import EventSourceResponse
from starlette.types import Message, Receive, Scope, Send

from larksong.api.errors import ShuttingDown
from larksong.api.http.sse import StreamForm, fault_events
from larksong.api.runtime.shutdown import Shutdown


class StreamResponse(EventSourceResponse):
    """Gives back what the answer holds however the response ends, also when it never begins.

    `over` is called then, with whether the client has left.
    """

    def __init__(
        self,
        content: AsyncGenerator[bytes, None],
        shutdown: Shutdown,
        form: StreamForm,
        over: Callable[[bool], None],
        **options: Any,
    ) -> None:
        super().__init__(content, client_close_handler_callable=self._note_leaving, **options)
        self._content = content
        self._shutdown = shutdown
        self._form = form
        self._over = over
        self._sent = self._left = False

    async def _note_leaving(self, message: Message) -> None:
        self._left = not self._sent

    async def _stream_response(self, send: Send) -> None:
        # sse-starlette's own looks at the type of each event and puts a timeout around its sending.
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async with self._shutdown.cutting():
                async for event in self._content:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        except ShuttingDown as error:
            last = fault_events(error, self._form)
            await send({"type": "http.response.body", "body": last, "more_body": True})
        async with self._send_lock:  # no ping comes after the end
            self.active = False
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        self._sent = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            try:
                with anyio.CancelScope(shield=True):
                    await self._content.aclose()
            finally:
                self._over(self._left)
