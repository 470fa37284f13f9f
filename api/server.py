"""The HTTP application."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from larksong.api.anthropic import routes as anthropic
from larksong.api.errors import ApiError, ServerFault, invalid_request
from larksong.api.http import health
from larksong.api.http.answers import MAX_TOKENS_HEADER
from larksong.api.http.auth import ApiKeys, KeyCheck
from larksong.api.http.body_json import given_name
from larksong.api.http.body_limit import BodyLimit
from larksong.api.http.error_response import error_response
from larksong.api.http.logs import AccessLog
from larksong.api.http.served import Served
from larksong.api.inspector import routes as inspector
from larksong.api.inspector.live import LiveTurns
from larksong.api.openai_chat import routes as openai_chat
from larksong.api.openai_chat.schemas import ErrorShape, ModelCard, ModelList
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
        served.ending.reset()
        sys.setswitchinterval(_SWITCH_SECONDS)
        yield
        served.ending.begun = True
        for model in models:
            model.backend.close()

    app = FastAPI(title="Larksong", lifespan=lifespan, responses=dict(_ERRORS))  # type: ignore[arg-type]
    app.state.served = served
    for routes in (openai_chat, completions, anthropic, responses, tokens, health):
        app.include_router(routes.router)
    open_paths: tuple[str, ...] = health.OPEN_PATHS
    if settings.inspector:
        served.live = LiveTurns()
        app.include_router(inspector.router(served, served.live))
        open_paths += inspector.OPEN_PATHS
    started = int(time.time())

    def card(model: Model) -> ModelCard:
        return {
            "id": model.name,
            "object": "model",
            "created": started,
            "owned_by": "larksong",
            "max_model_len": model.backend.context_length,
        }

    @app.get("/v1/models")
    async def list_models() -> ModelList:
        """The models that requests can name."""
        return {"object": "list", "data": [card(model) for model in models]}

    @app.get("/v1/models/{name:path}")
    async def show_model(name: str) -> ModelCard:
        """One model."""
        return card(served.model(name))

    # The last one added runs first.
    app.add_middleware(BodyLimit, limit=settings.max_body_bytes)
    app.add_middleware(KeyCheck, keys=ApiKeys(settings.keys, settings.api_key_file), open_paths=open_paths)
    app.add_middleware(AccessLog, metrics=served.metrics, fault=partial(error_response, ServerFault()))
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
    app.add_exception_handler(ApiError, _on_api_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    return app


async def _on_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    error.rename(given_name(request, error.param))
    return error_response(error, request.url.path)


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    if "json" not in request.headers.get("content-type", "") and isinstance(error.body, bytes):
        message = "The body is not read as JSON: send it with the header 'Content-Type: application/json'."
        return error_response(ApiError(message, param="body", code="invalid_json"), request.url.path)
    return error_response(invalid_request(error.errors(), error.body), request.url.path)


_UNREADABLE = "There was an error parsing the body"
"""what FastAPI says of a body that is not UTF-8, or nested too deeply"""


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.detail == _UNREADABLE:
        unreadable = ApiError("The body is not JSON that can be read.", param="body", code="invalid_json")
        return error_response(unreadable, request.url.path)
    message = f"{error.detail}: {request.method} {request.url.path}"
    found = ApiError(message, status=error.status_code, code=None, headers=error.headers)
    return error_response(found, request.url.path)
