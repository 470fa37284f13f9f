"""Deltas → Anthropic's stream of events, or one message made from the same."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from larksong.api.anthropic.errors import anthropic_error
from larksong.api.anthropic.messages import AnthropicMessage, Content, MessageInfo, StopReason, Usage
from larksong.api.http.sse import StreamForm
from larksong.api.openai_chat.choice_info import choice_info
from larksong.api.runtime.ids import new_id
from larksong.api.turns.blocks import Block, BlockClosed, BlockEvent, BlockGrown, BlockOpened, BlockWriter
from larksong.api.turns.model import Model
from larksong.api.turns.totals import Totals
from larksong.api.turns.turn import Turn, TurnEnd

FORM = StreamForm(fault=anthropic_error, named=True)

Event = Mapping[str, object]


@dataclass(frozen=True)
class MessageStyle:
    """How a message is written. `show_thinking`: reasoning is not kept back. `left_out`: tools that the
    server does not have."""

    show_thinking: bool
    left_out: list[str]


async def events(
    turn: Turn, model: Model, style: MessageStyle, totals: Totals
) -> AsyncGenerator[Event, None]:
    """The turn as a stream: the empty message, its blocks one after the other, why it ended."""
    writer = BlockWriter()
    yield {"type": "message_start", "message": _message(model, style, totals)}
    async with aclosing(turn.run()) as items:
        async for item in items:
            for event in writer.feed(item.deltas):
                for made in _block_events(event, style):
                    yield made
            if isinstance(item, TurnEnd):
                for event in writer.end(complete=item.reason != "length"):
                    for made in _block_events(event, style):
                        yield made
                totals.add(item)
                yield _last(item, totals)
    yield {"type": "message_stop"}


async def message(turn: Turn, model: Model, style: MessageStyle, totals: Totals) -> AnthropicMessage:
    """The turn as one message."""
    writer = BlockWriter()
    closed: list[BlockClosed] = []
    answer = _message(model, style, totals)
    async with aclosing(turn.run()) as items:
        async for item in items:
            found = writer.feed(item.deltas)
            if isinstance(item, TurnEnd):
                found += writer.end(complete=item.reason != "length")
                totals.add(item)
                answer["stop_reason"], answer["stop_sequence"] = stop_reason(item), item.stop
                if info := MessageInfo(**answer.get("larksong", {}), **choice_info(item)):
                    answer["larksong"] = info
            closed += [event for event in found if isinstance(event, BlockClosed)]
    answer["content"] = [_whole(event, style) for event in closed]
    answer["usage"] = _usage(totals)
    return answer


def stop_reason(end: TurnEnd) -> StopReason:
    """Anthropic's word for why a turn ended."""
    if end.reason == "length":
        return "max_tokens"
    if end.reason == "tool_calls":
        return "tool_use"
    return "end_turn" if end.stop is None else "stop_sequence"


def _message(model: Model, style: MessageStyle, totals: Totals) -> AnthropicMessage:
    empty: AnthropicMessage = {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model.name,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(totals),
    }
    if style.left_out:
        empty["larksong"] = {"left_out_tools": style.left_out}
    return empty


def _usage(totals: Totals) -> Usage:
    # What is read anew goes into the cache, but Anthropic's counts are of what is billed more for that.
    return {
        "input_tokens": totals.prompt_tokens - totals.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": totals.cached_tokens,
        "output_tokens": totals.completion_tokens,
        "output_tokens_details": {"thinking_tokens": totals.reasoning_tokens},
    }


def _last(end: TurnEnd, totals: Totals) -> Event:
    event: dict[str, object] = {
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(end), "stop_sequence": end.stop},
        "usage": _usage(totals),
    }
    if info := choice_info(end):
        event["larksong"] = info
    return event


def _block_events(event: BlockEvent, style: MessageStyle) -> Iterator[Event]:
    block = event.block
    match event:
        case BlockOpened():
            yield {"type": "content_block_start", "index": block.index, "content_block": _empty(block)}
        case BlockGrown(piece=piece):
            if block.kind == "reasoning" and not style.show_thinking:
                return
            delta = {
                "text": {"type": "text_delta", "text": piece},
                "reasoning": {"type": "thinking_delta", "thinking": piece},
                "call": {"type": "input_json_delta", "partial_json": piece},
            }[block.kind]
            yield {"type": "content_block_delta", "index": block.index, "delta": delta}
        case BlockClosed():
            if block.kind == "reasoning":
                signed = {"type": "signature_delta", "signature": _signature(block)}
                yield {"type": "content_block_delta", "index": block.index, "delta": signed}
            yield {"type": "content_block_stop", "index": block.index}


def _empty(block: Block) -> Content:
    if block.call is not None:
        return {"type": "tool_use", "id": block.call.id, "name": block.call.name, "input": {}}
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": ""}


def _whole(closed: BlockClosed, style: MessageStyle) -> Content:
    block = closed.block
    if block.call is not None:
        arguments: Any = {}
        if block.text:
            # Only complete members: the beginning of a command is another command.
            arguments = from_json(block.text, allow_partial="on" if not closed.complete else "off")
        return {"type": "tool_use", "id": block.call.id, "name": block.call.name, "input": arguments}
    if block.kind == "reasoning":
        thinking = block.text if style.show_thinking else ""
        return {"type": "thinking", "thinking": thinking, "signature": _signature(block)}
    return {"type": "text", "text": block.text}


def _signature(block: Block) -> str:
    """Clients give back reasoning only if it is signed; nothing is checked by it."""
    return base64.b64encode(hashlib.sha256(block.text.encode()).digest()).decode()
