"""`POST /v1/chat/completions`."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from larksong.api.errors import ApiError
from larksong.api.http.answers import Answering, answer
from larksong.api.http.body_json import BodyRoute
from larksong.api.http.served import Served
from larksong.api.openai_chat.prepare import prepared
from larksong.api.openai_chat.responses import AnswerStyle, chunks, completion
from larksong.api.openai_chat.schemas import ChatCompletion, ChatRequest, StreamOptions
from larksong.api.turns.totals import Totals
from larksong.api.turns.turn import Turn

router = APIRouter(route_class=BodyRoute)


@router.post("/v1/chat/completions", response_model=ChatCompletion)
async def chat_completions(body: ChatRequest, request: Request) -> Response:
    """The model's next message, whole or (`stream`) while it is being written."""
    served: Served = request.app.state.served
    model = served.model(body.model)
    if body.stream_options is not None and not body.stream:
        raise ApiError("'stream_options' needs 'stream'.", param="stream_options")

    def answering(turns: list[Turn]) -> Answering:
        style = AnswerStyle(
            served.settings.reasoning_field,
            legacy=bool(body.functions) and not body.tools,
            logprobs=bool(body.logprobs),
            options=body.stream_options or StreamOptions(),
            tools=turns[0].plan.tools,
        )
        totals = Totals(turns[0].plan.prompt_tokens)
        if body.stream:
            return Answering(totals, stream=chunks(turns, model, style, totals))
        return Answering(totals, whole=completion(turns, model, style, totals))

    format = body.tool_format or model.wire_format.name
    return await answer(
        request, served, model, lambda: prepared(body, served, model), answering, format=format
    )
