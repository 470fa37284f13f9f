"""Chat completions, the way in: OpenAI's request → the inner request."""

from __future__ import annotations

from larksong.api.compat import compat_formats
from larksong.api.errors import ApiError
from larksong.api.generation import AnswerSchema, TurnRequest
from larksong.api.prompt import ChatMessage, TemplateRefusal
from larksong.api.schema_policy import DEFAULT_POLICY, SchemaPolicy
from larksong.api.schemas import (
    ChatRequest,
    JsonObjectFormat,
    JsonSchemaFormat,
    Message,
    NamedToolChoice,
    ToolSpec,
)
from larksong.engine.backends.base import Sampling
from larksong.engine.backends.errors import BudgetTooSmall, PromptError, PromptTooLong
from larksong.grammars import CallPolicy, Tool, WireFormat, wire_format
from larksong.grammars.errors import (
    DuplicateTool,
    GrammarsError,
    InvalidSchema,
    InvalidToolName,
    NoTools,
    Unenforceable,
    UnknownFormat,
    UnsupportedKeyword,
)
from larksong.grammars.response_format import JSON_OBJECT


def turn_request(
    request: ChatRequest,
    default: WireFormat,
    schemas: SchemaPolicy = DEFAULT_POLICY,
    *,
    compat: bool = False,
) -> TurnRequest:
    """The inner request; `compat` holds where it does not say.

    Raises ApiError where fields contradict each other, UnknownFormat.
    """
    tools = [tool(spec, schemas) for spec in request.tools or ()]
    calls = call_policy(request)
    answer = answer_schema(request, schemas)
    wire = default if request.tool_format is None else wire_format(request.tool_format)
    return TurnRequest(
        messages=[_template_message(message) for message in request.messages],
        tools=tools,
        calls=calls,
        answer=answer,
        wire_format=wire,
        compat=compat_mode(request, wire, default=compat),
        sampling=Sampling(
            temperature=1.0 if request.temperature is None else request.temperature,
            top_p=1.0 if request.top_p is None else request.top_p,
            top_k=max(request.top_k or 0, 0),  # other servers write "off" as -1
            min_p=request.min_p or 0.0,
            seed=request.seed,
        ),
        max_tokens=request.max_completion_tokens or request.max_tokens,
        finish_within_budget=request.finish_within_budget,
    )


def call_policy(request: ChatRequest) -> CallPolicy | None:
    """How many calls, of which tool; None where the answer must be text.

    A named choice means one call unless the request says otherwise; `min_tool_calls` of 1 or more makes calls
    required whatever `tool_choice` says.
    """
    choice = request.tool_choice or "auto"
    named = choice.function.name if isinstance(choice, NamedToolChoice) else None
    minimum = request.min_tool_calls or 0
    maximum = request.max_tool_calls
    if request.parallel_tool_calls is False:
        maximum = 1
    if choice == "none":
        if minimum:
            raise ApiError(
                "'min_tool_calls' asks for calls that tool_choice 'none' excludes.", param="min_tool_calls"
            )
        return None
    must_call = choice == "required" or named is not None or minimum > 0
    if not request.tools:
        if must_call:
            raise ApiError("Calls are asked for, but 'tools' is empty.", param="tools", code="empty_array")
        return None
    if named is not None:
        if named not in [tool.function.name for tool in request.tools]:
            raise ApiError(
                f"'tool_choice' names the tool '{named}', which is not in 'tools'.",
                param="tool_choice.function.name",
            )
        maximum = maximum or max(minimum, 1)
    if maximum is not None and minimum > maximum:
        raise ApiError(
            f"'min_tool_calls' is {minimum}, but at most {maximum} may be made "
            "('max_tool_calls', 'parallel_tool_calls').",
            param="min_tool_calls",
        )
    return CallPolicy(
        required=must_call, min_calls=max(minimum, int(must_call)), max_calls=maximum, only=named
    )


def compat_mode(request: ChatRequest, wire: WireFormat, *, default: bool) -> bool:
    """Whether the answer has the bytes of tabbyAPI. Raises ApiError for a format that it does not know."""
    wanted = default if request.compat is None else request.compat == "tabbyapi"
    if wanted and wire.name not in compat_formats():
        raise ApiError(
            f"compat mode knows the formats {', '.join(compat_formats())}, not '{wire.name}': "
            "choose one of them with 'tool_format', or set 'compat' to 'none'.",
            param="compat",
            code="unsupported_parameter",
        )
    return wanted


def answer_schema(request: ChatRequest, schemas: SchemaPolicy) -> AnswerSchema | None:
    """The schema of the answer; None where that is free text."""
    match request.response_format:
        case JsonObjectFormat():
            return AnswerSchema(JSON_OBJECT, schemas.options(None))
        case JsonSchemaFormat(json_schema=spec):
            return AnswerSchema(spec.body, schemas.options(spec.strict))
        case _:
            return None


def tool(spec: ToolSpec, schemas: SchemaPolicy = DEFAULT_POLICY) -> Tool:
    """A tool of a request; without parameters it takes none."""
    parameters = spec.function.parameters
    return Tool(
        name=spec.function.name,
        description=spec.function.description or "",
        parameters={"type": "object", "properties": {}} if parameters is None else parameters,
        options=schemas.options(spec.function.strict),
    )


def _template_message(message: Message) -> ChatMessage:
    # Absent members stay absent: templates ask whether they are defined.
    optional = {
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        "reasoning_content": message.reasoning_content,
        "tool_calls": [call.model_dump() for call in message.tool_calls or ()] or None,
    }
    # Models know the developer's instructions as the system message.
    role = "system" if message.role == "developer" else message.role
    present = {key: value for key, value in optional.items() if value is not None}
    return {"role": role, "content": message.text, **present}


def refusal(
    error: GrammarsError | PromptError | TemplateRefusal | BudgetTooSmall | RecursionError,
    request: ChatRequest,
) -> ApiError:
    """Why the request cannot be served, with the field that stands in the way.

    A place inside a schema is a JSON pointer: `tools[0].function.parameters#/properties/a/pattern`.
    """
    if isinstance(error, RecursionError):
        answers = isinstance(request.response_format, JsonSchemaFormat)
        param = "tools" if request.tools else "response_format" if answers else "messages"
        return ApiError("The request is nested too deeply.", param=param)
    if isinstance(error, PromptTooLong):
        return ApiError(str(error), param="messages", code="context_length_exceeded")
    if isinstance(error, PromptError | TemplateRefusal):
        return ApiError(str(error), param="messages")
    if isinstance(error, BudgetTooSmall):
        return _too_small(error, request)
    param, code = _GRAMMAR_FIELDS[type(error)]
    if error.tool is not None:
        names = [tool.function.name for tool in request.tools or ()]
        # Of two tools with one name the later is one too many.
        position = max(i for i, name in enumerate(names) if name == error.tool)
        param = f"tools[{position}].function.{'parameters' if error.pointer is not None else param}"
    elif error.pointer is not None:
        param = "response_format.json_schema.schema"
    if error.pointer:
        param += f"#{error.pointer}"
    return ApiError(str(error), param=param, code=code)


def _too_small(error: BudgetTooSmall, request: ChatRequest) -> ApiError:
    limit = request.max_completion_tokens or request.max_tokens
    if limit is None or limit > error.tokens:  # it is the context that ends first
        return ApiError(str(error), param="messages", code="context_length_exceeded")
    field = "max_tokens" if request.max_completion_tokens is None else "max_completion_tokens"
    return ApiError(str(error), param=field)


_GRAMMAR_FIELDS: dict[type[GrammarsError], tuple[str, str]] = {
    UnknownFormat: ("tool_format", "unknown_format"),
    NoTools: ("tools", "no_tools"),
    DuplicateTool: ("name", "duplicate_tool"),
    InvalidToolName: ("name", "invalid_tool_name"),
    InvalidSchema: ("parameters", "invalid_schema"),
    UnsupportedKeyword: ("parameters", "unsupported_keyword"),
    Unenforceable: ("parameters", "unsupported_keyword"),
}
