"""Bodies are read as JSON: large ones by a worker, so that streams go on meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from larksong.api.runtime.workers import in_worker

_LARGE = 1 << 18  # some milliseconds


class _Request(Request):
    async def json(self) -> Any:
        body = await self.body()
        value = await in_worker(_read, body) if len(body) > _LARGE else await super().json()
        self.scope[_FIELDS] = frozenset(value) if isinstance(value, dict) else frozenset()
        return value


def given_fields(request: Request) -> frozenset[str]:
    """The fields that the body has, by the names that it has for them."""
    fields: frozenset[str] = request.scope.get(_FIELDS, frozenset())
    return fields


_FIELDS = "larksong.fields"


class BodyRoute(APIRoute):
    """A route whose body is JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, with a request of our own."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_Request(request.scope, request.receive))

        return handler


def _read(body: bytes) -> Any:
    # json.loads keeps Python's lock to its end, but for the calls of a hook.
    return json.loads(body, object_hook=_as_it_is)


def _as_it_is(value: dict[str, Any]) -> dict[str, Any]:
    return value
