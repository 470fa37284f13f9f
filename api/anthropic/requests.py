"""Anthropic's request → the chat request that means the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from larksong.api.anthropic.errors import NO_THREADS
from larksong.api.anthropic.schemas import (
    ContentBlock,
    CountRequest,
    MessageParam,
    MessagesRequest,
    ServerTool,
    TextBlock,
    Thinking,
    ToolParam,
    ToolResult,
    ToolUse,
)
from larksong.api.errors import ApiError
from larksong.api.openai_chat.field_names import FieldNames
from larksong.api.openai_chat.messages import HistoryCall, HistoryFunction, Message
from larksong.api.openai_chat.schemas import ChatRequest, FunctionSpec, ToolSpec
from larksong.api.openai_chat.translation import Translation

# Claude Code's first system block is for Anthropic's billing alone and differs in every request: in a prompt
# it would make the model read everything behind it anew.
_BILLING = "x-anthropic-billing-header:"

_NAMES = [
    (r"\.function\.parameters$", ".input_schema"),
    (r"\.function(?=\.|$)", ""),
    (r"^tool_choice\.function\.name$", "tool_choice.name"),
    (r"^response_format\.json_schema\.schema$", "output_config.format.schema"),
    (r"^response_format$", "output_config.format"),
    (r"^stop$", "stop_sequences"),
    (r"^thinking_budget$", "thinking.budget_tokens"),
    (r"\.(tool_call_id|tool_calls)$", ".content"),
]


def translated(request: CountRequest) -> Translation:
    """The request in terms of chat completions. Raises ApiError."""
    if isinstance(request, MessagesRequest) and request.thread is not None:
        raise ApiError(
            "This server stores no messages, so it has no threads: send all messages with each request.",
            param="thread",
            code=NO_THREADS,
        )
    messages, places = _messages(request)
    own = [(place, tool) for place, tool in enumerate(request.tools or ()) if isinstance(tool, ToolParam)]
    names = FieldNames(
        {"messages": places, "tools": [f"tools[{place}]" for place, _ in own]},
        _NAMES,
    )
    left_out = [tool.name or tool.type for tool in request.tools or () if isinstance(tool, ServerTool)]
    fields: dict[str, Any] = {
        **request.shared(),
        "model": request.model,
        "messages": messages,
        "tools": [_tool(tool) for _, tool in own] or None,
        **_choice(request, left_out),
        **_thinking(request),
        **_answer(request),
    }
    if isinstance(request, MessagesRequest):
        fields |= {"max_tokens": request.max_tokens, "stop": request.stop_sequences}
    return Translation(ChatRequest.model_validate(fields), names, left_out)


def _tool(tool: ToolParam) -> ToolSpec:
    return ToolSpec(
        function=FunctionSpec(
            name=tool.name,
            description=tool.description,
            parameters=tool.input_schema,
            strict=tool.strict,
        )
    )


def _choice(request: CountRequest, left_out: Sequence[str]) -> dict[str, Any]:
    choice = request.tool_choice
    if choice is None:
        return {}
    chosen: Any = {"auto": "auto", "any": "required", "none": "none"}.get(choice.type)
    if choice.type == "tool":
        if choice.name is None:
            raise ApiError(
                "Missing required parameter: 'tool_choice.name'.",
                param="tool_choice.name",
                code="missing_required_parameter",
            )
        if choice.name in left_out:
            raise ApiError(
                f"This server does not have the tool '{choice.name}'.",
                param="tool_choice.name",
                code="unsupported_parameter",
            )
        chosen = {"type": "function", "function": {"name": choice.name}}
    single = {"parallel_tool_calls": False} if choice.disable_parallel_tool_use else {}
    return {"tool_choice": chosen, **single}


def _thinking(request: CountRequest) -> dict[str, Any]:
    """Whether and how long the model reasons; what is not said is left to its chat template."""
    fields: dict[str, Any] = {}
    config, output = request.thinking, request.output_config
    if output is not None and output.effort is not None:
        fields["reasoning_effort"] = output.effort
    if config is not None and config.type == "disabled":
        fields["reasoning_effort"] = "none"
    elif config is not None and config.type == "enabled":
        given = request.chat_template_kwargs or {}
        fields["chat_template_kwargs"] = {"enable_thinking": True, "thinking": True, **given}
        fields["thinking_budget"] = config.budget_tokens
    return fields


def _answer(request: CountRequest) -> dict[str, Any]:
    form = request.output_format
    if request.output_config is not None and request.output_config.format is not None:
        form = request.output_config.format
    if form is None:
        return {}
    spec = {"name": "answer", "schema": form.body}
    return {"response_format": {"type": "json_schema", "json_schema": spec}}


def _messages(request: CountRequest) -> tuple[list[Message], list[str]]:
    """The messages, and where in the request each comes from."""
    messages: list[Message] = []
    places: list[str] = []
    system = [TextBlock(text=request.system)] if isinstance(request.system, str) else request.system or ()
    if text := "\n\n".join(block.text for block in system if not block.text.startswith(_BILLING)):
        messages.append(Message(role="system", content=text))
        places.append("system")
    numbered = enumerate(request.messages)
    # Neighbours of one role are one message.
    for role, group in itertools.groupby(numbered, key=lambda pair: pair[1].role):
        merged = list(group)
        blocks = [block for _, message in merged for block in _blocks(message)]
        place = f"messages[{merged[0][0]}]"
        made = [_assistant(blocks, place)] if role == "assistant" else list(_others(role, blocks, place))
        messages += made
        places += [place] * len(made)
    if messages[-1].role == "assistant":
        raise ApiError(
            "The last message is the assistant's: this server does not go on from an answer's beginning.",
            param=places[-1],
            code="unsupported_parameter",
        )
    return messages, places


def _blocks(message: MessageParam) -> Sequence[ContentBlock]:
    return [TextBlock(text=message.content)] if isinstance(message.content, str) else message.content


def _assistant(blocks: Iterable[ContentBlock], place: str) -> Message:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[HistoryCall] = []
    for block in blocks:
        match block:
            case TextBlock(text=text):
                texts.append(text)
            case Thinking(thinking=thought):
                thoughts.append(thought)
            case ToolUse():
                function = HistoryFunction(name=block.name, arguments=block.input)
                calls.append(HistoryCall(id=block.id, function=function))
            case ToolResult():
                raise ApiError("Results of tools belong into messages of the user.", param=f"{place}.content")
            case _:
                pass
    return Message(
        role="assistant",
        content="".join(texts),
        reasoning_content="\n\n".join(thought for thought in thoughts if thought) or None,
        tool_calls=calls or None,
    )


def _others(role: str, blocks: Sequence[ContentBlock], place: str) -> Iterable[Message]:
    """Results first, as they belong to the calls before; then the text."""
    texts: list[str] = []
    results = 0
    for block in blocks:
        match block:
            case ToolResult():
                results += 1
                yield Message(role="tool", tool_call_id=block.tool_use_id, content=block.text)
            case TextBlock(text=text):
                texts.append(text)
            case _:
                raise ApiError(
                    f"Blocks of the type '{block.type}' belong into messages of the assistant.",
                    param=f"{place}.content",
                )
    if texts or not results:
        yield Message(role="system" if role == "system" else "user", content="\n".join(texts))
