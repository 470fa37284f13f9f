"""What `POST /v1/chat/completions` reads and writes.

Fields that are not declared here are ignored; fields whose silent loss would change the answer are refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from larksong.api.openai_chat.answer_fields import ResponseFormat, Schema, StructuredOutputs
from larksong.api.openai_chat.messages import ListOf, Message, RequestPart
from larksong.api.openai_chat.sampler_fields import SamplerFields, unless

# --- request ---


class FunctionSpec(RequestPart):
    """A function that the model may call. Without `parameters` it takes none."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolSpec(RequestPart):
    """A tool of the request."""

    type: Literal["function"] = "function"
    function: FunctionSpec


class FunctionName(RequestPart):
    """The name of a function."""

    name: str


class NamedToolChoice(RequestPart):
    """Call this one function."""

    type: Literal["function"] = "function"
    function: FunctionName


class AllowedTools(RequestPart):
    """The tools that may be called now; all others stay in the prompt."""

    mode: Literal["auto", "required"] = "auto"
    tools: Annotated[ListOf[NamedToolChoice], Field(min_length=1)]


class AllowedToolsChoice(RequestPart):
    """Call none but these functions."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


class StreamOptions(RequestPart):
    """Larksong's own: `include_steps`, each chunk says which decoding step made it (`StepInfo`), and
    `parse_events`, the typed parse events beside the deltas (`EventInfo`)."""

    include_usage: bool | None = None
    include_steps: bool | None = None
    parse_events: bool | None = None


class ChatRequest(SamplerFields):
    """The body of a chat completion.

    Own additions: min_tool_calls, max_tool_calls, tool_format, compat, finish_within_budget. What is declared
    as `unless(…)` is refused with any other value; what is not declared has no effect (docs/api.md lists it).
    """

    model: str
    messages: Annotated[ListOf[Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=16)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    tools: ListOf[ToolSpec] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | AllowedToolsChoice | None = None
    functions: ListOf[FunctionSpec] | None = None
    function_call: Literal["none", "auto"] | FunctionName | None = None
    parallel_tool_calls: bool | None = None
    min_tool_calls: Annotated[int, Field(ge=0)] | None = None
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    tool_format: str | None = None
    compat: Literal["tabbyapi", "none"] | None = None

    max_tokens: Annotated[int, Field(ge=1)] | None = Field(
        None, validation_alias=AliasChoices("max_tokens", "max_length")
    )
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    finish_within_budget: bool | None = None

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    thinking_budget: Annotated[int, Field(ge=0)] | None = Field(
        None, validation_alias=AliasChoices("thinking_budget", "thinking_token_budget")
    )
    chat_template_kwargs: dict[str, Any] | None = Field(
        None, validation_alias=AliasChoices("chat_template_kwargs", "template_vars")
    )

    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Schema | None = Field(None, validation_alias=AliasChoices("guided_json", "json_schema"))
    guided_regex: str | None = Field(None, validation_alias=AliasChoices("guided_regex", "regex_pattern"))
    guided_choice: ListOf[str] | None = None
    guided_grammar: str | None = None

    audio: Annotated[Any, unless()] = None
    modalities: Annotated[ListOf[str] | None, unless(["text"], [])] = None
    web_search_options: Annotated[Any, unless()] = None
    documents: Annotated[list[Any] | None, unless([])] = None
    chat_template: Annotated[str | None, unless()] = None
    continue_final_message: Annotated[bool | None, unless(False)] = None
    add_generation_prompt: Annotated[bool | None, unless(True)] = None
    echo: Annotated[bool | None, unless(False)] = None
    grammar_string: Annotated[str | None, unless("")] = None
    guided_whitespace_pattern: Annotated[str | None, unless()] = None


# --- response ---

FinishReason = Literal["stop", "length", "tool_calls", "function_call"]


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
    reasoning: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]
    function_call: NotRequired[FunctionCall]


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


class TopLogprob(TypedDict):
    """A token that might have come; `bytes` is null for a marker."""

    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(TopLogprob):
    """A token of the answer, and the likeliest tokens in its place."""

    top_logprobs: list[TopLogprob]


class Logprobs(TypedDict):
    """Of all tokens of the answer, those of calls and markers included, as the model itself sees them."""

    content: list[TokenLogprob]
    refusal: None


class Choice(TypedDict):
    """A choice of a completion."""

    index: int
    message: AssistantMessage
    finish_reason: FinishReason
    logprobs: NotRequired[Logprobs]
    larksong: NotRequired[ChoiceInfo]


class PromptDetails(TypedDict):
    """`cached_tokens`: of the prompt, those that the model had read for an earlier request."""

    cached_tokens: int


class CompletionDetails(TypedDict):
    """`reasoning_tokens`: of the completion, those of reasoning."""

    reasoning_tokens: int


class Usage(TypedDict):
    """Tokens read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


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
    reasoning: str
    tool_calls: list[ToolCallDelta]
    function_call: FunctionDelta


class ChunkChoice(TypedDict):
    """A choice of a chunk; `finish_reason` is null until its last."""

    index: int
    delta: ChoiceDelta
    finish_reason: FinishReason | None
    logprobs: NotRequired[Logprobs]
    larksong: NotRequired[ChoiceInfo]


class EventInfo(TypedDict, total=False):
    """A parse event (`stream_options.parse_events`); keys that do not apply are left out.

    `event`: function_open (name), parameter_open (name, type: JSON Schema's name of it, "any", or several
    with "|" between them), value (raw text, or json), parameter_close, call_close, content, reasoning.
    `index`: of the call.
    """

    event: str
    index: int
    name: str
    type: str
    text: str
    json: str


class StepInfo(TypedDict, total=False):
    """The decoding step that made a chunk (`stream_options.include_steps`).

    `step` counts from 0, `token` is the sampled token's text, `allowed` how many tokens the mask left to
    choose from, `ms` the time since the generation began.
    """

    step: int
    token: str
    token_id: int
    allowed: int
    ms: float
    events: list[EventInfo]


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
    max_model_len: int


class ModelList(TypedDict):
    """The answer of `GET /v1/models`."""

    object: Literal["list"]
    data: list[ModelCard]


class ErrorInfo(TypedDict):
    """What went wrong (see `larksong.api.errors`)."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorShape(TypedDict):
    """The body of every answer that is not a success."""

    error: ErrorInfo
