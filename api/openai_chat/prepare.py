"""A chat request → turns that are ready to run. The other APIs come this way, too: their requests are written
as chat requests first."""

from __future__ import annotations

from dataclasses import replace

from larksong.api.http.served import Served
from larksong.api.openai_chat.limits import check_limits
from larksong.api.openai_chat.requests import refusal, turn_request
from larksong.api.openai_chat.sampler_fields import on_model, unsupported
from larksong.api.openai_chat.schemas import ChatRequest
from larksong.api.runtime.workers import in_worker
from larksong.api.turns.chat_template import TemplateRefusal
from larksong.api.turns.model import Model
from larksong.api.turns.request import TurnRequest, with_seeds
from larksong.api.turns.turn import Turn
from larksong.engine.backends.errors import BudgetTooSmall, PromptError
from larksong.grammars.errors import GrammarsError


async def prepared(body: ChatRequest, served: Served, model: Model) -> list[Turn]:
    """The turns, one a choice. Raises ApiError."""
    try:
        asked = await in_worker(_asked, body, served, model)
        asked = replace(asked, sampling=on_model(asked.sampling, body, model.backend))
        if asked.reasoning_budget is not None and "reasoning_budget" in model.backend.unsupported:
            raise unsupported("thinking_budget")
        served.log_prompt(asked.messages)
        return [await model.prepare(each) for each in with_seeds(asked, body.n or 1)]
    except (GrammarsError, PromptError, TemplateRefusal, BudgetTooSmall, RecursionError) as error:
        raise refusal(error, body) from error


async def prompt_tokens(body: ChatRequest, served: Served, model: Model) -> tuple[int, ...]:
    """The tokens of the prompt that the model would read. Raises ApiError."""
    try:
        asked = await in_worker(_asked, body, served, model)
        written = await in_worker(model.prompt, asked)
    except (GrammarsError, TemplateRefusal, RecursionError) as error:
        raise refusal(error, body) from error
    return tuple(written.tokens)


def _asked(body: ChatRequest, served: Served, model: Model) -> TurnRequest:
    check_limits(body, served.settings)
    return turn_request(body, model.wire_format, model.schemas, compat=model.compat)
