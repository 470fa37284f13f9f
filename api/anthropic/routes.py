"""`POST /v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from larksong.api.anthropic.messages import AnthropicMessage, TokenCount
from larksong.api.anthropic.requests import translated
from larksong.api.anthropic.responses import FORM, MessageStyle, events, message
from larksong.api.anthropic.schemas import CountRequest, MessagesRequest
from larksong.api.http.answers import Answering, answer
from larksong.api.http.body_json import BodyRoute
from larksong.api.http.served import Served
from larksong.api.turns.totals import Totals
from larksong.api.turns.turn import Turn

router = APIRouter(route_class=BodyRoute)


@router.post("/v1/messages", response_model=AnthropicMessage)
async def messages(body: MessagesRequest, request: Request) -> Response:
    """The model's next message, whole or (`stream`) while it is being written."""
    served: Served = request.app.state.served
    model = served.model(body.model)
    translation = translated(body)
    if "reasoning_budget" in model.backend.unsupported:
        # Anthropic's budget is a target: where it cannot be kept the model reasons as long as it likes.
        translation = replace(translation, chat=translation.chat.model_copy(update={"thinking_budget": None}))

    def answering(turns: list[Turn]) -> Answering:
        hidden = body.thinking is not None and body.thinking.display == "omitted"
        style = MessageStyle(not hidden, list(translation.left_out))
        totals = Totals(turns[0].plan.prompt_tokens)
        if body.stream:
            return Answering(totals, stream=events(turns[0], model, style, totals), form=FORM)
        return Answering(totals, whole=message(turns[0], model, style, totals))

    format = body.tool_format or model.wire_format.name
    return await answer(
        request, served, model, lambda: translation.prepared(served, model), answering, format=format
    )


@router.post("/v1/messages/count_tokens")
async def count_tokens(body: CountRequest, request: Request) -> TokenCount:
    """How many tokens the model would read for a message."""
    served: Served = request.app.state.served
    tokens = await translated(body).prompt_tokens(served, served.model(body.model))
    return {"input_tokens": len(tokens)}
