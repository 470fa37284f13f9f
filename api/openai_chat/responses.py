"""Chat completions, the way out: deltas → OpenAI's chunks, or one completion made from the same."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from larksong.api.http.sse import json_line
from larksong.api.openai_chat.choice_info import choice_info
from larksong.api.openai_chat.logprobs import LogprobWriter
from larksong.api.openai_chat.parse_events import EventWriter
from larksong.api.openai_chat.schemas import (
    AssistantMessage,
    ChatCompletion,
    Choice,
    ChoiceDelta,
    Chunk,
    ChunkChoice,
    FinishReason,
    FunctionDelta,
    StepInfo,
    StreamOptions,
    ToolCall,
)
from larksong.api.openai_chat.usage import usage
from larksong.api.runtime.ids import new_id
from larksong.api.settings.reasoning_field import ReasoningField
from larksong.api.turns.answer import Answer
from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from larksong.api.turns.merge import merged, numbered
from larksong.api.turns.model import Model
from larksong.api.turns.totals import Totals
from larksong.api.turns.turn import Turn, TurnEnd, TurnStep
from larksong.grammars import Tool


@dataclass(frozen=True)
class AnswerStyle:
    """How an answer is written down.

    `reasoning`: the field of reasoning. `legacy`: the one call is a `function_call`. `tools`: what parameters
    are declared, for the types in parse events.
    """

    reasoning: ReasoningField = "reasoning_content"
    legacy: bool = False
    logprobs: bool = False
    options: StreamOptions = field(default_factory=StreamOptions)
    tools: Sequence[Tool] = ()


DEFAULT_STYLE = AnswerStyle()

_GAP = "\0gap\0"  # in a frame's place of the text; no id or name of a model has it


def chunks(
    turns: Sequence[Turn], model: Model, style: AnswerStyle, totals: Totals
) -> AsyncGenerator[Chunk | bytes, None]:
    """The turns, one a choice, as a stream: role, deltas, finish reason and, if asked for, usage.

    Chunks that hold a delta and nothing else, nearly all, come as JSON text.
    """
    empty: Chunk = {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model.name,
        "choices": [],
    }
    made = merged(
        [_ChoiceWriter(index, empty, model, style).chunks(turn, totals) for index, turn in enumerate(turns)]
    )
    return _with_usage(made, empty, totals) if style.options.include_usage else made


async def _with_usage(
    made: AsyncGenerator[Chunk | bytes, None], empty: Chunk, totals: Totals
) -> AsyncGenerator[Chunk | bytes, None]:
    async with aclosing(made):
        async for chunk in made:
            yield chunk
    yield {**empty, "usage": usage(totals)}


class _ChoiceWriter:
    """Writes the chunks of one choice. `empty`: what all chunks of the stream have in common."""

    def __init__(self, index: int, empty: Chunk, model: Model, style: AnswerStyle) -> None:
        self._index = index
        self._empty = empty
        self._head = json_line(empty).removesuffix(b"]}") + b'{"index":%d,"delta":' % index
        self._model = model
        self._style = style
        self._logprobs = LogprobWriter(model) if style.logprobs else None
        self._events = EventWriter(style.tools) if style.options.parse_events else None
        self._frames: dict[tuple[str, int], list[bytes]] = {}
        self._is_plain = not (style.logprobs or style.options.parse_events or style.options.include_steps)

    def plain(self, delta: ChoiceDelta) -> bytes:
        """A chunk that holds a delta and nothing else, as JSON text."""
        return b'%b%b,"finish_reason":null}]}' % (self._head, json_line(delta))

    async def chunks(self, turn: Turn, totals: Totals) -> AsyncGenerator[Chunk | bytes, None]:
        """The chunks of a turn."""
        yield self.plain({"role": "assistant", "content": ""})
        async with aclosing(turn.run()) as items:
            async for item in items:
                for chunk in self._written(item):
                    yield chunk
                if isinstance(item, TurnEnd):
                    totals.add(item)

    def _written(self, item: TurnStep | TurnEnd) -> Iterable[Chunk | bytes]:
        """The chunks of an item."""
        if self._is_plain and isinstance(item, TurnStep):
            return [self._piece(delta) for delta in item.deltas]
        return [self._chunk(*made) for made in self._choices(item)]

    def _piece(self, delta: Delta) -> bytes:
        """The plain chunk of a delta. Those of one kind differ in their text alone: it goes into a frame."""
        match delta:
            case ArgumentsDelta(index, text):
                kind = ("arguments", index)
            case ContentDelta(text):
                kind = ("content", 0)
            case ReasoningDelta(text):
                kind = ("reasoning", 0)
            case CallDelta():
                return self.plain(choice_delta(delta, self._style))
        frame = self._frames.get(kind)
        if frame is None:
            frame = self._frames[kind] = self._frame(delta)
        return json_line(text).join(frame)

    def _frame(self, delta: ArgumentsDelta | ContentDelta | ReasoningDelta) -> list[bytes]:
        """What stands around the text of such a delta's chunk, in which it may stand twice."""
        if isinstance(delta, ArgumentsDelta):
            gap: Delta = replace(delta, fragment=_GAP)
        else:
            gap = replace(delta, text=_GAP)
        return self.plain(choice_delta(gap, self._style)).split(json_line(_GAP))

    def _chunk(self, choice: ChunkChoice, info: StepInfo) -> Chunk:
        made: Chunk = {**self._empty, "choices": [choice]}
        if info:
            made["larksong"] = info
        return made

    def _choice(self, delta: ChoiceDelta, reason: FinishReason | None = None) -> ChunkChoice:
        return {"index": self._index, "delta": delta, "finish_reason": reason}

    def _choices(self, item: TurnStep | TurnEnd) -> list[tuple[ChunkChoice, StepInfo]]:
        """The choices of an item's chunks, each with what Larksong adds to its chunk."""
        found: list[tuple[ChunkChoice, StepInfo]] = []
        info: StepInfo = {}
        if isinstance(item, TurnStep):
            if self._logprobs is not None:
                self._logprobs.add(item.step)
            if self._style.options.include_steps:
                info = _step_info(item, self._model)
        events = self._events.write(item) if self._events is not None else []
        for place, delta in enumerate(item.deltas):
            choice = self._choice(choice_delta(delta, self._style))
            if self._logprobs is not None and (logprobs := self._logprobs.take()) is not None:
                choice["logprobs"] = logprobs
            # The events of a step go with the first of its chunks.
            found.append((choice, {**info, "events": events} if events and not place else info))
        if events and not item.deltas:
            found.append((self._choice({}), {**info, "events": events}))
        if isinstance(item, TurnEnd):
            last = self._choice({}, finish_reason(item, self._style))
            if self._logprobs is not None and (logprobs := self._logprobs.take()) is not None:
                last["logprobs"] = logprobs
            if more := choice_info(item):
                last["larksong"] = more
            found.append((last, {}))
        return found


async def completion(
    turns: Sequence[Turn], model: Model, style: AnswerStyle, totals: Totals
) -> ChatCompletion:
    """The turns as one answer, each a choice."""
    answers = [Answer() for _ in turns]
    writers = [LogprobWriter(model) for _ in turns] if style.logprobs else []
    ends: dict[int, TurnEnd] = {}
    async with aclosing(numbered(turns)) as items:
        async for index, item in items:
            for delta in item.deltas:
                answers[index].add(delta)
            if isinstance(item, TurnEnd):
                ends[index] = item
                totals.add(item)
            elif writers:
                writers[index].add(item.step)
    choices: list[Choice] = []
    for index, answer in enumerate(answers):
        choice: Choice = {
            "index": index,
            "message": _message(answer, style),
            "finish_reason": finish_reason(ends[index], style),
        }
        if writers:
            choice["logprobs"] = writers[index].take() or {"content": [], "refusal": None}
        if info := choice_info(ends[index]):
            choice["larksong"] = info
        choices.append(choice)
    return {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model.name,
        "choices": choices,
        "usage": usage(totals),
    }


def finish_reason(end: TurnEnd, style: AnswerStyle) -> FinishReason:
    """OpenAI's word for why a turn ended."""
    return "function_call" if style.legacy and end.reason == "tool_calls" else end.reason


def choice_delta(delta: Delta, style: AnswerStyle = DEFAULT_STYLE) -> ChoiceDelta:
    """A delta in OpenAI's shape. Keys that do not apply are absent: some clients break on nulls."""
    match delta:
        case ArgumentsDelta(index, fragment):
            if style.legacy:
                return {"function_call": {"arguments": fragment}}
            return {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}
        case ContentDelta(text):
            return {"content": text}
        case ReasoningDelta(text):
            if style.reasoning == "both":
                return {"reasoning_content": text, "reasoning": text}
            return {"reasoning": text} if style.reasoning == "reasoning" else {"reasoning_content": text}
        case CallDelta(index, id, name):
            opened: FunctionDelta = {"name": name, "arguments": ""}
            if style.legacy:
                return {"function_call": opened}
            return {"tool_calls": [{"index": index, "id": id, "type": "function", "function": opened}]}


def _message(answer: Answer, style: AnswerStyle) -> AssistantMessage:
    """An answer as the message of a completion."""
    message: AssistantMessage = {"role": "assistant", "content": answer.content or None}
    if reasoning := answer.reasoning:
        if style.reasoning != "reasoning":
            message["reasoning_content"] = reasoning
        if style.reasoning != "reasoning_content":
            message["reasoning"] = reasoning
    calls = [_tool_call(call, arguments) for call, arguments in answer.calls]
    if calls and style.legacy:
        message["function_call"] = calls[0]["function"]
    elif calls:
        message["tool_calls"] = calls
    return message


def _tool_call(call: CallDelta, arguments: str) -> ToolCall:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _step_info(item: TurnStep, model: Model) -> StepInfo:
    return {
        "step": item.number,
        "token": model.token_text(item.step.token),
        "token_id": item.step.token,
        "allowed": item.step.allowed,
        "ms": round(item.step.elapsed * 1000, 3),
    }
