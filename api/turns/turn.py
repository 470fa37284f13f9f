"""One turn while it runs: a backend's tokens → steps with deltas, and why it ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, NamedTuple

from larksong.api.errors import ServerFault
from larksong.api.turns.compat_turn import CompatTurn
from larksong.api.turns.deltas import CallDelta, Delta
from larksong.api.turns.emitter import DeltaEmitter
from larksong.api.turns.stop_texts import StopTexts
from larksong.api.turns.turn_recorder import TurnRecorder
from larksong.api.turns.widening import WidenedKeyword, WidenedSchema, WidenedValues
from larksong.engine.backends.base import Finish, Step
from larksong.engine.events import ParseEvent, Reasoning
from larksong.engine.matcher import Matcher
from larksong.grammars import Tool

EndReason = Literal["stop", "length", "tool_calls"]

Cut = Literal["left", "stop"]
"""Why a turn did not come to the backend's end: nobody reads on, or a stop text came."""

Watch = Callable[[Step | Finish | Cut], None]


@dataclass(frozen=True)
class TurnPlan:
    """What is known of a turn before it runs.

    `prompt_tokens`: how many the model reads before it writes. `max_tokens`: how many it may write;
    `clamped`: the request asked for more than the context has room for.
    """

    prompt_tokens: int
    max_tokens: int
    clamped: bool
    stops: tuple[str, ...]
    widened: Sequence[WidenedSchema]
    tools: Sequence[Tool] = ()
    start: Matcher | None = None
    """a cursor at the turn's beginning, for those who read along; to be forked"""
    in_reasoning: bool = False
    """whether the prompt ends inside reasoning"""


class TurnStep(NamedTuple):
    """One decoding step, counted from 0, and what the answer grew by in it, often nothing."""

    number: int
    step: Step
    deltas: Sequence[Delta]
    first_call: int
    """how many calls had begun before it"""


@dataclass(frozen=True)
class TurnEnd:
    """The end of the answer: the last deltas, why it ended, how many tokens were written.

    `length` wins over `tool_calls`: the last call may be incomplete. `finished_calls`: the calls that were
    led to their end instead; None where that was not asked for or not needed. `widened`: the keywords that
    the grammar did not enforce, of schemas that the answer has a complete value of. `compat`: what compat
    mode has to say.
    """

    deltas: Sequence[Delta]
    reason: EndReason
    completion_tokens: int
    finished_calls: Sequence[int] | None = None
    widened: Sequence[WidenedKeyword] = ()
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    events: Sequence[ParseEvent] = ()
    """what the end of the text revealed"""
    compat: Sequence[str] = ()
    stop: str | None = None
    """which of the request's stop texts ended the answer"""


class Turn:
    """One turn, run once."""

    def __init__(
        self,
        plan: TurnPlan,
        items: AsyncGenerator[Step | Finish, None],
        recorder: TurnRecorder | None = None,
        compat: CompatTurn | None = None,
    ) -> None:
        self.plan = plan
        self._items = items
        self._recorder = recorder
        self._compat = compat
        self._emitter = DeltaEmitter()
        self._stops = StopTexts(plan.stops) if plan.stops else None
        self._values = WidenedValues(plan.widened)
        self._calls = 0
        self._thought = 0
        self.written = 0
        """tokens of the answer so far"""
        self.watch: Watch | None = None
        """called with everything that the backend gives, and where that is cut off, for metrics"""
        self.count_widened: Callable[[Sequence[WidenedKeyword]], None] | None = None
        """called with the keywords that were not enforced, for metrics"""

    async def run(self) -> AsyncGenerator[TurnStep | TurnEnd, None]:
        """The steps and, last, the end. Closing the iterator stops the generation. Raises ServerFault."""
        cut: Cut | None = "left"
        try:
            async with aclosing(self._items) as items:
                async for item in items:
                    if self.watch is not None:
                        self.watch(item)
                    before = self._calls
                    deltas = self._grown(item)
                    if isinstance(item, Step):
                        yield TurnStep(self.written, item, deltas, before)
                        self.written += 1
                        if self._stops is None or not self._stops.found:
                            continue
                        cut = "stop"
                        yield await self._stopped(item)
                        return
                    cut = None
                    yield await self._ended(item, deltas)
        finally:
            if cut is not None and self.watch is not None:
                self.watch(cut)

    def _grown(self, item: Step | Finish) -> Sequence[Delta]:
        """What the answer grows by, up to a stop text."""
        deltas: Sequence[Delta]
        deltas = self._emitter.feed(item.events) if self._compat is None else self._compat.feed(item)
        if self._stops is not None:
            deltas = self._stops.feed(deltas)
        self._values.add(deltas)
        for delta in deltas:
            self._calls += isinstance(delta, CallDelta)
        thinks = bool(item.events) and isinstance(item.events[-1], Reasoning)
        if self._recorder is not None:
            self._recorder.add(item, deltas, thinks=thinks)
        if isinstance(item, Step):
            self._thought += thinks
        return deltas

    async def _stopped(self, last: Step) -> TurnEnd:
        """The end at a stop text."""
        assert self._stops is not None
        return TurnEnd(
            (),
            "tool_calls" if self._calls else "stop",
            self.written,
            widened=await self._check_widened(),
            cached_tokens=last.cached_tokens,
            reasoning_tokens=self._thought,
            stop=self._stops.found,
        )

    async def _ended(self, finish: Finish, deltas: Sequence[Delta]) -> TurnEnd:
        """The end that the backend tells of. Raises ServerFault."""
        if finish.reason == "error":
            raise ServerFault(f"The generation failed: {finish.error}")
        if self._stops is not None and not self._stops.found:
            deltas = [*deltas, *self._stops.rest()]
        reason: EndReason = "tool_calls" if self._calls else "stop"
        if finish.reason == "length":
            reason = "length"
        if self._recorder is not None and finish.reason == "stop":
            self._recorder.keep()
        return TurnEnd(
            deltas,
            reason,
            self.written,
            finished_calls=finish.finished_calls if reason == "length" else None,
            widened=await self._check_widened(),
            cached_tokens=finish.cached_tokens,
            reasoning_tokens=self._thought,
            events=finish.events,
            compat=self._compat.warnings if self._compat is not None else (),
            stop=self._stops.found if self._stops is not None else None,
        )

    async def _check_widened(self) -> Sequence[WidenedKeyword]:
        found = await self._values.check()
        if self.count_widened is not None:
            self.count_widened(found)
        return found
