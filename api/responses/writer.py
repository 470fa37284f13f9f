"""Deltas → the events of a response, or one response made from the same."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from larksong.api.errors import ApiError
from larksong.api.http.sse import StreamForm
from larksong.api.openai_chat.choice_info import choice_info
from larksong.api.responses.items import Event, ItemWriter
from larksong.api.responses.objects import ResponseInfo, ResponseObject, ResponseUsage
from larksong.api.responses.requests import ResponseTranslation
from larksong.api.responses.schemas import ResponsesRequest
from larksong.api.runtime.ids import new_id
from larksong.api.turns.blocks import BlockEvent, BlockWriter
from larksong.api.turns.model import Model
from larksong.api.turns.totals import Totals
from larksong.api.turns.turn import Turn, TurnEnd


class ResponseWriter:
    """Writes one response while its turn runs."""

    def __init__(
        self, request: ResponsesRequest, translation: ResponseTranslation, model: Model, totals: Totals
    ) -> None:
        self._totals = totals
        self._items = ItemWriter(
            translation.namespaces, encrypted="reasoning.encrypted_content" in (request.include or ())
        )
        self._blocks = BlockWriter()
        self._numbers = itertools.count()
        self._response = _empty(request, translation, model)

    @property
    def form(self) -> StreamForm:
        """How the stream is written."""
        return StreamForm(fault=self._failed, named=True)

    async def events(self, turn: Turn) -> AsyncGenerator[Event, None]:
        """The turn as a stream: the empty response, its items one after the other, the whole response."""
        for name in ("response.created", "response.in_progress"):
            yield self._numbered({"type": name, "response": dict(self._response)})
        async with aclosing(turn.run()) as items:
            async for item in items:
                for event in self._written(self._blocks.feed(item.deltas)):
                    yield event
                if isinstance(item, TurnEnd):
                    for event in self._written(self._blocks.end(complete=item.reason != "length")):
                        yield event
                    self._end(item)
        name = f"response.{self._response['status']}"
        yield self._numbered({"type": name, "response": self._response})

    async def whole(self, turn: Turn) -> ResponseObject:
        """The turn as one response."""
        async with aclosing(self.events(turn)) as events:
            async for _ in events:
                pass
        return self._response

    def _written(self, events: list[BlockEvent]) -> Iterator[Event]:
        for event in events:
            for made in self._items.write(event):
                yield self._numbered(made)

    def _numbered(self, event: Event) -> Event:
        return {**event, "sequence_number": next(self._numbers)}

    def _end(self, end: TurnEnd) -> None:
        response = self._response
        self._totals.add(end)
        response["usage"] = _usage(self._totals)
        response["output"] = self._items.output
        response["status"] = "completed"
        if end.reason == "length":
            response["status"] = "incomplete"
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        if info := ResponseInfo(**response.get("larksong", {}), **choice_info(end)):
            response["larksong"] = info

    def _failed(self, error: ApiError) -> Event:
        fault = {"code": "server_error", "message": error.message}
        response: dict[str, Any] = {**self._response, "status": "failed", "error": fault}
        return self._numbered({"type": "response.failed", "response": response})


def _empty(request: ResponsesRequest, translation: ResponseTranslation, model: Model) -> ResponseObject:
    def given(value: float | None) -> float:
        return 1.0 if value is None else value

    response: ResponseObject = {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "model": model.name,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {
            "effort": request.reasoning.effort if request.reasoning is not None else None,
            "summary": None,
        },
        "store": False,
        "temperature": given(request.temperature),
        "text": {"format": _dumped(request.text.format) if request.text and request.text.format else _TEXT},
        "tool_choice": _dumped(request.tool_choice or "auto"),
        "tools": [_dumped(tool) for tool in request.tools or ()],
        "top_p": given(request.top_p),
        "truncation": "disabled",
        "metadata": request.metadata or {},
        "usage": None,
    }
    info: ResponseInfo = {}
    if request.store:
        info["stored"] = False
    if translation.left_out:
        info["left_out_tools"] = list(translation.left_out)
    if info:
        response["larksong"] = info
    return response


_TEXT = {"type": "text"}


def _dumped(part: Any) -> Any:
    return part if isinstance(part, str) else part.model_dump(by_alias=True)


def _usage(totals: Totals) -> ResponseUsage:
    return {
        "input_tokens": totals.prompt_tokens,
        "input_tokens_details": {"cached_tokens": totals.cached_tokens},
        "output_tokens": totals.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": totals.reasoning_tokens},
        "total_tokens": totals.prompt_tokens + totals.completion_tokens,
    }
