"""Keywords that nothing can enforce: refused, or left out of the grammar alone, validated and told."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from larksong.api.turns import validation
from larksong.api.turns.schema_policy import DEFAULT_POLICY, SchemaPolicy
from larksong.api.turns.validation import broken_here, broken_keywords
from larksong.grammars import Limits, wire_format
from tests.api.serving import Served, serving
from tests.support.formats import TRIED

PARAMETERS = {
    "type": "object",
    "properties": {"code": {"type": "string", "pattern": r"^(a|b)\1$"}, "days": {"type": "integer"}},
    "required": ["code"],
}
ALL = {"pattern", "uniqueItems", "if", "dependencies", "format"}
PLACE = {"tool": "book", "pointer": "/properties/code/pattern", "keyword": "pattern"}


def tools(**function: Any) -> list[dict[str, Any]]:
    plain = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
    book = {"name": "book", "parameters": PARAMETERS, **function}
    return [{"type": "function", "function": each} for each in (plain, book)]


def ask(server: Served, *, stream: bool = False, **changes: Any) -> Any:
    return server.client.chat.completions.create(
        model="recorded",
        messages=[{"role": "user", "content": "hi"}],
        stream=stream,
        extra_body={"tools": tools(), **changes},
    )


def call(format: str, code: str) -> str:
    return wire_format(format).render_call("book", {"code": code})


@pytest.fixture(scope="module", params=TRIED)
def server(request: pytest.FixtureRequest) -> Iterator[Served]:
    """Writes in turn a call that keeps the pattern and one that breaks it."""
    texts = [call(request.param, code) for code in ("aa", "ab")]
    with serving(*texts, format=request.param) as served:
        yield served


def test_the_answer_says_what_was_not_enforced_and_whether_it_was_kept(server: Served) -> None:
    for valid in (True, False):
        (choice,) = ask(server).choices
        assert choice.finish_reason == "tool_calls"
        assert choice.model_extra == {"larksong": {"warnings": [{**PLACE, "valid": valid}]}}


def test_a_stream_says_it_with_the_finish_reason(server: Served) -> None:
    for valid in (True, False):
        *before, last = ask(server, stream=True)
        assert last.choices[0].finish_reason == "tool_calls"
        assert last.choices[0].model_extra == {"larksong": {"warnings": [{**PLACE, "valid": valid}]}}
        assert not any("larksong" in (chunk.choices[0].model_extra or {}) for chunk in before)


def test_strict_refuses_with_tool_pointer_keyword_and_reason(server: Served) -> None:
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as refused:
            ask(server, stream=stream, tools=tools(strict=True))
        assert refused.value.param == "tools[1].function.parameters#/properties/code/pattern"
        assert refused.value.code == "unsupported_keyword"
        for word in ("'book'", "/properties/code", "'pattern'", "back reference"):
            assert word in str(refused.value)


def test_strict_takes_what_can_be_enforced() -> None:
    parameters = {"type": "object", "properties": {"code": {"type": "string", "pattern": "^a+$"}}}
    with serving(call("hermes", "aa"), format="hermes") as server:
        (choice,) = ask(server, tools=tools(strict=True, parameters=parameters)).choices
    assert not choice.model_extra


@pytest.mark.parametrize(
    ("schemas", "strict", "refuses"),
    [
        (DEFAULT_POLICY, None, False),
        (DEFAULT_POLICY, True, True),
        (SchemaPolicy("widen"), True, False),
        (SchemaPolicy("refuse"), False, True),
    ],
)
def test_the_server_may_say_it_for_all_requests(
    schemas: SchemaPolicy, strict: bool | None, refuses: bool
) -> None:
    with serving(call("hermes", "aa"), format="hermes", schemas=schemas) as server:
        if refuses:
            with pytest.raises(openai.BadRequestError):
                ask(server, tools=tools(strict=strict))
        else:
            assert "larksong" in ask(server, tools=tools(strict=strict)).choices[0].model_extra


def test_formats_are_asserted_unless_the_server_says_otherwise() -> None:
    parameters = {"type": "object", "properties": {"code": {"type": "string", "format": "date"}}}
    with (
        serving(call("hermes", "soon"), format="hermes") as server,
        pytest.raises(openai.InternalServerError),
    ):
        ask(server, tools=tools(parameters=parameters), tool_choice="required")
    with serving(call("hermes", "soon"), format="hermes", schemas=SchemaPolicy(formats=False)) as server:
        assert ask(server, tools=tools(parameters=parameters)).choices[0].message.tool_calls


def test_the_other_keywords_are_enforced_all_the_same() -> None:
    text = wire_format("hermes").render_call("book", {"code": "ab", "days": "three"})
    with serving(text, format="hermes") as server, pytest.raises(openai.InternalServerError):
        ask(server)


@pytest.mark.parametrize(
    ("codes", "valid"), [(("aa", "bb"), True), (("aa", "ab"), False)], ids=["all kept", "one broken"]
)
def test_several_calls_of_a_tool_are_one_warning(codes: tuple[str, ...], valid: bool) -> None:
    with serving("\n".join(call("hermes", code) for code in codes), format="hermes") as server:
        (choice,) = ask(server).choices
    assert len(choice.message.tool_calls) == 2
    assert choice.model_extra == {"larksong": {"warnings": [{**PLACE, "valid": valid}]}}


def test_tools_that_are_not_called_give_no_warning() -> None:
    with serving(wire_format("hermes").render_call("ping", {}), format="hermes") as server:
        assert not ask(server).choices[0].model_extra


def test_a_call_that_is_cut_short_is_not_validated() -> None:
    with serving(call("hermes", "aa"), format="hermes") as server:
        (choice,) = ask(server, max_tokens=20).choices
    assert choice.finish_reason == "length"
    assert not choice.model_extra


def test_a_call_that_the_budget_ends_is_validated_and_named() -> None:
    with serving(call("hermes", "a" * 200), format="hermes") as server:
        (choice,) = ask(server, max_tokens=60, finish_within_budget=True, tool_choice="required").choices
    assert choice.finish_reason == "length"
    assert choice.model_extra == {
        "larksong": {"finished_within_budget": [0], "warnings": [{**PLACE, "valid": False}]}
    }


def test_the_log_has_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "larksong"),
        serving(call("hermes", "ab"), format="hermes") as server,
    ):
        ask(server)
    [line] = [record.getMessage() for record in caplog.records if record.name.startswith("larksong")]
    assert line == "not enforced: tool 'book', '/properties/code/pattern': broken"


async def test_a_value_that_takes_too_long_counts_as_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "TIME_LIMIT", 2.0)
    begin = time.monotonic()
    text = json.dumps("a" * 60 + "!")
    broken = await broken_keywords({"pattern": r"^((a+)+)\1$"}, [text], {"pattern"}, formats=True)
    assert broken == {"pattern"}
    assert time.monotonic() - begin < 60


async def test_a_value_that_cannot_be_validated_counts_as_broken() -> None:
    assert await broken_keywords({"pattern": "("}, ['"a"'], {"pattern"}, formats=True) == {"pattern"}


@pytest.mark.parametrize(
    ("schema", "value", "broken"),
    [
        ({"properties": {"a": {"pattern": r"(a)\1"}}}, {"a": "aa"}, set()),
        ({"properties": {"a": {"pattern": r"(a)\1"}}}, {"a": "ab"}, {"pattern"}),
        ({"anyOf": [{"type": "null"}, {"pattern": r"(a)\1"}]}, "ab", {"pattern"}),
        ({"type": "string", "nullable": True, "pattern": "a"}, None, set()),
        ({"items": [{"not": {"pattern": "a"}}]}, ["a"], ALL),
        ({"minimum": 3, "exclusiveMinimum": True, "uniqueItems": True}, [{}, {}], {"uniqueItems"}),
        ({"if": {"not": {"uniqueItems": True}}, "then": {"maxItems": 1}}, [{}, {}], ALL),
        ({"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}, "ab", ALL),
        ({"dependencies": {"a": ["b"]}}, {"a": 1}, {"dependencies"}),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "uniqueItems": True},
            [1, 1],
            {"uniqueItems"},
        ),
        ({"format": "regex"}, "(", {"format"}),
    ],
)
def test_only_what_the_grammar_left_out_counts_as_broken(
    schema: dict[str, Any], value: Any, broken: set[str]
) -> None:
    assert broken_here(schema, value, ALL, True) == broken


def figures(server: Served) -> dict[str, float]:
    url = str(server.client.base_url).removesuffix("/v1/") + "/metrics"
    lines = [line for line in httpx.get(url).text.splitlines() if "widened_keywords_total{" in line]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def figure(result: str) -> str:
    return f'larksong_widened_keywords_total{{keyword="pattern",model="recorded",result="{result}"}}'


def test_a_figure_counts_what_was_not_enforced() -> None:
    texts = [call("hermes", code) for code in ("aa", "ab", "ab")]
    with serving(*texts, wire_format("hermes").render_call("ping", {}), format="hermes") as server:
        assert figures(server) == {}
        ask(server)
        assert figures(server) == {figure("kept"): 1}
        ask(server)
        list(ask(server, stream=True))
        assert figures(server) == {figure("kept"): 1, figure("broken"): 2}
        ask(server)  # calls the other tool
        assert figures(server) == {figure("kept"): 1, figure("broken"): 2}


@pytest.mark.parametrize("stream", [False, True])
def test_answers_by_schema_are_warned_of_and_counted(stream: bool) -> None:
    schema = {"type": "array", "items": {"type": "object"}, "uniqueItems": True}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    warning = {"tool": None, "pointer": "/uniqueItems", "keyword": "uniqueItems", "valid": False}
    with serving('[{"a": 1}, {"a": 1}]', format="hermes") as server:
        answer = ask(server, tools=[], response_format=form, stream=stream)
        last = list(answer)[-1] if stream else answer
        assert last.choices[0].model_extra == {"larksong": {"warnings": [warning]}}
        [(line, count)] = figures(server).items()
    assert ('keyword="uniqueItems"' in line, 'result="broken"' in line, count) == (True, True, 1)


@pytest.mark.parametrize("stream", [False, True])
def test_the_other_apis_say_and_count_it_too(stream: bool) -> None:
    base = {"model": "recorded", "stream": stream, "max_tokens": 500}
    question = [{"role": "user", "content": "hi"}]
    messages = {"messages": question, "tools": [{"name": "book", "input_schema": PARAMETERS}]}
    responses = {
        "input": question,
        "tools": [{"type": "function", "name": "book", "parameters": PARAMETERS, "strict": False}],
    }
    base_of_responses = {"model": "recorded", "stream": stream}
    with serving(*[call("hermes", "ab")] * 2, format="hermes") as server:
        url = str(server.client.base_url)
        for path, body in (("messages", base | messages), ("responses", base_of_responses | responses)):
            answer = httpx.post(url + path, json=body)
            assert answer.status_code == 200
            assert json.dumps({**PLACE, "valid": False}, separators=(",", ":")) in answer.text.replace(
                ", ", ","
            ).replace(": ", ":")
        assert figures(server) == {figure("broken"): 2}


@pytest.mark.parametrize("path", ["messages", "responses"])
def test_the_other_apis_refuse_what_is_no_schema(path: str) -> None:
    parameters = {"type": "object", "properties": {"code": {"$ref": "#/properties/code"}}}
    question = [{"role": "user", "content": "hi"}]
    tool = {"name": "book"}
    bodies: dict[str, dict[str, Any]] = {
        "messages": {"messages": question, "max_tokens": 50, "tools": [{**tool, "input_schema": parameters}]},
        "responses": {"input": question, "tools": [{**tool, "type": "function", "parameters": parameters}]},
    }
    with serving("Hi.", format="hermes") as server:
        answer = httpx.post(str(server.client.base_url) + path, json={"model": "recorded", **bodies[path]})
    assert answer.status_code == 400
    assert "leads back to itself without end" in answer.text
    assert "/properties/code/$ref" in answer.text


def test_the_limits_of_the_server_hold() -> None:
    parameters = {"type": "object", "properties": {"code": {"enum": ["a", "b", "c"]}}}
    schemas = SchemaPolicy(limits=Limits(enum_values=2))
    with (
        serving(call("hermes", "a"), format="hermes", schemas=schemas) as server,
        pytest.raises(openai.BadRequestError) as refused,
    ):
        ask(server, tools=tools(parameters=parameters))
    assert refused.value.code == "invalid_schema"
    assert refused.value.param == "tools[1].function.parameters#/properties/code/enum"


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "string", "minLength": "3"}, "/minLength"),
        ({"type": "strng"}, "/type"),
        ({"type": "string", "pattern": "("}, "/pattern"),
        ({"required": {}}, "/required"),
        ({"$ref": "#/properties/code"}, "/$ref"),
    ],
    ids=repr,
)
def test_what_is_no_schema_is_refused_without_strict_too(schema: dict[str, Any], place: str) -> None:
    parameters = {"type": "object", "properties": {"code": schema}}
    with serving("Hi.", format="hermes") as server, pytest.raises(openai.BadRequestError) as refused:
        ask(server, tools=tools(parameters=parameters))
    assert refused.value.param == f"tools[1].function.parameters#/properties/code{place}"
    assert refused.value.code == "invalid_schema"


def test_numbers_that_no_float_holds_are_refused() -> None:
    body = '{"model": "recorded", "messages": [{"role": "user", "content": "hi"}], "response_format": '
    body += '{"type": "json_schema", "json_schema": {"name": "n", "schema": {"minLength": 1e400}}}}'
    with serving("Hi.", format="hermes") as server:
        url = str(server.client.base_url) + "chat/completions"
        answer = httpx.post(url, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_schema")
