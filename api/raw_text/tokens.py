"""`POST /tokenize` and `/detokenize`, in vLLM's shapes and llama.cpp's."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from larksong.api.errors import ApiError
from larksong.api.http.body_json import BodyRoute
from larksong.api.http.served import Served
from larksong.api.openai_chat.messages import ListOf, Message, RequestPart
from larksong.api.openai_chat.requests import refusal, turn_request
from larksong.api.openai_chat.schemas import ChatRequest, ToolSpec
from larksong.api.runtime.workers import in_worker
from larksong.api.turns.chat_template import TemplateRefusal
from larksong.api.turns.model import Model
from larksong.grammars.errors import GrammarsError

router = APIRouter(route_class=BodyRoute)


class TokenizeRequest(RequestPart):
    """A text (`prompt`; llama.cpp says `content`), or messages as the chat template writes them."""

    model: str | None = None
    prompt: str | None = Field(None, validation_alias=AliasChoices("prompt", "content", "text"))
    messages: Annotated[ListOf[Message], Field(min_length=1)] | None = None
    tools: ListOf[ToolSpec] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    return_token_strs: bool | None = None


class Tokenized(TypedDict):
    """`token_strs`: how people read the tokens, where that was asked for."""

    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None


class DetokenizeRequest(RequestPart):
    """Token ids."""

    model: str | None = None
    tokens: ListOf[int]


class Detokenized(TypedDict):
    """The text under vLLM's name and llama.cpp's. Markers are spelled out."""

    prompt: str
    content: str


def _model(request: Request, name: str | None) -> Model:
    served: Served = request.app.state.served
    return served.model(name) if name is not None else next(iter(served.models.values()))


@router.post("/tokenize")
async def tokenize(body: TokenizeRequest, request: Request) -> Tokenized:
    """The tokens of a text, whose markers count, or of a prompt, in which those of clients do not."""
    model = _model(request, body.model)
    if (body.prompt is None) == (body.messages is None):
        raise ApiError("Give one of 'prompt' and 'messages'.", param="prompt")
    if body.prompt is not None:
        tokens = await in_worker(model.prompts.encode, body.prompt)
    else:
        chat = ChatRequest.model_validate(
            {"model": model.name, **body.model_dump(exclude_none=True, by_alias=True)}
        )
        try:
            asked = turn_request(chat, model.wire_format, model.schemas)
            written = await in_worker(model.prompt, asked)
        except (GrammarsError, TemplateRefusal, RecursionError) as error:
            raise refusal(error, chat) from error
        tokens = written.tokens
    return {
        "count": len(tokens),
        "max_model_len": model.backend.context_length,
        "tokens": list(tokens),
        "token_strs": [model.token_text(token) for token in tokens] if body.return_token_strs else None,
    }


@router.post("/detokenize")
async def detokenize(body: DetokenizeRequest, request: Request) -> Detokenized:
    """The text of tokens."""
    model = _model(request, body.model)
    size = len(model.backend.vocabulary.tokens)
    for place, token in enumerate(body.tokens):
        if not 0 <= token < size:
            raise ApiError(f"{token} is not a token id from 0 to {size - 1}.", param=f"tokens[{place}]")
    text = model.backend.tokenizer.decode(body.tokens, skip_special_tokens=False)
    return {"prompt": text, "content": text}
