"""`GET /v1/models`: what requests can name."""

from __future__ import annotations

from fastapi import APIRouter, Request

from larksong.api.http.served import Served
from larksong.api.openai_chat.schemas import ModelCard, ModelList
from larksong.api.turns.model import Model

router = APIRouter()


@router.get("/v1/models")
async def list_models(request: Request) -> ModelList:
    """The models that requests can name."""
    served: Served = request.app.state.served
    return {"object": "list", "data": [_card(model, served) for model in served.models.values()]}


@router.get("/v1/models/{name:path}")
async def show_model(name: str, request: Request) -> ModelCard:
    """One model."""
    served: Served = request.app.state.served
    return _card(served.model(name), served)


def _card(model: Model, served: Served) -> ModelCard:
    return {
        "id": model.name,
        "object": "model",
        "created": served.started,
        "owned_by": "larksong",
        "max_model_len": model.backend.context_length,
    }
