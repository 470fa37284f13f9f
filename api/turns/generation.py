"""One turn of a model, whatever API asked for it: request → prompt and grammar → steps with deltas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

from larksong.api.errors import ServerFault
from larksong.api.http.metrics import Cut, Watch
from larksong.api.runtime.gc_tuning import settle_down
from larksong.api.runtime.workers import in_worker
from larksong.api.turns.call_memory import CallMemory
from larksong.api.turns.compat_turn import CompatTurn
from larksong.api.turns.deltas import CallDelta, Delta
from larksong.api.turns.emitter import DeltaEmitter
from larksong.api.turns.prompt import ChatMessage, ChatTemplate
from larksong.api.turns.prompt_writer import Prompt, PromptWriter
from larksong.api.turns.schema_policy import DEFAULT_POLICY, SchemaPolicy
from larksong.api.turns.stop_texts import StopText
from larksong.api.turns.turn_recorder import TurnRecorder
from larksong.api.turns.widening import WidenedKeyword, WidenedSchema, WidenedValues
from larksong.engine.backends.base import (
    Backend,
    Finish,
    Generation,
    ReasoningBudget,
    Sampling,
    Step,
)
from larksong.engine.backends.replay import text_ids
from larksong.engine.engine import Engine
from larksong.engine.events import ParseEvent, Reasoning
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Options, Tool, WireFormat
from larksong.grammars.answers.constraints import choice_grammar, lark_grammar, regex_grammar
from larksong.grammars.answers.response_format import calls_or_answer, response_grammar, response_widened
from larksong.grammars.errors import InvalidConstraint
from larksong.grammars.warming import warm_up


@dataclass(frozen=True)
class AnswerSchema:
    """The answer is one JSON text of `schema`. `field`: where the request says so."""

    schema: Mapping[str, Any] | bool
    options: Options
    field: str = "response_format"

    def grammar(self, vocabulary: Vocabulary) -> Grammar:
        """The grammar of a turn that is this answer."""
        return response_grammar(self.schema, vocabulary, self.options)


@dataclass(frozen=True)
class AnswerText:
    """The answer follows a regular expression, is one of some texts, or follows a Lark grammar."""

    kind: Literal["regex", "choice", "grammar"]
    value: str | tuple[str, ...]
    field: str

    def grammar(self, vocabulary: Vocabulary) -> Grammar:
        """The grammar of a turn that is this answer. Raises InvalidConstraint."""
        if isinstance(self.value, tuple):
            return choice_grammar(self.value, vocabulary)
        if self.kind == "regex":
            return regex_grammar(self.value, vocabulary)
        return lark_grammar(self.value, vocabulary)


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
    answer: AnswerSchema | AnswerText | None = None
    finish_within_budget: bool | None = None
    """Whether calls are led to a valid end before `max_tokens`; None leaves it to the model's setting."""
    allowed: frozenset[str] | None = None
    """The tools that may be called; None allows all."""
    stops: tuple[str, ...] = ()
    """Texts that end the answer where they stand in its visible text; they are left out."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """What the chat template gets beside messages and tools."""
    reasoning_budget: int | None = None
    """Most tokens of reasoning."""
    compat: bool = False
    """Whether the answer's bytes are those of tabbyAPI's end parse (see `larksong.api.turns.compat`)."""


def with_seeds(request: TurnRequest, choices: int) -> list[TurnRequest]:
    """The request once for each choice: a given seed counts up, so that no two choices are the same."""
    seed = request.sampling.seed
    if seed is None:
        return [request] * choices
    seeds = [(seed + number) % 2**63 for number in range(choices)]
    return [replace(request, sampling=replace(request.sampling, seed=each)) for each in seeds]


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
    reason: Literal["stop", "length", "tool_calls"]
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
        template = ChatTemplate(
            backend.chat_template, bos_token=backend.bos_token, eos_token=backend.eos_token
        )
        self._memory = CallMemory()
        self.prompts = PromptWriter(backend, template, self._memory)
        self._special_texts = {id: text for text, id in backend.vocabulary.special.items()}

    @property
    def engine(self) -> Engine:
        """The engine over the model's vocabulary, with what requests have taught it."""
        return self._engine

    def warm_up(self) -> None:
        """Do now what no request should wait for; from then on the garbage collector passes over it."""
        warm_up(self._engine, [self.wire_format.name])
        settle_down()

    async def prepare(self, request: TurnRequest) -> Turn:
        """A turn that is ready to run.

        Raises GrammarsError for tools that cannot be enforced, TemplateRefusal for messages that the chat
        template refuses, PromptError for a prompt that the model cannot take, BudgetTooSmall for an answer
        that cannot be finished within its tokens.
        """
        # Rendering, encoding and a grammar's build take milliseconds: other streams go on meanwhile.
        generation, prompt, widened = await in_worker(self._prepared, request)
        room = self.backend.context_length - len(prompt.tokens)
        return Turn(
            TurnPlan(
                prompt_tokens=len(prompt.tokens),
                max_tokens=min(generation.max_tokens, room),
                clamped=request.max_tokens is not None and request.max_tokens > room,
                stops=request.stops,
                widened=widened,
                tools=request.tools,
                start=generation.matcher.fork() if generation.matcher is not None else None,
                in_reasoning=prompt.in_reasoning,
            ),
            self.backend.generate(generation),
            TurnRecorder(self._memory, prompt, request.wire_format, self.backend.vocabulary),
            self._compat(request, prompt.in_reasoning),
        )

    async def prepare_text(self, prompt: str | Sequence[int], request: TurnRequest) -> Turn:
        """A turn that goes on from a text or tokens; of the request messages and tools play no part."""
        tokens = await in_worker(self.prompts.encode, prompt) if isinstance(prompt, str) else prompt
        limit = request.max_tokens or self.backend.context_length
        answer = request.answer.grammar(self.backend.vocabulary) if request.answer is not None else None
        matcher = self._engine.matcher(answer) if answer is not None else None
        generation = Generation(tuple(tokens), matcher, request.sampling, limit)
        room = self.backend.context_length - len(tokens)
        plan = TurnPlan(
            prompt_tokens=len(tokens),
            max_tokens=min(limit, room),
            clamped=request.max_tokens is not None and request.max_tokens > room,
            stops=request.stops,
            widened=(),
        )
        return Turn(plan, self.backend.generate(generation))

    def token_text(self, token: int) -> str:
        """How a token reads, for people."""
        special = self._special_texts.get(token)
        return special or self.backend.vocabulary.text(token).decode(errors="backslashreplace")

    def _compat(self, request: TurnRequest, in_reasoning: bool) -> CompatTurn | None:
        if not request.compat or request.answer is not None:
            return None
        return CompatTurn(
            request.wire_format.name,
            self.backend.vocabulary,
            in_reasoning=in_reasoning,
            calls=request.calls is not None or not request.tools,
            masked=request.calls is not None,
        )

    def _prepared(self, request: TurnRequest) -> tuple[Generation, Prompt, list[WidenedSchema]]:
        return *self._generation(request), _widened(request)

    def _generation(self, request: TurnRequest) -> tuple[Generation, Prompt]:
        tools = request.tools if request.calls else ()
        wire, vocabulary = request.wire_format, self.backend.vocabulary
        prompt = self.prompts.write(request.messages, tools, wire, request.variables)
        grammar: Grammar | None
        if request.calls:
            callable_tools = [
                tool for tool in tools if request.allowed is None or tool.name in request.allowed
            ]
            policy = replace(request.calls, reasoning=_may_reason(wire, self.backend.chat_template))
            grammar = wire.grammar(callable_tools, policy, vocabulary, in_reasoning=prompt.in_reasoning)
            if isinstance(request.answer, AnswerSchema):
                if wire.bare_json and not policy.required:
                    self._tell_apart(request.answer, wire)
                grammar = calls_or_answer(grammar, request.answer.schema, vocabulary, request.answer.options)
        else:
            grammar = _text_grammar(request, vocabulary, prompt.in_reasoning)
        matcher = self._engine.matcher(grammar) if grammar is not None else None
        limit = request.max_tokens or self.backend.context_length
        finish = request.finish_within_budget
        if finish is None:
            finish = self._finish_within_budget
        finish = finish and bool(request.calls or request.answer)
        if finish and matcher is not None:
            needed = matcher.needed()  # found here, off the event loop, and kept for the backend's check
            room = min(limit, self.backend.context_length - len(prompt.tokens))
            if needed > room and request.calls and not request.calls.required:
                finish = False  # an answer of the model's own choice is cut short, never refused
        generation = Generation(
            prompt.tokens,
            matcher,
            request.sampling,
            limit,
            # Forced tokens are not asked for, so nobody knows their probabilities.
            forced_tokens=self._forced_tokens and request.sampling.logprobs is None,
            finish_within_budget=finish,
            reasoning_budget=self._reasoning_budget(request, prompt),
        )
        return generation, prompt

    def _tell_apart(self, answer: AnswerSchema, wire: WireFormat) -> None:
        """Raises InvalidConstraint where an answer of the schema may begin as the format's calls do."""
        matcher = self._engine.matcher(answer.grammar(self.backend.vocabulary))
        for token in text_ids(self.backend.tokenizer, self.backend.vocabulary, wire.call_start):
            if not matcher.allows(token):
                return
            matcher.advance(token)
        raise InvalidConstraint(
            f"An answer of this schema may begin with {wire.call_start}, as calls of the format "
            f"'{wire.name}' do: set 'tool_choice' to 'none' or 'required', or choose another 'tool_format'."
        )

    def _reasoning_budget(self, request: TurnRequest, prompt: Prompt) -> ReasoningBudget | None:
        close = request.wire_format.reasoning_close
        if request.reasoning_budget is None or not close:
            return None
        ids = text_ids(self.backend.tokenizer, self.backend.vocabulary, close)
        return ReasoningBudget(request.reasoning_budget, tuple(ids), prompt.in_reasoning)


def _may_reason(wire: WireFormat, chat_template: str | None) -> bool:
    """Whether a model with this template may reason: one that does takes its reasoning out of the history."""
    if chat_template is None or wire.reasoning is None:
        return True
    return any(marker in chat_template for marker in wire.reasoning)


def _text_grammar(request: TurnRequest, vocabulary: Vocabulary, in_reasoning: bool) -> Grammar | None:
    """The grammar of a turn without calls; None where nothing has to be told apart from text."""
    wire = request.wire_format
    answer = request.answer.grammar(vocabulary) if request.answer is not None else None
    budgeted = request.reasoning_budget is not None
    if wire.reasons(vocabulary) or in_reasoning or (budgeted and answer is None):
        return wire.text_grammar(vocabulary, answer, in_reasoning=in_reasoning)
    return answer


def _widened(request: TurnRequest) -> list[WidenedSchema]:
    """The schemas of a turn that its grammar does not wholly enforce."""
    schemas: list[WidenedSchema] = []
    if request.calls:
        schemas = [
            WidenedSchema(tool.name, tool.parameters, request.wire_format.widened(tool), tool.options.formats)
            for tool in request.tools
            if request.calls.only in (None, tool.name)
        ]
    if isinstance(request.answer, AnswerSchema):
        schema, options = request.answer.schema, request.answer.options
        schemas.append(WidenedSchema(None, schema, response_widened(schema, options), options.formats))
    return [schema for schema in schemas if schema.widened]


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
        self._values = WidenedValues(plan.widened)
        self.written = 0
        """tokens of the answer so far"""
        self.watch: Watch | None = None
        """called with everything that the backend gives, and where that is cut off, for metrics"""
        self.count_widened: Callable[[Sequence[WidenedKeyword]], None] | None = None
        """called with the keywords that were not enforced, for metrics"""

    async def run(self) -> AsyncGenerator[TurnStep | TurnEnd, None]:
        """The steps and, last, the end. Closing the iterator stops the generation. Raises ServerFault."""
        emitter = DeltaEmitter()
        stop = StopText(self.plan.stops) if self.plan.stops else None
        thought = calls = 0
        cut: Cut | None = "left"
        try:
            async with aclosing(self._items) as items:
                async for item in items:
                    if self.watch is not None:
                        self.watch(item)
                    made = emitter.feed(item.events) if self._compat is None else self._read(item)
                    deltas: Sequence[Delta] = made if stop is None else stop.feed(made)
                    self._values.add(deltas)
                    before = calls
                    for delta in deltas:
                        calls += isinstance(delta, CallDelta)
                    thinks = bool(item.events) and isinstance(item.events[-1], Reasoning)
                    if self._recorder is not None:
                        self._recorder.add(item, deltas, thinks=thinks)
                    if isinstance(item, Step):
                        thought += thinks
                        yield TurnStep(self.written, item, deltas, before)
                        self.written += 1
                        if stop is None or not stop.found:
                            continue
                        reason: Literal["stop", "length", "tool_calls"] = "tool_calls" if calls else "stop"
                        cut = "stop"
                        yield TurnEnd(
                            (),
                            reason,
                            self.written,
                            widened=await self._check_widened(),
                            cached_tokens=item.cached_tokens,
                            reasoning_tokens=thought,
                            stop=stop.found,
                        )
                        return
                    cut = None
                    if item.reason == "error":
                        raise ServerFault(f"The generation failed: {item.error}")
                    if stop is not None and not stop.found:
                        deltas = [*deltas, *stop.rest()]
                    reason = "length" if item.reason == "length" else "tool_calls" if calls else "stop"
                    if self._recorder is not None and item.reason == "stop":
                        self._recorder.keep()
                    yield TurnEnd(
                        deltas,
                        reason,
                        self.written,
                        item.finished_calls if reason == "length" else None,
                        await self._check_widened(),
                        item.cached_tokens,
                        thought,
                        item.events,
                        self._compat.warnings if self._compat is not None else (),
                        stop.found if stop is not None else None,
                    )
        finally:
            if cut is not None and self.watch is not None:
                self.watch(cut)

    async def _check_widened(self) -> Sequence[WidenedKeyword]:
        found = await self._values.check()
        if self.count_widened is not None:
            self.count_widened(found)
        return found

    def _read(self, item: Step | Finish) -> list[Delta]:
        assert self._compat is not None
        return self._compat.step(item) if isinstance(item, Step) else self._compat.finish()
