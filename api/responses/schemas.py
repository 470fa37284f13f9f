"""What `POST /v1/responses` reads. Fields that are not declared here are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from larksong.api.openai_chat.messages import ListOf, RequestPart
from larksong.api.openai_chat.sampler_fields import unless
from larksong.api.openai_chat.schemas import FunctionSpec
from larksong.api.openai_chat.turn_fields import TurnFields


class TextPart(RequestPart):
    """A part of a content that is text, whoever wrote it."""

    type: Literal["input_text", "output_text", "text", "summary_text", "reasoning_text"]
    text: str


class RefusalPart(RequestPart):
    """A part of an assistant's content that says why there is no other."""

    type: Literal["refusal"]
    refusal: str

    @property
    def text(self) -> str:
        """The refusal as text."""
        return self.refusal


class Medium(RequestPart):
    """What is refused: to leave out an image would change the answer."""

    type: Literal["input_image", "input_file", "input_audio"]

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, value: Any) -> Any:
        raise PydanticCustomError("unsupported_parameter", "this server reads text only, no images or files")


Parts = ListOf[Annotated[TextPart | RefusalPart | Medium, Discriminator("type")]]


def text_of(content: str | Parts | None) -> str:
    """A content as one text."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content if not isinstance(part, Medium))


class MessageItem(RequestPart):
    """A message of the conversation."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Parts


class CallItem(RequestPart):
    """A call that the assistant made in an earlier turn; `arguments` is JSON text."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class OutputItem(RequestPart):
    """What a call came to."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | Parts


class ReasoningItem(RequestPart):
    """The assistant's reasoning: as text, or as this server hides it in `encrypted_content`."""

    type: Literal["reasoning"]
    summary: Parts | None = None
    content: Parts | None = None
    encrypted_content: str | None = None


def _kind(item: Any) -> str:
    kind = item.get("type") if isinstance(item, dict) else getattr(item, "type", None)
    return kind if isinstance(kind, str) else "message"


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[OutputItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(
        _kind,
        custom_error_type="unsupported_parameter",
        custom_error_message="this server reads items of the types message, function_call, "
        "function_call_output and reasoning (nothing is stored, so an item_reference leads to none: clients "
        "that are told store: false send whole items)",
    ),
]


class FunctionTool(FunctionSpec):
    """A function of the client that the model may call."""

    type: Literal["function"]


class Namespace(RequestPart):
    """Functions under one heading, as the tools of a server for model contexts."""

    type: Literal["namespace"]
    name: str
    tools: ListOf[FunctionTool]


class OtherTool(RequestPart):
    """A tool that OpenAI's servers run, or whose calls are no JSON."""

    type: str
    name: str | None = None


def _tool_kind(tool: Any) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else getattr(tool, "type", None)
    return kind if kind in ("function", "namespace") else "other"


AnyTool = Annotated[
    Annotated[FunctionTool, Tag("function")]
    | Annotated[Namespace, Tag("namespace")]
    | Annotated[OtherTool, Tag("other")],
    Discriminator(_tool_kind),
]


class ChosenTool(RequestPart):
    """Call this tool."""

    type: str
    name: str | None = None


class AllowedTools(RequestPart):
    """Call none but these tools."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"] = "auto"
    tools: Annotated[ListOf[ChosenTool], Field(min_length=1)]


class JsonSchemaForm(RequestPart):
    """The answer is one JSON text of a schema."""

    type: Literal["json_schema"]
    name: str | None = None
    body: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class PlainForm(RequestPart):
    """The answer is text, or one JSON object."""

    type: Literal["text", "json_object"]


class TextConfig(RequestPart):
    """The form of the answer."""

    format: Annotated[JsonSchemaForm | PlainForm, Discriminator("type")] | None = None


class ReasoningConfig(RequestPart):
    """How much the model reasons."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: str | None = None


class ResponsesRequest(TurnFields):
    """The body of a request for a response."""

    model: str
    input: str | ListOf[Item]
    instructions: str | None = None
    stream: bool | None = None
    store: bool | None = None
    tools: ListOf[AnyTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | AllowedTools | ChosenTool | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    include: ListOf[str] | None = None
    metadata: dict[str, Any] | None = None

    previous_response_id: str | None = None
    conversation: Annotated[Any, unless()] = None
    prompt: Annotated[Any, unless()] = None
    background: Annotated[bool | None, unless(False)] = None
    top_logprobs: Annotated[int | None, unless(0)] = None
