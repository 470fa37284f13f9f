"""Blocks → items of a response, and the events that tell how they grow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from larksong.api.responses.hidden import hidden
from larksong.api.responses.objects import CallOutput, Output, ReasoningOutput, Status
from larksong.api.runtime.ids import new_id
from larksong.api.turns.blocks import Block, BlockClosed, BlockEvent, BlockGrown, BlockOpened

Event = dict[str, object]
_PREFIXES = {"reasoning": "rs_", "text": "msg_", "call": "fc_"}
_NAMES = {
    "reasoning": "response.reasoning_text",
    "text": "response.output_text",
    "call": "response.function_call_arguments",
}


@dataclass
class ItemWriter:
    """Writes the items of one response.

    `namespaces`: of functions that have one. `encrypted`: the client wants reasoning as `encrypted_content`.
    """

    namespaces: Mapping[str, str]
    encrypted: bool
    _ids: dict[int, str] = field(default_factory=dict)
    output: list[Output] = field(default_factory=list)
    """the items that are over"""

    def write(self, event: BlockEvent) -> Iterator[Event]:
        """The events of a block's; they have no sequence numbers yet."""
        block = event.block
        name = _NAMES[block.kind]
        match event:
            case BlockOpened():
                self._ids[block.index] = new_id(_PREFIXES[block.kind])
                item = self._item(block, "in_progress", "")
                yield {"type": "response.output_item.added", "output_index": block.index, "item": item}
                if block.kind != "call":
                    yield self._part("added", block, "")
            case BlockGrown(piece=piece):
                yield {**self._where(name + ".delta", block), "delta": piece, **_no_logprobs(block)}
            case BlockClosed(complete=complete):
                text = block.text
                if block.call is not None:
                    done = {"name": block.call.name, "arguments": text}
                else:
                    done = {"text": text}
                yield {**self._where(name + ".done", block), **done, **_no_logprobs(block)}
                if block.kind != "call":
                    yield self._part("done", block, text)
                item = self._item(block, "completed" if complete else "incomplete", text)
                self.output.append(item)
                yield {"type": "response.output_item.done", "output_index": block.index, "item": item}

    def _where(self, type: str, block: Block) -> Event:
        event: Event = {"type": type, "item_id": self._ids[block.index], "output_index": block.index}
        return event if block.kind == "call" else {**event, "content_index": 0}

    def _part(self, what: str, block: Block, text: str) -> Event:
        return {**self._where(f"response.content_part.{what}", block), "part": _part(block, text)}

    def _item(self, block: Block, status: Status, text: str) -> Output:
        id = self._ids[block.index]
        if block.call is not None:
            call: CallOutput = {
                "id": id,
                "type": "function_call",
                "call_id": block.call.id,
                "name": block.call.name,
                "arguments": text,
                "status": status,
            }
            if block.call.name in self.namespaces:
                call["namespace"] = self.namespaces[block.call.name]
            return call
        parts = [_part(block, text)] if text else []
        if block.kind == "reasoning":
            thought: ReasoningOutput = {
                "id": id,
                "type": "reasoning",
                "status": status,
                "summary": [],
                "content": parts,
            }
            if self.encrypted and text:
                thought["encrypted_content"] = hidden(text)
            return thought
        return {"id": id, "type": "message", "role": "assistant", "status": status, "content": parts}


def _part(block: Block, text: str) -> Any:
    if block.kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _no_logprobs(block: Block) -> dict[str, object]:
    return {"logprobs": []} if block.kind == "text" else {}
