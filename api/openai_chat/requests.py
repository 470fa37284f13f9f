"""Chat completions, the way in: OpenAI's request → the inner request."""

from __future__ import annotations

from typing import Any

from larksong.api.errors import ApiError
from larksong.api.openai_chat.answer_fields import JsonObjectFormat, JsonSchemaFormat
from larksong.api.openai_chat.history import template_messages
from larksong.api.openai_chat.sampler_fields import sampling
from larksong.api.openai_chat.schemas import (
    AllowedToolsChoice,
    ChatRequest,
    FunctionName,
    NamedToolChoice,
    ToolSpec,
)
from larksong.api.turns.answer_form import AnswerForm, AnswerSchema, AnswerText
from larksong.api.turns.chat_template import TemplateRefusal
from larksong.api.turns.compat_formats import compat_formats
from larksong.api.turns.request import TurnRequest
from larksong.api.turns.schema_policy import DEFAULT_POLICY, SchemaPolicy
from larksong.engine.backends.errors import BudgetTooSmall, PromptError, PromptTooLong
from larksong.grammars import CallPolicy, Tool, WireFormat, wire_format
from larksong.grammars.answers.response_format import JSON_OBJECT
from larksong.grammars.errors import (
    DuplicateTool,
    GrammarsError,
    InvalidConstraint,
    InvalidSchema,
    InvalidToolName,
    NoTools,
    Unenforceable,
    UnknownFormat,
    UnsupportedKeyword,
)

# What the server itself gives a chat template.
_TEMPLATE_NAMES = {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "documents"}


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
    wire = default if request.tool_format is None else wire_format(request.tool_format)
    specs = tool_specs(request)
    calls = call_policy(request)
    answer = answer_form(request, schemas)
    if calls is not None and isinstance(answer, AnswerText):
        raise ApiError(
            f"'{answer.field}' cannot be combined with calls: leave out 'tools' or set tool_choice 'none'.",
            param=answer.field,
            code="unsupported_parameter",
        )
    choice = request.tool_choice
    allowed = None
    if isinstance(choice, AllowedToolsChoice):
        allowed = frozenset(each.function.name for each in choice.allowed_tools.tools)
    if request.top_logprobs and not request.logprobs:
        raise ApiError("'top_logprobs' needs 'logprobs'.", param="top_logprobs")
    return TurnRequest(
        messages=template_messages(request.messages),
        tools=[tool(spec, schemas) for spec in specs],
        calls=calls,
        answer=answer,
        allowed=allowed,
        wire_format=wire,
        compat=compat_mode(request, wire, default=compat),
        sampling=sampling(request, (request.top_logprobs or 0) if request.logprobs else None),
        max_tokens=request.max_completion_tokens or request.max_tokens,
        finish_within_budget=request.finish_within_budget,
        stops=request.stops(),
        variables=template_variables(request),
        reasoning_budget=request.thinking_budget,
    )


def tool_specs(request: ChatRequest) -> list[ToolSpec]:
    """The tools, or the legacy `functions` as tools."""
    if request.functions and request.tools:
        raise ApiError("'functions' is the old name of 'tools': give one of them.", param="functions")
    return request.tools or [ToolSpec(function=function) for function in request.functions or ()]


def template_variables(request: ChatRequest) -> dict[str, Any]:
    """What the chat template gets beside messages and tools. Raises ApiError."""
    variables: dict[str, Any] = {}
    if (effort := request.reasoning_effort) is not None:
        thinks = effort != "none"
        # Families name the switch differently; a template ignores what it does not know.
        variables = {"reasoning_effort": effort, "enable_thinking": thinks, "thinking": thinks}
    given = request.chat_template_kwargs or {}
    if reserved := sorted(_TEMPLATE_NAMES & given.keys()):
        raise ApiError(
            f"Invalid 'chat_template_kwargs': '{reserved[0]}' is the server's own.",
            param=f"chat_template_kwargs.{reserved[0]}",
        )
    return {**variables, **given}


def call_policy(request: ChatRequest) -> CallPolicy | None:
    """How many calls, of which tool; None where the answer must be text.

    A named choice means one call unless the request says otherwise; `min_tool_calls` of 1 or more makes calls
    required whatever `tool_choice` says.
    """
    choice: Any = request.tool_choice or request.function_call or "auto"
    field, named = "tool_choice.function.name", None
    if isinstance(choice, NamedToolChoice):
        named = choice.function.name
    elif isinstance(choice, FunctionName):
        field, named = "function_call.name", choice.name
    allowed: list[str] = []
    if isinstance(choice, AllowedToolsChoice):
        allowed = [each.function.name for each in choice.allowed_tools.tools]
        choice = choice.allowed_tools.mode
    specs = tool_specs(request)
    minimum = request.min_tool_calls or 0
    maximum = request.max_tool_calls
    if request.parallel_tool_calls is False or (request.functions and not request.tools):
        maximum = 1  # a legacy answer has room for one call
    if choice == "none":
        if minimum:
            raise ApiError(
                "'min_tool_calls' asks for calls that tool_choice 'none' excludes.", param="min_tool_calls"
            )
        return None
    must_call = choice == "required" or named is not None or minimum > 0
    if not specs:
        if must_call or allowed:
            raise ApiError("Calls are asked for, but 'tools' is empty.", param="tools", code="empty_array")
        return None
    names = {spec.function.name for spec in specs}
    for place, name in enumerate(allowed):
        if name not in names:
            raise ApiError(
                f"'tool_choice' names the tool '{name}', which is not in 'tools'.",
                param=f"tool_choice.allowed_tools.tools[{place}].function.name",
            )
    if named is not None:
        if named not in names:
            raise ApiError(f"'{field}' is '{named}', which is not in 'tools'.", param=field)
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


def answer_form(request: ChatRequest, schemas: SchemaPolicy) -> AnswerForm | None:
    """The form of the answer; None where that is free text. Raises ApiError where two are given."""
    forms: dict[str, AnswerForm] = {}
    match request.response_format:
        case JsonObjectFormat():
            forms["response_format"] = AnswerSchema(JSON_OBJECT, schemas.options(None))
        case JsonSchemaFormat(json_schema=spec):
            forms["response_format"] = AnswerSchema(spec.body, schemas.options(spec.strict))
        case _:
            pass
    structured = request.structured_outputs
    given: list[tuple[str, Any, Any]] = [
        ("guided_json", "schema", request.guided_json),
        ("guided_regex", "regex", request.guided_regex),
        ("guided_choice", "choice", request.guided_choice),
        ("guided_grammar", "grammar", request.guided_grammar),
    ]
    if structured is not None:
        given += [
            ("structured_outputs.json", "schema", structured.json_schema),
            ("structured_outputs.json", "schema", JSON_OBJECT if structured.json_object else None),
            ("structured_outputs.regex", "regex", structured.regex),
            ("structured_outputs.choice", "choice", structured.choice),
            ("structured_outputs.grammar", "grammar", structured.grammar),
        ]
    for field, kind, value in given:
        if value is None:
            continue
        if kind == "schema":
            forms[field] = AnswerSchema(value, schemas.options(None), field)
        else:
            forms[field] = AnswerText(kind, tuple(value) if kind == "choice" else value, field)
    if len(forms) > 1:
        field = list(forms)[1]
        raise ApiError(f"Give one of '{next(iter(forms))}' and '{field}': both form the answer.", param=field)
    return next(iter(forms.values()), None)


def tool(spec: ToolSpec, schemas: SchemaPolicy = DEFAULT_POLICY) -> Tool:
    """A tool of a request; without parameters it takes none."""
    parameters = spec.function.parameters
    return Tool(
        name=spec.function.name,
        description=spec.function.description or "",
        parameters={"type": "object", "properties": {}} if parameters is None else parameters,
        options=schemas.options(spec.function.strict),
    )


def refusal(
    error: GrammarsError | PromptError | TemplateRefusal | BudgetTooSmall | RecursionError,
    request: ChatRequest,
) -> ApiError:
    """Why the request cannot be served, with the field that stands in the way.

    A place inside a schema is a JSON pointer: `tools[0].function.parameters#/properties/a/pattern`.
    """
    if isinstance(error, RecursionError):
        form = answer_form(request, DEFAULT_POLICY)
        param = "tools" if tool_specs(request) else form.field if form else "messages"
        return ApiError("The request is nested too deeply.", param=param)
    if isinstance(error, PromptTooLong):
        return ApiError(str(error), param="messages", code="context_length_exceeded")
    if isinstance(error, PromptError | TemplateRefusal):
        return ApiError(str(error), param="messages")
    if isinstance(error, BudgetTooSmall):
        return _too_small(error, request)
    param, code = _GRAMMAR_FIELDS[type(error)]
    form = answer_form(request, DEFAULT_POLICY)
    if isinstance(error, InvalidConstraint) and form is not None:
        param = form.field
    if error.tool is not None:
        names = [tool.function.name for tool in tool_specs(request)]
        # Of two tools with one name the later is one too many.
        position = max(i for i, name in enumerate(names) if name == error.tool)
        where = f"tools[{position}].function" if request.tools else f"functions[{position}]"
        param = f"{where}.{'parameters' if error.pointer is not None else param}"
    elif error.pointer is not None and form is not None:
        param = "response_format.json_schema.schema" if form.field == "response_format" else form.field
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
    InvalidConstraint: ("response_format", "invalid_value"),
}
