"""A question of the page → a grammar, or a reading of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from larksong.api.errors import ApiError
from larksong.api.inspector.cutting import SINGLE_BYTES, Cutting, as_served, in_bytes
from larksong.api.inspector.live import LiveTurn
from larksong.api.inspector.schemas import Question, TextQuestion
from larksong.api.inspector.sources import Compat, Loose, Masked, Source
from larksong.api.inspector.turn_reading import TurnReading
from larksong.api.offline.explanation import explanation_json
from larksong.api.openai_chat.limits import check_limits
from larksong.api.openai_chat.requests import refusal, turn_request
from larksong.api.settings.settings import Settings
from larksong.api.turns.compat_formats import NoCompat
from larksong.api.turns.model import Model
from larksong.api.turns.request import TurnRequest
from larksong.engine.engine import Engine
from larksong.engine.errors import EngineError
from larksong.engine.grammar.expand import expand
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import Literal
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import GrammarsError, Tool, WireFormat, format_names, wire_format
from larksong.grammars.explain import Request, explain_turn

MAX_TEXT = 4 << 20  # bytes
MAX_TOKENS = 1_500_000
_MAX_EXPLAINED = 20_000  # tokens up to which a refusal is traced to its keyword
_MAX_AHEAD = 2_000  # tokens behind a refused one, which say what it was about to become


def grammar_text(question: Question, model: Model, settings: Settings) -> str:
    """The grammar of the question's tools as Lark text. Raises ApiError."""
    asked = _asked(question, model, settings)
    try:
        found = _grammar(question, asked, _cutting(question, model).vocabulary)
        # Open grammars know no names by which their tools could be put in place.
        return expand(found).lark() if question.mode == "schema" else found.lark()
    except (GrammarsError, RecursionError) as error:
        raise refusal(error, question.request) from error


def read_text(question: TextQuestion, model: Model, settings: Settings) -> TurnReading:
    """A turn read from text. Raises ApiError."""
    if len(question.text.encode(errors="replace")) > MAX_TEXT:
        raise ApiError(f"The text is longer than {MAX_TEXT} bytes.", param="text", code="text_too_large")
    asked = _asked(question, model, settings)
    cutting = _cutting(question, model)
    case = _case(asked.wire_format.name, asked.tools, question.mode, question.in_reasoning)
    case["text"] = question.text
    try:
        source = _source(question, asked, cutting.engine)
        reading = TurnReading(source, cutting, case)
        ids = cutting.cut(question.text)
        if len(ids) > MAX_TOKENS:
            raise ApiError(
                f"The text has {len(ids)} tokens, more than {MAX_TOKENS}.",
                param="text",
                code="text_too_large",
            )
        reading.feed(ids)
        reading.end()
        if source.fault and len(reading) <= _MAX_EXPLAINED and asked.calls is not None:
            request = Request(
                asked.wire_format,
                tuple(asked.callable_tools),
                asked.calls,
                in_reasoning=question.in_reasoning,
            )
            found = explain_turn(request, cutting.engine, ids[: len(reading) + _MAX_AHEAD])
            reading.refusal = explanation_json(found, cutting.vocabulary)
    except (GrammarsError, RecursionError) as error:
        raise refusal(error, question.request) from error
    except (EngineError, NoCompat) as error:
        raise ApiError(str(error), param="request") from error
    return reading


def follow(turn: LiveTurn) -> TurnReading:
    """The reading of a live turn."""
    plan, model = turn.plan, turn.model
    format = turn.format if turn.format in format_names() else model.wire_format.name  # plain text has none
    # Where there are no tools, some other grammar leads: for `larksong parse` the answer is text.
    mode = "schema" if plan.start is not None and plan.tools else "open"
    case = _case(format, plan.tools, mode, plan.in_reasoning)
    source: Source
    if plan.start is None:
        source = Loose(wire_format(format), (), model.engine, in_reasoning=plan.in_reasoning)
    else:
        source = Masked(plan.start.fork(), plan.tools, model.backend.vocabulary)
    return TurnReading(source, as_served(model), case)


def _asked(question: Question, model: Model, settings: Settings) -> TurnRequest:
    check_limits(question.request, settings)
    try:
        return turn_request(question.request, model.wire_format, model.schemas)
    except (GrammarsError, RecursionError) as error:
        raise refusal(error, question.request) from error


def _cutting(question: Question, model: Model) -> Cutting:
    return in_bytes() if question.tokenizer == SINGLE_BYTES else as_served(model)


def _source(question: Question, asked: TurnRequest, engine: Engine) -> Source:
    vocabulary = engine.vocabulary
    if question.mode == "schema":
        start = engine.matcher(_grammar(question, asked, vocabulary))
        return Masked(start, asked.tools, vocabulary)
    if question.mode == "compat":
        return Compat(asked.wire_format.name, vocabulary, in_reasoning=question.in_reasoning)
    return Loose(asked.wire_format, asked.tools, engine, in_reasoning=question.in_reasoning)


def _grammar(question: Question, asked: TurnRequest, vocabulary: Vocabulary) -> Grammar:
    wire = asked.wire_format
    if question.mode != "schema":
        return wire.open_grammar(asked.tools, vocabulary, in_reasoning=question.in_reasoning)
    if asked.calls is None:
        raise ApiError("The schema mode needs tools that may be called.", param="request.tools")
    return wire.grammar(asked.callable_tools, asked.calls, vocabulary, in_reasoning=question.in_reasoning)


def _case(format: str, tools: Sequence[Tool], mode: str, in_reasoning: bool) -> dict[str, Any]:
    """A line that `larksong parse` reads, but for the text."""
    tail = prompt_tail(wire_format(format))
    case: dict[str, Any] = {
        "id": "inspector",
        "format": format,
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in tools
        ],
        "build": "strict" if mode == "schema" else "open",
        "mode": "compat" if mode == "compat" else "schema",
    }
    if in_reasoning and tail is not None:
        case["prompt_tail"] = tail
    return case


def prompt_tail(format: WireFormat) -> str | None:
    """How a prompt ends that has opened the reasoning; None in formats that have none."""
    if format.reasoning is None:
        return None
    lead = format.reasoning_lead
    return format.reasoning[0] + (lead.text if isinstance(lead, Literal) else "")
