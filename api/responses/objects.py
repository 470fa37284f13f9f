"""What `POST /v1/responses` writes: a response and its items."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from larksong.api.openai_chat.schemas import WideningWarning

Status = Literal["in_progress", "completed", "incomplete", "failed"]


class OutputText(TypedDict):
    """Text of a message."""

    type: Literal["output_text"]
    text: str
    annotations: list[Any]
    logprobs: list[Any]


class MessageOutput(TypedDict):
    """A stretch of text."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    status: Status
    content: list[OutputText]


class ReasoningText(TypedDict):
    """Text of reasoning."""

    type: Literal["reasoning_text"]
    text: str


class ReasoningOutput(TypedDict):
    """A stretch of reasoning; there are no summaries. `encrypted_content` only where it was asked for."""

    id: str
    type: Literal["reasoning"]
    status: Status
    summary: list[Any]
    content: list[ReasoningText]
    encrypted_content: NotRequired[str]


class CallOutput(TypedDict):
    """A call; `arguments` is JSON text."""

    id: str
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    status: Status
    namespace: NotRequired[str]


Output = MessageOutput | ReasoningOutput | CallOutput


class InputDetails(TypedDict):
    """`cached_tokens`: of the prompt, those that the model had read for an earlier request."""

    cached_tokens: int


class OutputDetails(TypedDict):
    """`reasoning_tokens`: of the output, those of reasoning."""

    reasoning_tokens: int


class ResponseUsage(TypedDict):
    """Tokens read and written."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class ResponseInfo(TypedDict, total=False):
    """Larksong's own words on a response; keys that do not apply are left out (see docs/api.md)."""

    stored: bool
    left_out_tools: list[str]
    finished_within_budget: list[int]
    warnings: list[WideningWarning]
    compat: list[str]


class ResponseFault(TypedDict):
    """Why a response failed."""

    code: str
    message: str


class IncompleteDetails(TypedDict):
    """Why a response is cut short."""

    reason: Literal["max_output_tokens"]


class ResponseObject(TypedDict):
    """A response, finished or not. `store` is always false."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Status
    error: ResponseFault | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    model: str
    output: list[Output]
    parallel_tool_calls: bool
    previous_response_id: None
    reasoning: dict[str, str | None]
    store: Literal[False]
    temperature: float
    text: dict[str, Any]
    tool_choice: Any
    tools: list[Any]
    top_p: float
    truncation: Literal["disabled"]
    metadata: dict[str, Any]
    usage: ResponseUsage | None
    larksong: NotRequired[ResponseInfo]
