"""Larksong in anybody's exllamav3 program: a filter for a job, and its answer as OpenAI's deltas.

    filter = LarksongFilter(tokenizer, tools, format="qwen3_coder")
    stream = DeltaStream(filter)
    job = Job(input_ids=…, filters=[filter], stop_conditions=filter.stop_conditions)
    …
    for result in generator.iterate():
        for delta in stream.feed(result): …

A filter belongs to one running job; the work that all filters of a tokenizer share is done once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from exllamav3 import Filter, Tokenizer

from larksong.api.openai_chat.requests import tool
from larksong.api.openai_chat.responses import choice_delta
from larksong.api.openai_chat.schemas import ChoiceDelta, ToolSpec
from larksong.api.turns.deltas import CallDelta, Delta
from larksong.api.turns.emitter import DeltaEmitter
from larksong.engine.backends.exllamav3.filter import MatcherFilter
from larksong.engine.backends.exllamav3.vocabulary import encoder_of, vocabulary_of
from larksong.engine.engine import Engine
from larksong.engine.events import Events
from larksong.grammars import CallPolicy, Tool, WireFormat, wire_format

_ENGINES: WeakKeyDictionary[Tokenizer, Engine] = WeakKeyDictionary()


def engine_of(tokenizer: Tokenizer) -> Engine:
    """The engine that all filters of an exllamav3 tokenizer share; takes about a second the first time."""
    engine = _ENGINES.get(tokenizer)
    if engine is None:
        vocabulary = vocabulary_of(tokenizer)
        engine = _ENGINES[tokenizer] = Engine(vocabulary, encode=encoder_of(tokenizer, vocabulary))
    return engine


class LarksongFilter(MatcherFilter):
    """Lets a job write text and valid calls of `tools`, in the wire format `format`.

    `tools`: as in a request to OpenAI, or `Tool`s. `required`: there must be a call. `max_calls`: at most so
    many. `only`: calls of this tool alone. `prompt`: its text, where the chat template may end inside of
    reasoning. `also`: other filters, `FormatronFilter` and `LLGuidanceFilter` among them: a token must be
    allowed by all. Give those here and not to the job; if nothing is allowed by all, only this job ends.
    `trigger_token`: constrain only what comes after this token.

    Raises GrammarsError for tools that cannot be enforced, UnknownFormat.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        tools: Sequence[Tool | Mapping[str, Any]],
        *,
        format: str | WireFormat = "qwen3_coder",
        required: bool = False,
        max_calls: int | None = None,
        only: str | None = None,
        prompt: str = "",
        also: Sequence[Filter] = (),
        trigger_token: int | None = None,
    ) -> None:
        engine = engine_of(tokenizer)
        wire = wire_format(format) if isinstance(format, str) else format
        must = required or only is not None
        policy = CallPolicy(required=must, min_calls=int(must), max_calls=max_calls, only=only)
        grammar = wire.grammar(
            [each if isinstance(each, Tool) else tool(ToolSpec.model_validate(each)) for each in tools],
            policy,
            engine.vocabulary,
            in_reasoning=wire.ends_in_reasoning(prompt),
        )
        ends = engine.vocabulary.eos_ids
        super().__init__(
            tokenizer, engine.matcher(grammar), ends=ends, also=also, trigger_token=trigger_token
        )
        self.stop_conditions = sorted(ends)
        """What the job must have among its stop conditions: every end-of-sequence token."""


class DeltaStream:
    """What a job under a `LarksongFilter` writes, as deltas of OpenAI's streaming shape.

    Read from the filter, token by token, and not from the generator's text. Tokens that exllamav3 may still
    take back (banned strings) wait until it gives them out.
    """

    def __init__(self, filter: MatcherFilter, *, emitter: DeltaEmitter | None = None) -> None:
        self._filter = filter
        self._emitter = emitter or DeltaEmitter()
        self._read = 0
        self._called = False
        self.finish_reason: str | None = None
        """At the end: stop, length, tool_calls, or error."""
        self.error: str | None = None
        """Why the job failed, if it did."""

    def feed(self, result: Mapping[str, Any]) -> list[ChoiceDelta]:
        """The deltas of one of the job's results; those of other jobs have none."""
        return [choice_delta(delta) for delta in self.deltas(result)]

    def deltas(self, result: Mapping[str, Any]) -> list[Delta]:
        """Like `feed`, as Larksong's own deltas."""
        if "job" in result and not any(each is self._filter for each in result["job"].filters):
            return []
        accepted = self._filter.accepted
        until = len(accepted)
        job = self._filter.job
        if getattr(job, "banned_strings", None) and not result.get("eos"):
            until = max(until - len(job.held_tokens), 0)
        events = [event for token in accepted[self._read : until] for event in token.events]
        self._read = max(self._read, until)
        deltas = self._emit(events)
        if result.get("eos"):
            deltas += self._emit(self._filter.finish())
            self._end(result)
        return deltas

    def _emit(self, events: Iterable[Any] | Events) -> list[Delta]:
        deltas = self._emitter.feed(events)
        self._called = self._called or any(isinstance(delta, CallDelta) for delta in deltas)
        return deltas

    def _end(self, result: Mapping[str, Any]) -> None:
        self.error = self._filter.fault
        if result.get("stage") == "error":
            self.error = str(result.get("error"))
        if self.error is not None:
            self.finish_reason = "error"
        elif not self._filter.finished:
            # A stop string, or an end before the trigger, is not the grammar's end and no limit either.
            stopped = result.get("eos_reason") in ("stop_string", "stop_token")
            self.finish_reason = "stop" if stopped else "length"
        else:
            self.finish_reason = "tool_calls" if self._called else "stop"
