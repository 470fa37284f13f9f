"""`larksong check`: does a text follow a schema, or a request's tools? JSON lines in, JSON lines out.

Each line asks one question and gets one answer; what is wrong with a question is an answer too.

    {"schema": {…}, "text": "…"}
    {"format": "hermes", "tools": […], "tool_choice": "auto", "text": "…"}
      → {"accepts": true, "offset": null, "expected": [], "widened": [], "error": null}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from larksong.api.commands.input import lines_of
from larksong.api.offline.byte_vocabulary import BYTES, END, byte_engine
from larksong.api.offline.tool_function import tool_function
from larksong.api.runtime.readable_json import readable_json
from larksong.api.settings.flags import with_schema_settings
from larksong.api.turns.schema_policy import DEFAULT_POLICY, SchemaPolicy
from larksong.engine.errors import EngineError
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import Keys
from larksong.engine.parsing.stack import Configuration
from larksong.engine.parsing.token_automaton import TokenAutomaton
from larksong.grammars import CallPolicy, GrammarsError, Tool, Widened, wire_format
from larksong.grammars.answers.response_format import response_grammar, response_widened

_MAX_EXPECTED = 32


def check(lines: Iterable[str], schemas: SchemaPolicy = DEFAULT_POLICY) -> Iterator[str]:
    """Answers each line that is not blank. `schemas`: what is made of all schemas."""
    for line in lines:
        if line.strip():
            yield readable_json(_answer(line.strip(), schemas))


class BadQuestion(ValueError):
    """A line that asks nothing."""


def _answer(line: str, policy: SchemaPolicy) -> dict[str, Any]:
    try:
        question = _question(line)
        if not isinstance(question, dict) or not isinstance(question.get("text"), str):
            raise BadQuestion("a line must be an object with the string 'text'")
        grammar, widened = _grammar(question, policy)
        return _result(grammar, question["text"], widened)
    except GrammarsError as error:
        return _error(str(error), error.pointer, error.keyword)
    except (ValueError, RecursionError, EngineError) as error:
        return _error(str(error) or type(error).__name__)


def _question(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise BadQuestion(f"the line is not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError:
        raise BadQuestion("the line is nested too deeply") from None


def _error(message: str, pointer: str | None = None, keyword: str | None = None) -> dict[str, Any]:
    error = {"pointer": pointer, "keyword": keyword, "message": message}
    return {"accepts": False, "offset": None, "expected": [], "widened": [], "error": error}


def _grammar(question: Mapping[str, Any], policy: SchemaPolicy) -> tuple[Grammar, list[Widened]]:
    if "schema" in question:
        chosen = policy.options(question.get("strict") is True)
        schema = question["schema"]
        return response_grammar(schema, BYTES, chosen), list(response_widened(schema, chosen))
    if not isinstance(question.get("tools"), list) or not isinstance(question.get("format"), str):
        raise BadQuestion("a line must have a 'schema', or a 'format' and 'tools'")
    found = wire_format(question["format"])
    tools = []
    for each in question["tools"]:
        function = tool_function(each) if isinstance(each, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BadQuestion("each tool must be a function with a name")
        parameters = function.get("parameters") or {}
        tools.append(Tool(function["name"], "", parameters, policy.options(function.get("strict") is True)))
    grammar = found.grammar(tools, _policy(question), BYTES)
    return grammar, [
        replace(each, pointer=f"/{tool.name}{each.pointer}") for tool in tools for each in found.widened(tool)
    ]


def _policy(question: Mapping[str, Any]) -> CallPolicy:
    choice = question.get("tool_choice", "auto")
    most = 1 if question.get("parallel_tool_calls") is False else None
    if isinstance(choice, dict):
        named = choice.get("function", choice)
        return CallPolicy(required=True, min_calls=1, max_calls=1, only=str(named.get("name")))
    if choice == "required":
        return CallPolicy(required=True, min_calls=1, max_calls=most)
    if choice != "auto":
        raise BadQuestion(f"tool_choice {choice!r} has no calls to check")
    return CallPolicy(max_calls=most)


def _result(grammar: Grammar, text: str, widened: list[Widened]) -> dict[str, Any]:
    automaton = byte_engine().automaton(grammar)
    data = text.encode(errors="surrogatepass")
    configuration = automaton.start
    offset: int | None = None
    for at, byte in enumerate(data):
        edge = automaton.edge(configuration, byte)
        if edge is None:
            offset = at
            break
        configuration = edge.target
    accepts = offset is None and automaton.edge(configuration, END) is not None
    if not accepts and offset is None:
        offset = len(data)
    return {
        "accepts": accepts,
        "offset": offset,
        "expected": [] if accepts else _expected(automaton, configuration),
        "widened": [{"pointer": each.pointer, "keyword": each.keyword} for each in widened],
        "error": None,
    }


def _expected(automaton: TokenAutomaton, configuration: Configuration) -> list[str]:
    """The terminals that are being read, as the grammar's text has them."""
    found: dict[str, None] = {}
    for thread in configuration.threads:
        definition = thread.bound.terminal.definition
        if isinstance(definition, Keys):
            found[thread.bound.automaton.definition.lark()] = None
        else:
            found[definition.lark() or thread.bound.terminal.name] = None
    if automaton.edge(configuration, END) is not None:
        found["<end>"] = None
    return list(found)[:_MAX_EXPECTED]


@with_schema_settings
def command(schemas: SchemaPolicy) -> None:
    """Check texts against schemas or tools: JSON lines on standard input, JSON lines on standard output.

    A line: {"schema": …, "text": "…"} or {"format": "…", "tools": […], "tool_choice": …, "text": "…"}.
    Each line gets one answer: {"accepts", "offset", "expected", "widened", "error"}; what is wrong with
    it is an answer, too.
    """
    for answer in check(lines_of(sys.stdin), schemas):
        print(answer, flush=True)
