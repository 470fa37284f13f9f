"""Structured logs: a line an event, as JSON or as words, each with the id of its request.

What clients send and models write is not logged, unless the setting `log_prompts` asks for it.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from larksong.api.errors import ServerFault
from larksong.api.http.error_response import ErrorResponses
from larksong.api.http.metrics import Metrics
from larksong.api.runtime.ids import new_id

request_id: ContextVar[str] = ContextVar("request_id", default="")
access = logging.getLogger("larksong.access")
_logger = logging.getLogger(__name__)

_LONGEST_ID = 128


def set_up(format: Literal["text", "json"], level: str) -> None:
    """Send all logs of the process to standard error."""
    handler = _StandardError()
    handler.setFormatter(_Formatter(format))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    logging.getLogger("uvicorn.access").disabled = True  # `AccessLog` tells more
    logging.getLogger("sse_starlette").setLevel(logging.WARNING)


class _StandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            # Looked up each time: whoever redirects it later gets the lines.
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


class _Formatter(logging.Formatter):
    def __init__(self, kind: Literal["text", "json"]) -> None:
        super().__init__()
        self._kind = kind

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if id := request_id.get():
            event["request_id"] = id
        event |= getattr(record, "fields", {})
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        if self._kind == "json":
            return json.dumps(event, default=str)
        head = f"{event.pop('time')} {event.pop('level')} {event.pop('message')}"
        trace = event.pop("traceback", None)
        words = [head, *(f"{key}={json.dumps(value, default=str)}" for key, value in event.items())]
        return " ".join(words) + (f"\n{trace}" if trace else "")


class AccessLog:
    """Middleware: gives each request an id, and one line and the figures of it when it is over.

    The id is the client's `X-Request-Id` or a new one; the response has it in the same header. What the
    application raises is logged and answered as the server's fault.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, errors: ErrorResponses) -> None:
        self._app = app
        self._metrics = metrics
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")[:_LONGEST_ID]
        id = given if given.isascii() and given.isprintable() and given else new_id("req_")
        token = request_id.set(id)
        began, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = headers["request-id"] = id  # OpenAI's name and Anthropic's
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:
            if status:
                raise  # behind the beginning of an answer nothing can be said but that it breaks off
            _logger.exception("a request failed")
            await self._errors(ServerFault(), scope["path"])(scope, receive, noted)
        finally:
            seconds = time.perf_counter() - began
            route = scope.get("route")
            path = getattr(route, "path", None) or "other"
            fields = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status or 499,
                "ms": round(seconds * 1000, 1),
                **scope.get("state", {}).get("log", {}),
            }
            self._metrics.requests.labels(path, str(fields["status"])).inc()
            self._metrics.seconds.labels(path).observe(seconds)
            access.info("request", extra={"fields": fields})
            request_id.reset(token)
