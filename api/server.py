"""The HTTP application."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from larksong.api import chat
from larksong.api.errors import ApiError, ServerFault, invalid_request
from larksong.api.generation import Model
from larksong.api.schemas import ModelList


def create_app(models: Sequence[Model]) -> FastAPI:
    """A server of `models`, whose backends it closes when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for model in models:
            model.backend.close()

    app = FastAPI(title="Larksong", lifespan=lifespan)
    app.state.models = {model.name: model for model in models}
    app.include_router(chat.router)
    started = int(time.time())

    @app.get("/v1/models")
    async def list_models() -> ModelList:
        """The models that requests can name."""
        return {
            "object": "list",
            "data": [
                {"id": model.name, "object": "model", "created": started, "owned_by": "larksong"}
                for model in models
            ],
        }

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Answers while the server works."""
        return {"status": "ok"}

    app.add_exception_handler(ApiError, _on_api_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_fault)
    return app


def _error_response(error: ApiError) -> Response:
    # ASCII: a message may quote lone surrogates from the request, which UTF-8 cannot carry.
    return Response(json.dumps(error.body), status_code=error.status, media_type="application/json")


async def _on_api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _error_response(error)


async def _on_invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _error_response(invalid_request(error.errors(), error.body))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{error.detail}: {request.method} {request.url.path}"
    return _error_response(ApiError(message, status=error.status_code, code=None))


async def _on_fault(_: Request, error: Exception) -> Response:
    # The error itself is raised further by Starlette, for the server's log.
    return _error_response(ServerFault())
