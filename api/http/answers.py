"""The way of every answer: a slot, a prepared turn, a stream or one body, and what is logged of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from fastapi import Request, Response

from larksong.api.errors import QueueFull, ShuttingDown
from larksong.api.http.deadline import Deadline
from larksong.api.http.disconnect import ClientGone, while_connected
from larksong.api.http.served import Served
from larksong.api.http.sse import CHAT, StreamForm, event_data, json_line
from larksong.api.http.stream_response import StreamResponse
from larksong.api.turns.model import Model
from larksong.api.turns.totals import Totals
from larksong.api.turns.turn import Turn

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
    if served.shutdown.begun:
        raise ShuttingDown
    async with served.shutdown.cutting():
        deadline = Deadline(served.settings.max_seconds)
        try:
            entered = await while_connected(request, deadline.result(served.admission.enter()))
        except ClientGone:
            return Response(status_code=499)
        except QueueFull:
            served.metrics.refused.inc()
            raise
        handed_over = False
        turns: list[Turn] = []
        totals: Totals | None = None
        try:
            turns = await while_connected(request, deadline.result(prepare()))
            _look_on(turns, served, model, format)
            made = answering(turns)
            totals = made.totals
            headers = _headers(turns)
            if made.stream is not None:
                handed_over = True
                return StreamResponse(
                    event_data(deadline.items(made.stream), made.form),
                    served.shutdown,
                    made.form,
                    lambda left: _over(request, served, entered, made.totals, turns, left=left),
                    headers=headers,
                    ping=served.settings.ping_seconds,
                    sep="\n",
                    shutdown_event=anyio.Event(),
                    shutdown_grace_period=served.settings.shutdown_seconds + 1,  # for those that nobody reads
                )
            assert made.whole is not None
            body = await while_connected(request, deadline.result(made.whole))
            return Response(json_line(body), media_type="application/json", headers=headers)
        except ClientGone:
            return Response(status_code=499)
        finally:
            if not handed_over:
                _over(request, served, entered, totals, turns)


def _look_on(turns: Sequence[Turn], served: Served, model: Model, format: str) -> None:
    """Let the figures, and whoever else looks on, know of the turns' steps."""
    for turn in turns:
        watch = served.metrics.watch(model.name, format, turn.plan.prompt_tokens)
        if served.observer is not None:
            watch = served.observer.follow(model, format, turn.plan, watch)
        turn.watch = watch
        turn.count_widened = served.metrics.count_widened(model.name)


def _headers(turns: Sequence[Turn]) -> dict[str, str]:
    plan = turns[0].plan
    return {MAX_TOKENS_HEADER: str(plan.max_tokens)} if plan.clamped else {}


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
