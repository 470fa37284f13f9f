"""response_format over HTTP: answers that are JSON, of a schema if there is one."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from larksong.grammars import wire_format
from tests.api.serving import Served, serving

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "level": {"enum": ["low", "high"]}},
    "required": ["title"],
    "additionalProperties": False,
}
ANSWER = '{"title": "A \\"b\\" é😀\\n", "level": "high"}'
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]


def json_schema(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **more}}


def ask(server: Served, response_format: Any, *, stream: bool = False, **changes: Any) -> Any:
    return server.client.chat.completions.create(
        model="recorded",
        messages=[{"role": "user", "content": "hi"}],
        stream=stream,
        extra_body={"response_format": response_format, **changes},
    )


@pytest.mark.parametrize(
    "format", [json_schema(SCHEMA), json_schema(SCHEMA, strict=True), {"type": "json_object"}]
)
def test_the_answer_is_the_content(format: dict[str, Any]) -> None:
    with serving(ANSWER) as server:
        (choice,) = ask(server, format).choices
        pieces = [chunk.choices[0].delta.content or "" for chunk in ask(server, format, stream=True)]
    assert choice.message.content == ANSWER
    assert (choice.finish_reason, choice.message.tool_calls, choice.model_extra) == ("stop", None, {})
    assert "".join(pieces) == ANSWER
    assert len(pieces) > 5
    # No piece ends inside an escape.
    assert not any(piece.endswith("\\") for piece in pieces)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (json_schema(SCHEMA), "Here it is: {}"),
        (json_schema(SCHEMA), '{"level": "high"}'),
        (json_schema(SCHEMA), '{"title": "x", "level": "middle"}'),
        (json_schema({"type": "integer"}), '"3"'),
        ({"type": "json_object"}, "[1]"),
        ({"type": "json_object"}, '{"a": 1'),
    ],
)
def test_nothing_else_can_be_written(format: dict[str, Any], text: str) -> None:
    with serving(text) as server, pytest.raises(openai.InternalServerError):
        ask(server, format)


@pytest.mark.parametrize("text", ["3", '"text"', "null", "[1, 2]"])
def test_any_json_value_can_be_an_answer(text: str) -> None:
    with serving(text) as server:
        assert ask(server, json_schema({})).choices[0].message.content == text
        assert ask(server, json_schema(True)).choices[0].message.content == text


def test_text_is_free_as_ever() -> None:
    with serving("Hello.") as server:
        assert ask(server, {"type": "text"}).choices[0].message.content == "Hello."
        assert ask(server, {"type": "text"}, tools=TOOLS).choices[0].message.content == "Hello."


def test_the_python_client_parses_the_answer() -> None:
    with serving(ANSWER) as server:
        answer = server.client.chat.completions.create(
            model="recorded",
            messages=[{"role": "user", "content": "hi"}],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
            },
        )
    assert json.loads(answer.choices[0].message.content or "")["level"] == "high"


BACK_REFERENCE = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(a|b)\1$"}}}
SCHEMA_FIELD = "response_format.json_schema.schema"


@pytest.mark.parametrize(
    ("format", "param"),
    [
        ({"type": "yaml"}, "response_format"),
        ({}, "response_format"),
        ("json", "response_format"),
        ({"type": "json_schema"}, "response_format.json_schema"),
        ({"type": "json_schema", "json_schema": {"name": "a"}}, SCHEMA_FIELD),
        (json_schema([]), SCHEMA_FIELD),
        (json_schema({"type": "texts"}), f"{SCHEMA_FIELD}#/type"),
        (json_schema({"$ref": "https://example.com/x"}), f"{SCHEMA_FIELD}#/$ref"),
        (json_schema(False), SCHEMA_FIELD),
        (json_schema(BACK_REFERENCE, strict=True), f"{SCHEMA_FIELD}#/properties/a/pattern"),
    ],
)
def test_what_cannot_be_an_answers_schema_is_refused(format: Any, param: str) -> None:
    with serving(ANSWER) as server, pytest.raises(openai.BadRequestError) as refused:
        ask(server, format)
    assert refused.value.param == param


@pytest.mark.parametrize("format", [json_schema(SCHEMA), {"type": "json_object"}])
def test_with_tools_the_model_calls_or_answers_by_the_schema(format: dict[str, Any]) -> None:
    call = wire_format("hermes").render_call("f", {})
    with serving(ANSWER, call, "Hello.", f"Hello. {call}", format="hermes") as server:
        (answered,) = ask(server, format, tools=TOOLS).choices
        (called,) = ask(server, format, tools=TOOLS).choices
        for _ in range(2):
            with pytest.raises(openai.InternalServerError):
                ask(server, format, tools=TOOLS)
    assert (answered.message.content, answered.finish_reason) == (ANSWER, "stop")
    assert (called.message.content, called.finish_reason) == (None, "tool_calls")


def test_calls_that_are_bare_json_are_told_from_answers_or_refused() -> None:
    call = wire_format("llama3_json").render_call("f", {})
    person = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    with serving(ANSWER, call, call, format="llama3_json") as server:
        (answered,) = ask(server, json_schema(SCHEMA), tools=TOOLS).choices
        (called,) = ask(server, json_schema(SCHEMA), tools=TOOLS).choices
        assert (answered.message.content, answered.message.tool_calls) == (ANSWER, None)
        assert (called.message.content, called.message.tool_calls[0].function.name) == (None, "f")
        for format in (json_schema(person), {"type": "json_object"}):
            with pytest.raises(openai.BadRequestError, match="'tool_choice'") as refused:
                ask(server, format, tools=TOOLS)
            assert refused.value.param == "response_format"
        assert (
            ask(server, json_schema(person), tools=TOOLS, tool_choice="required")
            .choices[0]
            .message.tool_calls
        )


def test_tool_choice_decides_between_calls_and_the_answer() -> None:
    call = wire_format("hermes").render_call("f", {})
    with serving(call, ANSWER, ANSWER, call, format="hermes") as server:
        assert (
            ask(server, json_schema(SCHEMA), tools=TOOLS, tool_choice="required")
            .choices[0]
            .message.tool_calls
        )
        with pytest.raises(openai.InternalServerError):
            ask(server, json_schema(SCHEMA), tools=TOOLS, tool_choice="required")
        assert (
            ask(server, json_schema(SCHEMA), tools=TOOLS, tool_choice="none").choices[0].message.content
            == ANSWER
        )
        with pytest.raises(openai.InternalServerError):
            ask(server, json_schema(SCHEMA), tools=TOOLS, tool_choice="none")


@pytest.mark.parametrize(("text", "valid"), [('{"a": "aa"}', True), ('{"a": "ab"}', False)])
def test_what_is_not_enforced_is_validated_and_told(text: str, valid: bool) -> None:
    warning = {"tool": None, "pointer": "/properties/a/pattern", "keyword": "pattern", "valid": valid}
    with serving(text) as server:
        (choice,) = ask(server, json_schema(BACK_REFERENCE)).choices
        *_, last = ask(server, json_schema(BACK_REFERENCE), stream=True)
    assert choice.model_extra == last.choices[0].model_extra == {"larksong": {"warnings": [warning]}}


def test_too_few_tokens_for_any_answer_are_refused() -> None:
    with serving(ANSWER) as server, pytest.raises(openai.BadRequestError) as refused:
        ask(server, json_schema(SCHEMA), max_tokens=2, finish_within_budget=True)
    assert refused.value.param == "max_tokens"
