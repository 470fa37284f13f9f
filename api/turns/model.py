"""A model as the server knows it: a request becomes a turn that is ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from larksong.api.runtime.gc_tuning import settle_down
from larksong.api.runtime.workers import in_worker
from larksong.api.turns.call_memory import CallMemory
from larksong.api.turns.chat_template import ChatTemplate
from larksong.api.turns.compat_turn import CompatTurn
from larksong.api.turns.prompt_writer import Prompt, PromptWriter
from larksong.api.turns.request import TurnRequest
from larksong.api.turns.schema_policy import DEFAULT_POLICY, SchemaPolicy
from larksong.api.turns.turn import Turn, TurnPlan
from larksong.api.turns.turn_grammar import turn_grammar, widened_schemas
from larksong.api.turns.turn_recorder import TurnRecorder
from larksong.api.turns.widening import WidenedSchema
from larksong.engine.backends.base import Backend, Generation, ReasoningBudget
from larksong.engine.backends.encoding import text_ids
from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.grammars import WireFormat
from larksong.grammars.warming import warm_up


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
        self.engine = Engine(backend.vocabulary, encode=encode)
        """over the model's vocabulary, with what requests have taught it"""
        template = ChatTemplate(
            backend.chat_template, bos_token=backend.bos_token, eos_token=backend.eos_token
        )
        self._memory = CallMemory()
        self.prompts = PromptWriter(backend, template, self._memory)
        self._special_texts = {id: text for text, id in backend.vocabulary.special.items()}

    def warm_up(self) -> None:
        """Do now what no request should wait for; from then on the garbage collector passes over it."""
        warm_up(self.engine, [self.wire_format.name])
        settle_down()

    async def prepare(self, request: TurnRequest) -> Turn:
        """A turn that is ready to run.

        Raises GrammarsError for tools that cannot be enforced, TemplateRefusal for messages that the chat
        template refuses, PromptError for a prompt that the model cannot take, BudgetTooSmall for an answer
        that cannot be finished within its tokens.
        """
        # Rendering, encoding and a grammar's build take milliseconds: other streams go on meanwhile.
        generation, prompt, widened = await in_worker(self._prepared, request)
        plan = replace(
            self._plan(request, generation),
            widened=widened,
            tools=request.tools,
            start=generation.matcher.fork() if generation.matcher is not None else None,
            in_reasoning=prompt.in_reasoning,
        )
        return Turn(
            plan,
            self.backend.generate(generation),
            TurnRecorder(self._memory, prompt, request.wire_format, self.backend.vocabulary),
            self._compat(request, prompt.in_reasoning),
        )

    async def prepare_text(self, prompt: str | Sequence[int], request: TurnRequest) -> Turn:
        """A turn that goes on from a text or tokens; of the request messages and tools play no part."""
        tokens = await in_worker(self.prompts.encode, prompt) if isinstance(prompt, str) else prompt
        limit = request.max_tokens or self.backend.context_length
        answer = request.answer.grammar(self.backend.vocabulary) if request.answer is not None else None
        matcher = self.engine.matcher(answer) if answer is not None else None
        generation = Generation(tuple(tokens), matcher, request.sampling, limit)
        return Turn(self._plan(request, generation), self.backend.generate(generation))

    def prompt(self, request: TurnRequest) -> Prompt:
        """What the model reads of a request. Raises TemplateRefusal, RecursionError."""
        tools = request.tools if request.calls else ()
        return self.prompts.write(request.messages, tools, request.wire_format, request.variables)

    def token_text(self, token: int) -> str:
        """How a token reads, for people."""
        special = self._special_texts.get(token)
        return special or self.backend.vocabulary.text(token).decode(errors="backslashreplace")

    def _plan(self, request: TurnRequest, generation: Generation) -> TurnPlan:
        room = self.backend.context_length - len(generation.prompt)
        return TurnPlan(
            prompt_tokens=len(generation.prompt),
            max_tokens=min(generation.max_tokens, room),
            clamped=request.max_tokens is not None and request.max_tokens > room,
            stops=request.stops,
            widened=(),
        )

    def _prepared(self, request: TurnRequest) -> tuple[Generation, Prompt, list[WidenedSchema]]:
        return *self._generation(request), widened_schemas(request)

    def _generation(self, request: TurnRequest) -> tuple[Generation, Prompt]:
        prompt = self.prompt(request)
        grammar = turn_grammar(request, self.backend, self.engine, in_reasoning=prompt.in_reasoning)
        matcher = self.engine.matcher(grammar) if grammar is not None else None
        limit = request.max_tokens or self.backend.context_length
        room = min(limit, self.backend.context_length - len(prompt.tokens))
        generation = Generation(
            prompt.tokens,
            matcher,
            request.sampling,
            limit,
            # Forced tokens are not asked for, so nobody knows their probabilities.
            forced_tokens=self._forced_tokens and request.sampling.logprobs is None,
            finish_within_budget=self._finishes(request, matcher, room),
            reasoning_budget=self._reasoning_budget(request, prompt),
        )
        return generation, prompt

    def _finishes(self, request: TurnRequest, matcher: Matcher | None, room: int) -> bool:
        """Whether the answer is led to a valid end within `room` tokens."""
        wanted = request.finish_within_budget
        if wanted is None:
            wanted = self._finish_within_budget
        if not wanted or not (request.calls or request.answer):
            return False
        if matcher is None:
            return True
        needed = matcher.needed()  # found here, off the event loop, and kept for the backend's check
        # An answer of the model's own choice is cut short, never refused.
        return needed <= room or not request.calls or request.calls.required

    def _reasoning_budget(self, request: TurnRequest, prompt: Prompt) -> ReasoningBudget | None:
        close = request.wire_format.reasoning_close
        if request.reasoning_budget is None or not close:
            return None
        ids = text_ids(self.backend.tokenizer, self.backend.vocabulary, close)
        return ReasoningBudget(request.reasoning_budget, tuple(ids), prompt.in_reasoning)

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
