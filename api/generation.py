"""One turn of a model, whatever API asked for it: request → prompt and grammar → steps with deltas."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from larksong.api.compat_turn import CompatTurn
from larksong.api.deltas import CallDelta, Delta
from larksong.api.emitter import DeltaEmitter
from larksong.api.errors import ServerFault
from larksong.api.prompt import ChatMessage, ChatTemplate
from larksong.api.schema_policy import DEFAULT_POLICY, SchemaPolicy
from larksong.api.widening import WidenedKeyword, WidenedSchema, WidenedValues
from larksong.engine.backends.base import Backend, Finish, Generation, Sampling, Step
from larksong.engine.backends.replay import text_ids
from larksong.engine.engine import Engine
from larksong.engine.grammar import Grammar
from larksong.grammars import CallPolicy, Options, Tool, WireFormat
from larksong.grammars.response_format import calls_or_answer, response_grammar, response_widened
from larksong.grammars.warm_up import warm_up


@dataclass(frozen=True)
class AnswerSchema:
    """The answer is one JSON text of `schema`."""

    schema: Mapping[str, Any] | bool
    options: Options


@dataclass(frozen=True)
class TurnRequest:
    """What is asked of one turn. `calls` is None where the answer has none.

    `answer`: the schema of an answer that is no call; None where that is free text.
    """

    messages: Sequence[ChatMessage]
    tools: Sequence[Tool]
    calls: CallPolicy | None
    wire_format: WireFormat
    sampling: Sampling
    max_tokens: int | None
    answer: AnswerSchema | None = None
    finish_within_budget: bool | None = None
    """Whether calls are led to a valid end before `max_tokens`; None leaves it to the model's setting."""
    compat: bool = False
    """Whether the answer's bytes are those of tabbyAPI's end parse (see `larksong.api.compat`)."""


@dataclass(frozen=True)
class TurnStep:
    """One decoding step, counted from 0, and what the answer grew by in it, often nothing."""

    number: int
    step: Step
    deltas: Sequence[Delta]


@dataclass(frozen=True)
class TurnEnd:
    """The end of the answer: the last deltas, why it ended, how many tokens were written.

    `length` wins over `tool_calls`: the last call may be incomplete. `finished_calls`: the calls that were
    led to their end instead; None where that was not asked for or not needed. `widened`: the keywords that
    the grammar did not enforce, of schemas that the answer has a complete value of. `compat`: what compat
    mode has to say.
    """

    deltas: Sequence[Delta]
    reason: Literal["stop", "length", "tool_calls"]
    completion_tokens: int
    finished_calls: Sequence[int] | None = None
    widened: Sequence[WidenedKeyword] = ()
    compat: Sequence[str] = ()


class Model:
    """A backend under the name that requests use, with its engine, chat template and wire format.

    `finish_within_budget` and `compat`: what holds for requests that do not say it. `forced_tokens`: see
    Generation. `schemas`: what happens to keywords that nothing can enforce.
    """

    def __init__(
        self,
        backend: Backend,
        wire_format: WireFormat,
        *,
        name: str | None = None,
        finish_within_budget: bool = False,
        forced_tokens: bool = True,
        schemas: SchemaPolicy = DEFAULT_POLICY,
        compat: bool = False,
    ) -> None:
        self.name = name or backend.name
        self.backend = backend
        self.wire_format = wire_format
        self.schemas = schemas
        self.compat = compat
        self._finish_within_budget = finish_within_budget
        self._forced_tokens = forced_tokens
        encode = partial(text_ids, backend.tokenizer, backend.vocabulary)
        self._engine = Engine(backend.vocabulary, encode=encode)
        self._template = ChatTemplate(
            backend.chat_template, bos_token=backend.bos_token, eos_token=backend.eos_token
        )
        self._special_texts = {id: text for text, id in backend.vocabulary.special.items()}

    def warm_up(self) -> None:
        """Do now what no request should wait for; from then on the garbage collector passes over it."""
        warm_up(self._engine)
        gc.collect()
        gc.freeze()

    async def prepare(self, request: TurnRequest) -> Turn:
        """A turn that is ready to run.

        Raises GrammarsError for tools that cannot be enforced, TemplateRefusal for messages that the chat
        template refuses, PromptError for a prompt that the model cannot take, BudgetTooSmall for an answer
        that cannot be finished within its tokens.
        """
        # Rendering, encoding and a grammar's build take milliseconds: other streams go on meanwhile.
        text = await asyncio.to_thread(self._rendered, request)
        generation = await asyncio.to_thread(self._generation, request, text)
        widened = await asyncio.to_thread(_widened, request)
        compat = self._compat(request, text)
        return Turn(len(generation.prompt), self.backend.generate(generation), widened, compat)

    def token_text(self, token: int) -> str:
        """How a token reads, for people."""
        special = self._special_texts.get(token)
        return special or self.backend.vocabulary.tokens[token].decode(errors="backslashreplace")

    def _rendered(self, request: TurnRequest) -> str:
        tools = request.tools if request.calls else ()
        return self._template.render(request.messages, tools, request.wire_format)

    def _compat(self, request: TurnRequest, prompt: str) -> CompatTurn | None:
        if not request.compat or request.answer is not None:
            return None
        return CompatTurn(
            request.wire_format.name,
            self.backend.vocabulary,
            in_reasoning=request.wire_format.ends_in_reasoning(prompt),
            calls=request.calls is not None or not request.tools,
            masked=request.calls is not None,
        )

    def _generation(self, request: TurnRequest, text: str) -> Generation:
        matcher = None
        tools = request.tools if request.calls else ()
        grammar: Grammar | None = None
        if request.calls:
            wire = request.wire_format
            in_reasoning = wire.ends_in_reasoning(text)
            grammar = wire.grammar(tools, request.calls, self.backend.vocabulary, in_reasoning=in_reasoning)
            if request.answer:
                grammar = calls_or_answer(grammar, request.answer.schema, request.answer.options)
        elif request.answer:
            answer = request.answer
            grammar = response_grammar(answer.schema, self.backend.vocabulary, answer.options)
        if grammar is not None:
            matcher = self._engine.matcher(grammar)
        prompt = self._encode(text)
        limit = request.max_tokens or self.backend.context_length
        finish = request.finish_within_budget
        if finish is None:
            finish = self._finish_within_budget
        if finish and matcher is not None:
            needed = matcher.needed()  # found here, off the event loop, and kept for the backend's check
            room = min(limit, self.backend.context_length - len(prompt))
            if needed > room and request.calls and not request.calls.required:
                finish = False  # an answer of the model's own choice is cut short, never refused
        return Generation(
            prompt,
            matcher,
            request.sampling,
            limit,
            forced_tokens=self._forced_tokens,
            finish_within_budget=finish,
        )

    def _encode(self, text: str) -> tuple[int, ...]:
        # JSON may carry lone surrogates (text cut in the middle of an emoji); no tokenizer takes them.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return tuple(self.backend.tokenizer.encode(text, add_special_tokens=False).ids)


def _widened(request: TurnRequest) -> list[WidenedSchema]:
    """The schemas of a turn that its grammar does not wholly enforce."""
    schemas: list[WidenedSchema] = []
    if request.calls:
        schemas = [
            WidenedSchema(tool.name, tool.parameters, request.wire_format.widened(tool), tool.options.formats)
            for tool in request.tools
            if request.calls.only in (None, tool.name)
        ]
    if request.answer:
        schema, options = request.answer.schema, request.answer.options
        schemas.append(WidenedSchema(None, schema, response_widened(schema, options), options.formats))
    return [schema for schema in schemas if schema.widened]


class Turn:
    """One turn, run once. `prompt_tokens`: how many the model reads before it writes."""

    def __init__(
        self,
        prompt_tokens: int,
        items: AsyncGenerator[Step | Finish, None],
        widened: Sequence[WidenedSchema] = (),
        compat: CompatTurn | None = None,
    ) -> None:
        self.prompt_tokens = prompt_tokens
        self._items = items
        self._compat = compat
        self._values = WidenedValues(widened)

    async def run(self) -> AsyncGenerator[TurnStep | TurnEnd, None]:
        """The steps and, last, the end. Closing the iterator stops the generation. Raises ServerFault."""
        emitter = DeltaEmitter()
        written = 0
        called = False
        async with aclosing(self._items) as items:
            async for item in items:
                deltas = emitter.feed(item.events) if self._compat is None else self._read(item)
                self._values.add(deltas)
                called = called or any(isinstance(delta, CallDelta) for delta in deltas)
                if isinstance(item, Step):
                    yield TurnStep(written, item, deltas)
                    written += 1
                elif item.reason == "error":
                    raise ServerFault(f"The generation failed: {item.error}")
                elif item.reason == "length":
                    widened = await self._values.check()
                    yield TurnEnd(deltas, "length", written, item.finished_calls, widened, self._said())
                else:
                    widened = await self._values.check()
                    reason: Literal["stop", "tool_calls"] = "tool_calls" if called else "stop"
                    yield TurnEnd(deltas, reason, written, widened=widened, compat=self._said())

    def _read(self, item: Step | Finish) -> Sequence[Delta]:
        assert self._compat is not None
        return self._compat.step(item) if isinstance(item, Step) else self._compat.finish()

    def _said(self) -> Sequence[str]:
        return self._compat.warnings if self._compat is not None else ()
