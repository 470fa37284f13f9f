"""`POST /v1/chat/completions`."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from larksong.api.answers import Answering, answer
from larksong.api.chat_requests import refusal, turn_request
from larksong.api.chat_responses import AnswerStyle, Totals, chunks, completion
from larksong.api.errors import ApiError
from larksong.api.generation import Turn, with_seeds
from larksong.api.limits import check_limits
from larksong.api.prompt import TemplateRefusal
from larksong.api.sampler_fields import on_model, unheeded
from larksong.api.schemas import ChatCompletion, ChatRequest, StreamOptions
from larksong.api.served import Served
from larksong.engine.backends.errors import BudgetTooSmall, PromptError
from larksong.grammars.errors import GrammarsError

router = APIRouter()


@router.post("/v1/chat/completions", response_model=ChatCompletion)
async def chat_completions(body: ChatRequest, request: Request) -> Response:
    """The model's next message, whole or (`stream`) while it is being written."""
    served: Served = request.app.state.served
    model = served.model(body.model)
    if body.stream_options is not None and not body.stream:
        raise ApiError("'stream_options' needs 'stream'.", param="stream_options")

    async def prepare() -> list[Turn]:
        try:
            check_limits(body, served.settings)
            asked = turn_request(body, model.wire_format, model.schemas, compat=model.compat)
            asked = replace(asked, sampling=on_model(asked.sampling, body, model.backend))
            if asked.reasoning_budget is not None and "reasoning_budget" in model.backend.unheeded:
                raise unheeded("thinking_budget")
            served.log_prompt(asked.messages)
            return [await model.prepare(each) for each in with_seeds(asked, body.n or 1)]
        except (GrammarsError, PromptError, TemplateRefusal, BudgetTooSmall, RecursionError) as error:
            raise refusal(error, body) from error

    def answering(turns: list[Turn]) -> Answering:
        style = AnswerStyle(
            served.reasoning_field,
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
    return await answer(request, served, model, prepare, answering, format=format)
