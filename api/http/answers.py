"""The way of every answer: a slot, a prepared turn, a stream or one body, and what is logged of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from fastapi import Request, Response
from sse_starlette import EventSourceResponse
from starlette.types import Message, Receive, Scope, Send

from larksong.api.errors import OutOfTime, QueueFull, ShuttingDown
from larksong.api.http.disconnect import ClientGone, while_connected
from larksong.api.http.served import Served
from larksong.api.http.sse import CHAT, StreamForm, event_data, fault_events, json_line
from larksong.api.openai_chat.responses import Totals
from larksong.api.runtime.shutdown import Ending
from larksong.api.turns.model import Model
from larksong.api.turns.turn import Turn

T = TypeVar("T")

MAX_TOKENS_HEADER = "X-Larksong-Max-Tokens"


@dataclass(frozen=True)
class Answering:
    """An answer that is ready to be made: `stream` chunk by chunk, written as `form` says, or `whole`."""

    totals: Totals
    stream: AsyncGenerator[Mapping[str, object] | bytes, None] | None = None
    whole: Coroutine[Any, Any, Mapping[str, object]] | None = None
    form: StreamForm = CHAT


async def answer(
    request: Request,
    served: Served,
    model: Model,
    prepare: Callable[[], Coroutine[Any, Any, list[Turn]]],
    answering: Callable[[list[Turn]], Answering],
    *,
    format: str,
) -> Response:
    """The response. Raises ApiError for what goes wrong before the first byte."""
    if served.ending.begun:
        raise ShuttingDown
    async with served.ending.cutting():
        limit = served.settings.max_seconds
        deadline = None if limit is None else asyncio.get_running_loop().time() + limit
        try:
            entered = await while_connected(request, _by(deadline, limit, served.admission.enter()))
        except ClientGone:
            return Response(status_code=499)
        except QueueFull:
            served.metrics.refused.inc()
            raise
        handed_over = False
        turns: list[Turn] = []
        totals: Totals | None = None
        try:
            turns = await while_connected(request, _by(deadline, limit, prepare()))
            for turn in turns:
                watch = served.metrics.watch(model.name, format, turn.plan.prompt_tokens)
                turn.watch = (
                    watch if served.live is None else served.live.follow(model, format, turn.plan, watch)
                )
                turn.count_widened = served.metrics.count_widened(model.name)
            made = answering(turns)
            totals = made.totals
            headers = {}
            if turns[0].plan.clamped:
                headers[MAX_TOKENS_HEADER] = str(turns[0].plan.max_tokens)
            if made.stream is not None:
                stream = made.stream if deadline is None else _each_by(deadline, limit, made.stream)
                handed_over = True
                return _Stream(
                    event_data(stream, made.form),
                    served.ending,
                    made.form,
                    lambda left: _over(request, served, entered, made.totals, turns, left=left),
                    headers=headers,
                    ping=served.settings.ping_seconds,
                    sep="\n",
                    shutdown_event=anyio.Event(),
                    shutdown_grace_period=served.settings.shutdown_seconds + 1,  # for those that nobody reads
                )
            assert made.whole is not None
            body = await while_connected(request, _by(deadline, limit, made.whole))
            return Response(
                json_line(body),
                media_type="application/json",
                headers=headers,
            )
        except ClientGone:
            return Response(status_code=499)
        finally:
            if not handed_over:
                _over(request, served, entered, totals, turns)


class _Stream(EventSourceResponse):
    """Gives back what the answer holds however the response ends, also when it never begins.

    `over` is called then, with whether the client has left.
    """

    def __init__(
        self,
        content: AsyncGenerator[bytes, None],
        ending: Ending,
        form: StreamForm,
        over: Callable[[bool], None],
        **options: Any,
    ) -> None:
        super().__init__(content, client_close_handler_callable=self._note_leaving, **options)
        self._content = content
        self._ending = ending
        self._form = form
        self._over = over
        self._sent = self._left = False

    async def _note_leaving(self, message: Message) -> None:
        self._left = not self._sent

    async def _stream_response(self, send: Send) -> None:
        # sse-starlette's own looks at the type of each event and puts a timeout around its sending.
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async with self._ending.cutting():
                async for event in self._content:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        except ShuttingDown as error:
            last = fault_events(error, self._form)
            await send({"type": "http.response.body", "body": last, "more_body": True})
        async with self._send_lock:  # no ping comes after the end
            self.active = False
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        self._sent = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            try:
                with anyio.CancelScope(shield=True):
                    await self._content.aclose()
            finally:
                self._over(self._left)


def _over(
    request: Request,
    served: Served,
    entered: float,
    totals: Totals | None,
    turns: Sequence[Turn],
    *,
    left: bool = False,
) -> None:
    served.admission.leave(entered)
    if totals is not None:
        request.state.log = {
            "prompt_tokens": totals.prompt_tokens,
            "completion_tokens": sum(turn.written for turn in turns),
            "cached_tokens": totals.cached_tokens,
            "finish": totals.reasons,
        }
        if left:  # the response had begun with 200
            request.state.log["status"] = 499


async def _by(deadline: float | None, limit: float | None, work: Awaitable[T]) -> T:
    """The result of `work`. Raises OutOfTime."""
    if deadline is None or limit is None:
        return await work
    try:
        async with asyncio.timeout_at(deadline):
            return await work
    except TimeoutError:
        raise OutOfTime(limit) from None


async def _each_by(
    deadline: float, limit: float | None, items: AsyncGenerator[T, None]
) -> AsyncGenerator[T, None]:
    """The items that come in time. Raises OutOfTime."""
    async with aclosing(items):
        while True:
            try:
                # Around each item alone: a timeout must not reach into whoever reads them.
                item = await _by(deadline, limit, anext(items))
            except StopAsyncIteration:
                return
            yield item
