"""`POST /v1/completions`: the model goes on from a text, without a chat template."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal, NotRequired

from fastapi import APIRouter, Request, Response
from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from larksong.api.errors import ApiError
from larksong.api.http.answers import Answering, answer
from larksong.api.http.body_json import BodyRoute
from larksong.api.http.served import Served
from larksong.api.openai_chat.answer_fields import Schema
from larksong.api.openai_chat.messages import ListOf
from larksong.api.openai_chat.sampler_fields import SamplerFields, on_model, sampling, unless
from larksong.api.openai_chat.schemas import StreamOptions, Usage
from larksong.api.openai_chat.usage import usage
from larksong.api.runtime.ids import new_id
from larksong.api.turns.answer_form import AnswerForm, AnswerSchema, AnswerText
from larksong.api.turns.deltas import ContentDelta
from larksong.api.turns.merge import numbered
from larksong.api.turns.model import Model
from larksong.api.turns.request import TurnRequest, with_seeds
from larksong.api.turns.totals import Totals
from larksong.api.turns.turn import Turn, TurnEnd
from larksong.engine.backends.base import Step
from larksong.engine.backends.errors import PromptError, PromptTooLong
from larksong.grammars.errors import GrammarsError

router = APIRouter(route_class=BodyRoute)


class CompletionRequest(SamplerFields):
    """The body of a completion. Several prompts, and `n` answers to each, are choices of one completion."""

    model: str
    prompt: str | ListOf[str] | ListOf[int] | ListOf[ListOf[int]]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=16)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = Field(
        None, validation_alias=AliasChoices("max_tokens", "max_length")
    )
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    guided_json: Schema | None = Field(None, validation_alias=AliasChoices("guided_json", "json_schema"))
    guided_regex: str | None = Field(None, validation_alias=AliasChoices("guided_regex", "regex_pattern"))
    guided_choice: ListOf[str] | None = None
    guided_grammar: str | None = None
    suffix: Annotated[str | None, unless("")] = None


class TextLogprobs(TypedDict):
    """Parallel lists, one entry a token; `text_offset` counts from the beginning of the choice's text."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class TextChoice(TypedDict):
    """A choice of a completion, or what it grew by."""

    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: Literal["stop", "length"] | None


class TextCompletion(TypedDict):
    """A completion, or a chunk of one."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: NotRequired[Usage]


@router.post("/v1/completions", response_model=TextCompletion)
async def text_completions(body: CompletionRequest, request: Request) -> Response:
    """How the model goes on."""
    served: Served = request.app.state.served
    model = served.model(body.model)
    prompts = _prompts(body, model)

    async def prepare() -> list[Turn]:
        asked = _turn_request(body, model)
        try:
            return [
                await model.prepare_text(prompt, each)
                for prompt in prompts
                for each in with_seeds(asked, body.n or 1)
            ]
        except GrammarsError as error:
            assert asked.answer is not None
            raise ApiError(str(error), param=asked.answer.field) from error
        except PromptTooLong as error:
            raise ApiError(str(error), param="prompt", code="context_length_exceeded") from error
        except PromptError as error:
            raise ApiError(str(error), param="prompt") from error

    def answering(turns: list[Turn]) -> Answering:
        each = body.n or 1
        totals = Totals(sum(turn.plan.prompt_tokens for turn in turns[::each]))
        leads = [
            (prompt if isinstance(prompt, str) else model.backend.tokenizer.decode(prompt))
            if body.echo
            else ""
            for prompt in prompts
            for _ in range(each)
        ]
        stream = _chunks(turns, model, body, leads, totals)
        if body.stream:
            return Answering(totals, stream=stream)
        return Answering(totals, whole=_whole(stream, len(turns), totals))

    return await answer(request, served, model, prepare, answering, format="text")


def _prompts(body: CompletionRequest, model: Model) -> list[str] | list[list[int]]:
    """The prompts, each a text or tokens. Raises ApiError."""
    prompt: Any = body.prompt
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        prompt = [prompt]
    if not prompt:
        raise ApiError("Invalid 'prompt': the list is empty.", param="prompt", code="empty_array")
    if len(prompt) > _MOST_PROMPTS:
        raise ApiError(f"Invalid 'prompt': at most {_MOST_PROMPTS} prompts.", param="prompt")
    width = model.backend.vocabulary.width
    for place, each in enumerate(prompt):
        if not isinstance(each, str) and not all(0 <= token < width for token in each):
            raise ApiError(f"Token ids go from 0 to {width - 1}.", param=f"prompt[{place}]")
    return list(prompt)


_MOST_PROMPTS = 64


def _turn_request(body: CompletionRequest, model: Model) -> TurnRequest:
    answer: AnswerForm | None = None
    if body.guided_json is not None:
        answer = AnswerSchema(body.guided_json, model.schemas.options(None), "guided_json")
    elif body.guided_regex is not None:
        answer = AnswerText("regex", body.guided_regex, "guided_regex")
    elif body.guided_choice is not None:
        answer = AnswerText("choice", tuple(body.guided_choice), "guided_choice")
    elif body.guided_grammar is not None:
        answer = AnswerText("grammar", body.guided_grammar, "guided_grammar")
    return TurnRequest(
        messages=(),
        tools=(),
        calls=None,
        wire_format=model.wire_format,
        sampling=on_model(sampling(body, body.logprobs), body, model.backend),
        max_tokens=body.max_tokens or _DEFAULT_TOKENS,
        answer=answer,
        stops=body.stops(),
    )


_DEFAULT_TOKENS = 16  # OpenAI's, whose clients rely on it


async def _chunks(
    turns: Sequence[Turn], model: Model, body: CompletionRequest, leads: Sequence[str], totals: Totals
) -> AsyncGenerator[TextCompletion, None]:
    id, created = new_id("cmpl-"), int(time.time())

    def chunk(choices: list[TextChoice]) -> TextCompletion:
        return {
            "id": id,
            "object": "text_completion",
            "created": created,
            "model": model.name,
            "choices": choices,
        }

    offsets = [0] * len(turns)
    for index, lead in enumerate(leads):
        if lead:
            offsets[index] = len(lead)
            yield chunk([{"index": index, "text": lead, "logprobs": None, "finish_reason": None}])
    async with aclosing(numbered(turns)) as items:
        async for index, item in items:
            text = "".join(delta.text for delta in item.deltas if isinstance(delta, ContentDelta))
            logprobs = None
            reason: Literal["stop", "length"] | None = None
            if isinstance(item, TurnEnd):
                reason = "length" if item.reason == "length" else "stop"
                totals.add(item)
            elif body.logprobs is not None:
                logprobs = _logprobs(item.step, model, offsets[index])
            offsets[index] += len(text)
            if text or reason or logprobs:
                made: TextChoice = {
                    "index": index,
                    "text": text,
                    "logprobs": logprobs,
                    "finish_reason": reason,
                }
                yield chunk([made])
    if body.stream_options is not None and body.stream_options.include_usage:
        yield {**chunk([]), "usage": usage(totals)}


def _logprobs(step: Step, model: Model, offset: int) -> TextLogprobs:
    known = step.logprobs
    return {
        "tokens": [model.token_text(step.token)],
        "token_logprobs": [known.chosen if known is not None else 0.0],
        "top_logprobs": [
            {model.token_text(token): logprob for token, logprob in (known.top if known is not None else ())}
        ],
        "text_offset": [offset],
    }


async def _whole(chunks: AsyncGenerator[TextCompletion, None], count: int, totals: Totals) -> TextCompletion:
    """The chunks put together."""
    choices: list[TextChoice] = [
        {"index": index, "text": "", "logprobs": None, "finish_reason": None} for index in range(count)
    ]
    texts: list[list[str]] = [[] for _ in range(count)]
    last: TextCompletion | None = None
    async with aclosing(chunks):
        async for chunk in chunks:
            last = chunk
            for piece in chunk["choices"]:
                choice = choices[piece["index"]]
                texts[piece["index"]].append(piece["text"])
                choice["finish_reason"] = piece["finish_reason"] or choice["finish_reason"]
                if (more := piece["logprobs"]) is not None:
                    known = choice["logprobs"]
                    choice["logprobs"] = more if known is None else _joined(known, more)
    assert last is not None
    for choice, pieces in zip(choices, texts, strict=True):
        choice["text"] = "".join(pieces)
    return {**last, "choices": choices, "usage": usage(totals)}


def _joined(first: TextLogprobs, second: TextLogprobs) -> TextLogprobs:
    return {
        "tokens": first["tokens"] + second["tokens"],
        "token_logprobs": first["token_logprobs"] + second["token_logprobs"],
        "top_logprobs": first["top_logprobs"] + second["top_logprobs"],
        "text_offset": first["text_offset"] + second["text_offset"],
    }
