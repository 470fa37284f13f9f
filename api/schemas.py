"""What `POST /v1/chat/completions` reads and writes.

Fields that are not declared here are ignored; fields whose silent loss would change the answer are refused.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

# --- request ---


class _Request(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


def _unless(accepted: Any) -> AfterValidator:
    def check(value: Any) -> Any:
        if value is not None and value != accepted:
            raise PydanticCustomError("unsupported_parameter", "this server does not support it yet")
        return value

    return AfterValidator(check)


def _object(arguments: Any) -> Any:
    """Arguments in the history: JSON text as OpenAI has it, an object, or nothing."""
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the arguments are not JSON ({error})") from None
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")
    return arguments


class TextPart(_Request):
    """A part of a message's content; other kinds than text are refused."""

    type: Literal["text"]
    text: str


class HistoryFunction(_Request):
    """The function of an earlier call."""

    name: str
    arguments: Annotated[dict[str, Any], BeforeValidator(_object)] = Field(default_factory=dict)


class HistoryCall(_Request):
    """A call that the assistant made in an earlier turn."""

    id: str = ""
    type: Literal["function"] = "function"
    function: HistoryFunction


class Message(_Request):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[HistoryCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None

    @property
    def text(self) -> str:
        """The content as one text."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class FunctionSpec(_Request):
    """A function that the model may call. Without `parameters` it takes none."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolSpec(_Request):
    """A tool of the request."""

    type: Literal["function"] = "function"
    function: FunctionSpec


class FunctionName(_Request):
    """The name of a function."""

    name: str


class NamedToolChoice(_Request):
    """Call this one function."""

    type: Literal["function"] = "function"
    function: FunctionName


class TextFormat(_Request):
    """The answer is text."""

    type: Literal["text"]


class JsonObjectFormat(_Request):
    """The answer is one JSON object."""

    type: Literal["json_object"]


class JsonSchemaSpec(_Request):
    """The schema of the answer."""

    name: str | None = None
    body: dict[str, Any] | bool = Field(alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(_Request):
    """The answer is one JSON text of a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchemaSpec


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")]


class StreamOptions(_Request):
    """`include_steps` is Larksong's own: each chunk says which decoding step made it (`StepInfo`)."""

    include_usage: bool | None = None
    include_steps: bool | None = None


class ChatRequest(_Request):
    """The body of a chat completion.

    Own additions: min_tool_calls, max_tool_calls, tool_format, compat, finish_within_budget.
    """

    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    tools: list[ToolSpec] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | None = None
    parallel_tool_calls: bool | None = None
    min_tool_calls: Annotated[int, Field(ge=0)] | None = None
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    tool_format: str | None = None
    compat: Literal["tabbyapi", "none"] | None = None

    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    finish_within_budget: bool | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None

    response_format: ResponseFormat | None = None

    n: Annotated[int | None, _unless(1)] = None
    stop: Annotated[str | list[str] | None, _unless([])] = None
    logprobs: Annotated[bool | None, _unless(False)] = None
    functions: Annotated[list[Any] | None, _unless([])] = None


# --- response ---

FinishReason = Literal["stop", "length", "tool_calls"]


class FunctionCall(TypedDict):
    """The function of a finished call; `arguments` is JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A finished call."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class AssistantMessage(TypedDict):
    """The answer: text, calls or both."""

    role: Literal["assistant"]
    content: str | None
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]


class WideningWarning(TypedDict):
    """A keyword of a schema that the answer was not held to, since nothing can enforce it.

    `tool` is null for the schema of `response_format`. `valid`: whether every complete value keeps it.
    """

    tool: str | None
    pointer: str
    keyword: str
    valid: bool


class ChoiceInfo(TypedDict, total=False):
    """Larksong's own words on a choice; keys that do not apply are left out.

    `finished_within_budget`: where the limit had a part in the end, the calls that were cut to a valid end,
    by index; all calls of the answer are complete then. `compat`: what compat mode has to say.
    """

    finished_within_budget: list[int]
    warnings: list[WideningWarning]
    compat: list[str]


class Choice(TypedDict):
    """The one choice of a completion."""

    index: int
    message: AssistantMessage
    finish_reason: FinishReason
    larksong: NotRequired[ChoiceInfo]


class Usage(TypedDict):
    """Tokens read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(TypedDict):
    """The whole answer to a request that is not streamed."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


class FunctionDelta(TypedDict):
    """`name` stands in a call's first delta only."""

    name: NotRequired[str]
    arguments: str


class ToolCallDelta(TypedDict):
    """`id`, `type` and the name stand in a call's first delta only."""

    index: int
    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: FunctionDelta


class ChoiceDelta(TypedDict, total=False):
    """What the answer grew by; keys that do not apply are left out."""

    role: Literal["assistant"]
    content: str
    reasoning_content: str
    tool_calls: list[ToolCallDelta]


class ChunkChoice(TypedDict):
    """The one choice of a chunk; `finish_reason` is null until the last."""

    index: int
    delta: ChoiceDelta
    finish_reason: FinishReason | None
    larksong: NotRequired[ChoiceInfo]


class StepInfo(TypedDict):
    """The decoding step that made a chunk (`stream_options.include_steps`).

    `step` counts from 0, `token` is the sampled token's text, `allowed` how many tokens the mask left to
    choose from, `ms` the time since the generation began.
    """

    step: int
    token: str
    token_id: int
    allowed: int
    ms: float


class Chunk(TypedDict):
    """One event of a stream; the one with usage has no choices."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: NotRequired[Usage]
    larksong: NotRequired[StepInfo]


class ModelCard(TypedDict):
    """A model that the server has."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(TypedDict):
    """The answer of `GET /v1/models`."""

    object: Literal["list"]
    data: list[ModelCard]
