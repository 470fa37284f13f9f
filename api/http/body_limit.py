"""Bodies above a limit, and compressed ones, are refused before anything reads them."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from larksong.api.errors import BodyTooLarge, CompressedBody
from larksong.api.http.error_response import ErrorResponses

# Clients look for an answer when they have sent everything: so much of it is taken and thrown away.
_DRAINED = 1 << 30


class BodyLimit:
    """Middleware: gathers the body, which the application wants whole anyway, up to `limit` bytes."""

    def __init__(self, app: ASGIApp, limit: int, errors: ErrorResponses) -> None:
        self._app = app
        self._limit = limit
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with the whole body, or answer 413 or 415."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        pieces: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            piece = message.get("body", b"")
            size += len(piece)
            if size <= self._limit:
                pieces.append(piece)
            elif size > self._limit + _DRAINED:
                break
            more = message.get("more_body", False)
        if size > self._limit:
            await self._errors(BodyTooLarge(self._limit), scope["path"])(scope, receive, send)
            return
        encoding = dict(scope["headers"]).get(b"content-encoding", b"").decode("latin-1")
        if size and encoding.lower() not in ("", "identity"):
            await self._errors(CompressedBody(encoding), scope["path"])(scope, receive, send)
            return
        body: Message | None = {"type": "http.request", "body": b"".join(pieces), "more_body": False}

        async def replay() -> Message:
            nonlocal body
            if body is not None:
                message, body = body, None
                return message
            return await receive()

        await self._app(scope, replay, send)
