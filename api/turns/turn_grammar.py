"""The grammar of a turn, and the schemas that it does not wholly enforce."""

from __future__ import annotations

from dataclasses import replace

from larksong.api.turns.answer_form import AnswerSchema
from larksong.api.turns.request import TurnRequest
from larksong.api.turns.widening import WidenedSchema
from larksong.engine.backends.base import Backend
from larksong.engine.backends.encoding import text_ids
from larksong.engine.engine import Engine
from larksong.engine.grammar.grammar import Grammar
from larksong.grammars import WireFormat
from larksong.grammars.answers.response_format import calls_or_answer, response_widened
from larksong.grammars.errors import InvalidConstraint


def turn_grammar(
    request: TurnRequest, backend: Backend, engine: Engine, *, in_reasoning: bool
) -> Grammar | None:
    """The grammar of a turn; None where nothing has to be told apart from text.

    `in_reasoning`: the prompt ends inside reasoning. Raises GrammarsError.
    """
    if not request.calls:
        return _text_grammar(request, backend, in_reasoning)
    wire, answer = request.wire_format, request.answer
    policy = replace(request.calls, reasoning=_may_reason(wire, backend.chat_template))
    grammar = wire.grammar(request.callable_tools, policy, backend.vocabulary, in_reasoning=in_reasoning)
    if not isinstance(answer, AnswerSchema):
        return grammar
    if wire.bare_json and not policy.required:
        _tell_apart(answer, wire, backend, engine)
    return calls_or_answer(grammar, answer.schema, backend.vocabulary, answer.options)


def widened_schemas(request: TurnRequest) -> list[WidenedSchema]:
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


def _text_grammar(request: TurnRequest, backend: Backend, in_reasoning: bool) -> Grammar | None:
    wire, vocabulary = request.wire_format, backend.vocabulary
    answer = request.answer.grammar(vocabulary) if request.answer is not None else None
    budgeted = request.reasoning_budget is not None
    if wire.reasons(vocabulary) or in_reasoning or (budgeted and answer is None):
        return wire.text_grammar(vocabulary, answer, in_reasoning=in_reasoning)
    return answer


def _may_reason(wire: WireFormat, chat_template: str | None) -> bool:
    """Whether a model with this template may reason: one that does takes its reasoning out of the history."""
    if chat_template is None or wire.reasoning is None:
        return True
    return any(marker in chat_template for marker in wire.reasoning)


def _tell_apart(answer: AnswerSchema, wire: WireFormat, backend: Backend, engine: Engine) -> None:
    """Raises InvalidConstraint where an answer of the schema may begin as the format's calls do."""
    matcher = engine.matcher(answer.grammar(backend.vocabulary))
    for token in text_ids(backend.tokenizer, backend.vocabulary, wire.call_start):
        if not matcher.allows(token):
            return
        matcher.advance(token)
    raise InvalidConstraint(
        f"An answer of this schema may begin with {wire.call_start}, as calls of the format "
        f"'{wire.name}' do: set 'tool_choice' to 'none' or 'required', or choose another 'tool_format'."
    )
