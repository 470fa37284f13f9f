"""The HTTP application."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from larksong.api.anthropic import errors as anthropic_errors
from larksong.api.anthropic import routes as anthropic
from larksong.api.errors import ApiError, invalid_request
from larksong.api.http import health
from larksong.api.http.answers import MAX_TOKENS_HEADER
from larksong.api.http.auth import ApiKeys, KeyCheck
from larksong.api.http.body_json import given_fields
from larksong.api.http.body_limit import BodyLimit
from larksong.api.http.error_response import ErrorResponses
from larksong.api.http.logs import AccessLog
from larksong.api.http.served import Served
from larksong.api.inspector import page as inspector_page
from larksong.api.inspector import routes as inspector
from larksong.api.inspector.live import LiveTurns
from larksong.api.openai_chat import model_routes
from larksong.api.openai_chat import routes as openai_chat
from larksong.api.openai_chat.aliases import given_name
from larksong.api.openai_chat.schemas import ErrorShape
from larksong.api.raw_text import completions, tokens
from larksong.api.responses import routes as responses
from larksong.api.settings.cors_settings import origins_of
from larksong.api.settings.settings import Settings
from larksong.api.turns.model import Model

# What the event loop waits for each thread that computes (the model's, workers'), at most; Python's 5 ms are
# a delay that readers of a stream notice when a few threads do.
_SWITCH_SECONDS = 0.0005

_ERRORS = {
    status: {"model": ErrorShape} for status in (400, 401, 404, 405, 413, 415, 422, 429, 500, 503, 504)
}


def create_app(models: Sequence[Model], settings: Settings | None = None) -> FastAPI:
    """A server of `models`, whose backends it closes when it ends."""
    settings = settings or Settings()
    served = Served.of(models, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        served.shutdown.reset()
        sys.setswitchinterval(_SWITCH_SECONDS)
        yield
        served.shutdown.begun = True
        for model in models:
            model.backend.close()

    app = FastAPI(title="Larksong", lifespan=lifespan, responses=dict(_ERRORS))  # type: ignore[arg-type]
    app.state.served = served
    for routes in (openai_chat, completions, anthropic, responses, tokens, health):
        app.include_router(routes.router)
    open_paths: tuple[str, ...] = health.OPEN_PATHS
    if settings.inspector:
        turns = LiveTurns()
        served.observer = turns
        app.include_router(inspector_page.router)
        app.include_router(inspector.router(served, turns))
        open_paths += inspector_page.OPEN_PATHS
    app.include_router(model_routes.router)
    errors = ErrorResponses({anthropic_errors.PATH: anthropic_errors.anthropic_error})
    _add_error_handlers(app, errors)
    _add_middleware(app, served, errors, open_paths)
    return app


def _add_middleware(app: FastAPI, served: Served, errors: ErrorResponses, open_paths: Sequence[str]) -> None:
    """What stands around all routes. The last one added runs first."""
    settings = served.settings
    app.add_middleware(BodyLimit, limit=settings.max_body_bytes, errors=errors)
    keys = ApiKeys(settings.keys, settings.api_key_file)
    app.add_middleware(KeyCheck, keys=keys, open_paths=open_paths, errors=errors)
    app.add_middleware(AccessLog, metrics=served.metrics, errors=errors)
    if origins := origins_of(settings.cors_origins):
        # Around all others: browsers ask without a key what they may send, and read faults, too.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            allow_private_network=True,
            expose_headers=["request-id", "retry-after", "x-request-id", MAX_TOKENS_HEADER],
        )


def _add_error_handlers(app: FastAPI, errors: ErrorResponses) -> None:
    """What the routes raise becomes a response."""

    async def on_error(request: Request, error: Exception) -> Response:
        return errors(_api_error(request, error), request.url.path)

    for kind in (ApiError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, on_error)


_UNREADABLE = "There was an error parsing the body"
"""what FastAPI says of a body that is not UTF-8, or nested too deeply"""


def _api_error(request: Request, error: Exception) -> ApiError:
    match error:
        case ApiError():
            error.rename(given_name(error.param, given_fields(request)))
            return error
        case RequestValidationError():
            if "json" not in request.headers.get("content-type", "") and isinstance(error.body, bytes):
                message = (
                    "The body is not read as JSON: send it with the header 'Content-Type: application/json'."
                )
                return ApiError(message, param="body", code="invalid_json")
            return invalid_request(error.errors(), error.body)
        case HTTPException(detail=detail) if detail == _UNREADABLE:
            return ApiError("The body is not JSON that can be read.", param="body", code="invalid_json")
        case HTTPException():
            message = f"{error.detail}: {request.method} {request.url.path}"
            return ApiError(message, status=error.status_code, code=None, headers=error.headers)
    raise error
