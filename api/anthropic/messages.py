"""What `POST /v1/messages` writes: a message, or the events of one that is being written."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from larksong.api.openai_chat.schemas import WideningWarning

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]


class OutputDetails(TypedDict):
    """`thinking_tokens`: of the answer, those of reasoning."""

    thinking_tokens: int


class Usage(TypedDict):
    """Tokens read and written. `input_tokens` are those that the model had not read before."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    output_tokens: int
    output_tokens_details: OutputDetails


class TextContent(TypedDict):
    """Text."""

    type: Literal["text"]
    text: str


class ThinkingContent(TypedDict):
    """Reasoning."""

    type: Literal["thinking"]
    thinking: str
    signature: str


class ToolUseContent(TypedDict):
    """A call. Of one that was cut short `input` has the members that are complete."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


Content = TextContent | ThinkingContent | ToolUseContent


class MessageInfo(TypedDict, total=False):
    """Larksong's own words on an answer; keys that do not apply are left out (see docs/api.md)."""

    left_out_tools: list[str]
    finished_within_budget: list[int]
    warnings: list[WideningWarning]
    compat: list[str]


class AnthropicMessage(TypedDict):
    """The answer. In the event that begins a stream it is still empty."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Content]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: Usage
    larksong: NotRequired[MessageInfo]


class TokenCount(TypedDict):
    """How many tokens the prompt has."""

    input_tokens: int
