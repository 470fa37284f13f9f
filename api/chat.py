"""`POST /v1/chat/completions`."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse

from larksong.api.chat_requests import refusal, turn_request
from larksong.api.chat_responses import chunks, completion
from larksong.api.disconnect import ClientGone, while_connected
from larksong.api.errors import UnknownModel
from larksong.api.generation import Model
from larksong.api.prompt import TemplateRefusal
from larksong.api.schemas import ChatCompletion, ChatRequest, StreamOptions
from larksong.api.sse import event_data
from larksong.engine.backends.errors import BudgetTooSmall, PromptError
from larksong.grammars.errors import GrammarsError

router = APIRouter()


@router.post("/v1/chat/completions", response_model=ChatCompletion)
async def chat_completions(body: ChatRequest, request: Request) -> Response:
    """The model's next message, whole or (`stream`) while it is being written."""
    models: dict[str, Model] = request.app.state.models
    model = models.get(body.model)
    if model is None:
        raise UnknownModel(body.model, models)
    try:
        turn = await model.prepare(turn_request(body, model.wire_format, model.schemas, compat=model.compat))
    except (GrammarsError, PromptError, TemplateRefusal, BudgetTooSmall, RecursionError) as error:
        raise refusal(error, body) from error
    if body.stream:
        stream = chunks(turn, model, body.stream_options or StreamOptions())
        return EventSourceResponse(event_data(stream), sep="\n")
    try:
        return JSONResponse(await while_connected(request, completion(turn, model)))
    except ClientGone:
        return Response(status_code=499)
