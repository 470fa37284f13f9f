"""A chat request → turns that are ready to run. The other APIs come this way, too: their requests are written
as chat requests first."""

from __future__ import annotations

from dataclasses import replace

from larksong.api.chat_requests import refusal, turn_request
from larksong.api.generation import Model, Turn, TurnRequest, with_seeds
from larksong.api.limits import check_limits
from larksong.api.prompt import TemplateRefusal
from larksong.api.sampler_fields import on_model, unheeded
from larksong.api.schemas import ChatRequest
from larksong.api.served import Served
from larksong.api.workers import in_worker
from larksong.engine.backends.errors import BudgetTooSmall, PromptError
from larksong.grammars.errors import GrammarsError


async def prepared(body: ChatRequest, served: Served, model: Model) -> list[Turn]:
    """The turns, one a choice. Raises ApiError."""
    try:
        asked = await in_worker(_asked, body, served, model)
        asked = replace(asked, sampling=on_model(asked.sampling, body, model.backend))
        if asked.reasoning_budget is not None and "reasoning_budget" in model.backend.unheeded:
            raise unheeded("thinking_budget")
        served.log_prompt(asked.messages)
        return [await model.prepare(each) for each in with_seeds(asked, body.n or 1)]
    except (GrammarsError, PromptError, TemplateRefusal, BudgetTooSmall, RecursionError) as error:
        raise refusal(error, body) from error


async def prompt_tokens(body: ChatRequest, served: Served, model: Model) -> tuple[int, ...]:
    """The tokens of the prompt that the model would read. Raises ApiError."""
    try:
        asked = await in_worker(_asked, body, served, model)
        tools = asked.tools if asked.calls else ()
        written = await in_worker(
            model.prompts.write, asked.messages, tools, asked.wire_format, asked.variables
        )
    except (GrammarsError, TemplateRefusal, RecursionError) as error:
        raise refusal(error, body) from error
    return tuple(written.tokens)


def _asked(body: ChatRequest, served: Served, model: Model) -> TurnRequest:
    check_limits(body, served.settings)
    return turn_request(body, model.wire_format, model.schemas, compat=model.compat)
