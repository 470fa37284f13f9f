"""Chat completions, the way out: deltas → OpenAI's chunks, or one completion made from the same."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from larksong.api.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from larksong.api.generation import Model, Turn, TurnEnd, TurnStep
from larksong.api.schemas import (
    AssistantMessage,
    ChatCompletion,
    Choice,
    ChoiceDelta,
    ChoiceInfo,
    Chunk,
    FinishReason,
    FunctionDelta,
    StepInfo,
    StreamOptions,
    ToolCall,
    Usage,
)


async def chunks(turn: Turn, model: Model, options: StreamOptions) -> AsyncGenerator[Chunk, None]:
    """The turn as a stream: role, deltas, finish reason and, if asked for, usage."""
    id, created = _new_id(), int(time.time())

    def chunk(delta: ChoiceDelta, finish_reason: FinishReason | None = None) -> Chunk:
        return {
            "id": id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model.name,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        }

    yield chunk({"role": "assistant", "content": ""})
    async with aclosing(turn.run()) as items:
        async for item in items:
            for delta in item.deltas:
                made = chunk(choice_delta(delta))
                if options.include_steps and not isinstance(item, TurnEnd):
                    made["larksong"] = _step_info(item, model)
                yield made
            if isinstance(item, TurnEnd):
                last = chunk({}, item.reason)
                if info := _choice_info(item):
                    last["choices"][0]["larksong"] = info
                yield last
                if options.include_usage:
                    usage = _usage(turn.prompt_tokens, item.completion_tokens)
                    yield {**chunk({}), "choices": [], "usage": usage}


async def completion(turn: Turn, model: Model) -> ChatCompletion:
    """The turn as one answer."""
    answer = _Answer()
    async with aclosing(turn.run()) as items:
        async for item in items:
            for delta in item.deltas:
                answer.add(delta)
            if isinstance(item, TurnEnd):
                end = item
    choice: Choice = {"index": 0, "message": answer.message(), "finish_reason": end.reason}
    if info := _choice_info(end):
        choice["larksong"] = info
    return {
        "id": _new_id(),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model.name,
        "choices": [choice],
        "usage": _usage(turn.prompt_tokens, end.completion_tokens),
    }


def choice_delta(delta: Delta) -> ChoiceDelta:
    """A delta in OpenAI's shape. Keys that do not apply are absent: some clients break on nulls."""
    match delta:
        case ContentDelta(text):
            return {"content": text}
        case ReasoningDelta(text):
            return {"reasoning_content": text}
        case CallDelta(index, id, name):
            opened: FunctionDelta = {"name": name, "arguments": ""}
            return {"tool_calls": [{"index": index, "id": id, "type": "function", "function": opened}]}
        case ArgumentsDelta(index, fragment):
            return {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}


class _Answer:
    """The message that deltas add up to."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[CallDelta] = []
        self._arguments: list[list[str]] = []

    def add(self, delta: Delta) -> None:
        match delta:
            case ContentDelta(text):
                self._content.append(text)
            case ReasoningDelta(text):
                self._reasoning.append(text)
            case CallDelta():
                self._calls.append(delta)
                self._arguments.append([])
            case ArgumentsDelta(index, fragment):
                self._arguments[index].append(fragment)

    def message(self) -> AssistantMessage:
        message: AssistantMessage = {"role": "assistant", "content": "".join(self._content) or None}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = [
                _tool_call(call, "".join(arguments))
                for call, arguments in zip(self._calls, self._arguments, strict=True)
            ]
        return message


def _tool_call(call: CallDelta, arguments: str) -> ToolCall:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(prompt_tokens: int, completion_tokens: int) -> Usage:
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def _step_info(item: TurnStep, model: Model) -> StepInfo:
    return {
        "step": item.number,
        "token": model.token_text(item.step.token),
        "token_id": item.step.token,
        "allowed": item.step.allowed,
        "ms": round(item.step.elapsed * 1000, 3),
    }


def _choice_info(end: TurnEnd) -> ChoiceInfo:
    info: ChoiceInfo = {}
    if end.finished_calls is not None:
        info["finished_within_budget"] = list(end.finished_calls)
    if end.widened:
        info["warnings"] = [
            {"tool": each.tool, "pointer": each.pointer, "keyword": each.keyword, "valid": each.valid}
            for each in end.widened
        ]
    if end.compat:
        info["compat"] = list(end.compat)
    return info


def _new_id() -> str:
    return "chatcmpl-" + secrets.token_hex(12)
