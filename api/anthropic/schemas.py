"""What `POST /v1/messages` reads. Fields that are not declared here are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from larksong.api.openai_chat.messages import ListOf, RequestPart
from larksong.api.openai_chat.sampler_fields import unless
from larksong.api.openai_chat.turn_fields import TurnFields


class TextBlock(RequestPart):
    """Text."""

    type: Literal["text"] = "text"
    text: str


class ToolReference(RequestPart):
    """The name of a tool that a search found."""

    type: Literal["tool_reference"]
    tool_name: str

    @property
    def text(self) -> str:
        """The name."""
        return self.tool_name


class Medium(RequestPart):
    """What is refused: to leave out an image would change the answer."""

    type: Literal["image", "document", "container_upload"]

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, value: Any) -> Any:
        raise PydanticCustomError(
            "unsupported_parameter", "this server reads text only, no images or documents"
        )


ResultPart = Annotated[TextBlock | ToolReference | Medium, Discriminator("type")]


class ToolUse(RequestPart):
    """A call that the assistant made in an earlier turn."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any] = Field(default_factory=dict)


class ToolResult(RequestPart):
    """What a call came to."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str | ListOf[ResultPart] | None = None
    is_error: bool | None = None

    @property
    def text(self) -> str:
        """The result as one text; models are told of errors by it, as chat templates have no other place."""
        parts = self.content
        text = (
            parts
            if isinstance(parts, str)
            else "\n".join(part.text for part in parts or () if not isinstance(part, Medium))
        )
        told = text.lstrip().lower().startswith(("error", "<tool_use_error"))
        return f"Error: {text}" if self.is_error and not told else text


class Thinking(RequestPart):
    """The assistant's reasoning. The signature may be anyone's: nothing is checked by it."""

    type: Literal["thinking"]
    thinking: str
    signature: str | None = None


class RedactedThinking(RequestPart):
    """Reasoning that only Anthropic's servers can read."""

    type: Literal["redacted_thinking"]


ContentBlock = Annotated[
    TextBlock | ToolUse | ToolResult | Thinking | RedactedThinking | Medium, Discriminator("type")
]


class MessageParam(RequestPart):
    """A message of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | ListOf[ContentBlock]


class ToolParam(RequestPart):
    """A tool of the client."""

    type: Literal["custom"] | None = None
    name: str
    description: str | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None


class ServerTool(RequestPart):
    """A tool that Anthropic's servers run or whose schema they know."""

    type: str
    name: str | None = None


def _kind(tool: Any) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else getattr(tool, "type", None)
    return "own" if kind in (None, "custom") else "server"


AnyTool = Annotated[
    Annotated[ToolParam, Tag("own")] | Annotated[ServerTool, Tag("server")], Discriminator(_kind)
]


class ToolChoice(RequestPart):
    """Which tool is called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class ThinkingConfig(RequestPart):
    """Whether the model reasons; `budget_tokens`: how long at most.

    `display`: how it is shown. Only `omitted` changes anything here, whatever else clients come to know
    (Claude Code says `updates`).
    """

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Annotated[int, Field(ge=0)] | None = None
    display: str | None = None


class OutputFormat(RequestPart):
    """The answer is one JSON text of a schema."""

    type: Literal["json_schema"]
    body: dict[str, Any] = Field(alias="schema")


class OutputConfig(RequestPart):
    """The form of the answer, and how much is spent on it."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None


class CountRequest(TurnFields):
    """What has a part in the prompt."""

    model: str
    messages: Annotated[ListOf[MessageParam], Field(min_length=1)]
    system: str | ListOf[TextBlock] | None = None
    tools: ListOf[AnyTool] | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    mcp_servers: Annotated[list[Any] | None, unless([])] = None


class MessagesRequest(CountRequest):
    """The body of a request for a message."""

    max_tokens: Annotated[int, Field(ge=1)]
    stream: bool | None = None
    stop_sequences: ListOf[str] | None = None
    thread: dict[str, Any] | None = None
