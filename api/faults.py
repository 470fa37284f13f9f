"""Faults that nobody foresaw, as answers."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from larksong.api.error_response import error_response
from larksong.api.errors import ServerFault

_logger = logging.getLogger(__name__)


class Faults:
    """Middleware: answers what the application raises with a 500, inside of the other middleware.

    Starlette's own answer is made outside of them: without a request id, and no web page could read it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application. What it raises behind the answer's beginning is raised further."""
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:
            if begun or scope["type"] != "http":
                raise
            _logger.exception("a request failed")
            await error_response(ServerFault(), scope["path"])(scope, receive, send)
