"""A request for a response → the chat request that means the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from larksong.api.errors import ApiError
from larksong.api.openai_chat.field_names import FieldNames
from larksong.api.openai_chat.schemas import ChatRequest, FunctionSpec, ToolSpec
from larksong.api.openai_chat.translation import Translation
from larksong.api.responses.history import History
from larksong.api.responses.schemas import (
    AllowedTools,
    ChosenTool,
    FunctionTool,
    JsonSchemaForm,
    Namespace,
    OtherTool,
    ResponsesRequest,
)

_NAMES = [
    (r"\.function(?=\.|$)", ""),
    (r"^tool_choice\.allowed_tools\.", "tool_choice."),
    (r"^response_format\.json_schema\.schema$", "text.format.schema"),
    (r"^response_format$", "text.format"),
    (r"^max_tokens$", "max_output_tokens"),
    (r"\.tool_call_id$", ".call_id"),
    (r"^messages$", "input"),
]


@dataclass(frozen=True)
class ResponseTranslation(Translation):
    """Besides the namespaces of functions that have one."""

    namespaces: Mapping[str, str]


def translated(request: ResponsesRequest) -> ResponseTranslation:
    """The request in terms of chat completions. Raises ApiError."""
    _refuse_what_is_stored(request)
    history = History(request)
    tools: list[ToolSpec] = []
    places: list[str] = []
    namespaces: dict[str, str] = {}
    left_out: list[str] = []
    for index, tool in enumerate(request.tools or ()):
        match tool:
            case FunctionTool():
                tools.append(_tool(tool))
                places.append(f"tools[{index}]")
            case Namespace():
                for inner, function in enumerate(tool.tools):
                    tools.append(_tool(function))
                    places.append(f"tools[{index}].tools[{inner}]")
                    namespaces[function.name] = tool.name
            case OtherTool():
                left_out.append(tool.name or tool.type)
    fields: dict[str, Any] = {
        **request.shared(),
        "model": request.model,
        "messages": history.messages,
        "tools": tools or None,
        "parallel_tool_calls": request.parallel_tool_calls,
        "max_tokens": request.max_output_tokens,
        "reasoning_effort": request.reasoning.effort if request.reasoning is not None else None,
        **_choice(request, left_out, has_tools=bool(tools)),
        **_answer(request),
    }
    names = FieldNames({"messages": history.places, "tools": places}, _NAMES)
    return ResponseTranslation(ChatRequest.model_validate(fields), names, left_out, namespaces)


def _refuse_what_is_stored(request: ResponsesRequest) -> None:
    if request.previous_response_id is not None:
        raise ApiError(
            "This server stores no responses, so 'previous_response_id' leads to none: send the earlier "
            "items in 'input' (the output of each response can be given back as it is).",
            param="previous_response_id",
            code="unsupported_parameter",
        )
    if "message.output_text.logprobs" in (request.include or ()):
        raise ApiError(
            "Invalid 'include': this API has no log probabilities here; chat completions have.",
            param="include",
            code="unsupported_parameter",
        )


def _tool(tool: FunctionTool) -> ToolSpec:
    function = FunctionSpec(
        name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict
    )
    return ToolSpec(function=function)


def _choice(request: ResponsesRequest, left_out: Sequence[str], *, has_tools: bool) -> dict[str, Any]:
    choice = request.tool_choice
    match choice:
        case AllowedTools():
            named = [_named(tool, f"tool_choice.tools[{i}]") for i, tool in enumerate(choice.tools)]
            return {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": choice.mode, "tools": named},
                }
            }
        case ChosenTool():
            return {"tool_choice": _named(choice, "tool_choice")}
        case "required" if left_out and not has_tools:
            raise ApiError(
                f"Calls are asked for, but this server has none of the tools: {', '.join(left_out)}.",
                param="tools",
                code="unsupported_parameter",
            )
    return {"tool_choice": choice}


def _named(tool: ChosenTool, place: str) -> dict[str, Any]:
    if tool.type != "function" or tool.name is None:
        raise ApiError(
            f"Invalid '{place}': only functions can be chosen, each by its name.",
            param=place,
            code="unsupported_parameter",
        )
    return {"type": "function", "function": {"name": tool.name}}


def _answer(request: ResponsesRequest) -> dict[str, Any]:
    form = request.text.format if request.text is not None else None
    if form is None:
        return {}
    if isinstance(form, JsonSchemaForm):
        spec = {"name": form.name, "schema": form.body, "strict": form.strict}
        return {"response_format": {"type": "json_schema", "json_schema": spec}}
    return {"response_format": {"type": form.type}}
