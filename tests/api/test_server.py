from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.serving import serving


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with serving("Hello.") as server, httpx.Client(base_url=str(server.client.base_url)) as client:
        yield client


def _body(**changes: Any) -> dict[str, Any]:
    body = {"model": "recorded", "messages": [{"role": "user", "content": "hi"}], **changes}
    return {key: value for key, value in body.items() if value is not ...}


def _tool(name: Any = "f", **schema: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"a": schema or {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


BAD_REQUESTS = {
    "no model": (_body(model=...), 400, "model"),
    "unknown model": (_body(model="gpt-7"), 404, "model"),
    "unknown model, no Unicode": (_body(model="\ud800"), 404, "model"),
    "no messages": (_body(messages=[]), 400, "messages"),
    "unknown role": (_body(messages=[{"role": "robot"}]), 400, "messages[0].role"),
    "unknown format": (_body(tool_format="morse", tools=[_tool()]), 400, "tool_format"),
    "unknown format without tools": (_body(tool_format="morse"), 400, "tool_format"),
    "tools that are not a list": (_body(tools={"f": {}}), 400, "tools"),
    "a tool that is not an object": (_body(tools=[_tool(), "f"]), 400, "tools[1]"),
    "a tool without a function": (_body(tools=[{"type": "function"}]), 400, "tools[0].function"),
    "a name that is not text": (_body(tools=[_tool(3)]), 400, "tools[0].function.name"),
    "parameters that are not an object": (
        _body(tools=[{"function": {"name": "f", "parameters": []}}]),
        400,
        "tools[0].function.parameters",
    ),
    "a type that JSON Schema does not have": (
        _body(tools=[_tool(), _tool("g", type="text")]),
        400,
        "tools[1].function.parameters#/properties/a/type",
    ),
    "a schema that is not an object": (
        _body(tools=[{"function": {"name": "f", "parameters": {"type": "object", "properties": {"a": 3}}}}]),
        400,
        "tools[0].function.parameters#/properties/a",
    ),
    "a reference to another document": (
        _body(tools=[_tool(**{"$ref": "https://example.com/schema.json"})]),
        400,
        "tools[0].function.parameters#/properties/a/$ref",
    ),
    "an empty name": (_body(tools=[_tool("")]), 400, "tools[0].function.name"),
    "a name that the format cannot carry": (_body(tools=[_tool("a>b")]), 400, "tools[0].function.name"),
    "a name that is no Unicode": (_body(tools=[_tool("\ud800")]), 400, "tools[0].function.name"),
    "a parameter that the format cannot carry": (
        _body(
            tools=[{"function": {"name": "f", "parameters": {"type": "object", "properties": {"a>/~": {}}}}}]
        ),
        400,
        "tools[0].function.parameters#/properties/a>~1~0",
    ),
    "two tools of one name": (_body(tools=[_tool(), _tool("g"), _tool()]), 400, "tools[2].function.name"),
    "required without tools": (_body(tool_choice="required"), 400, "tools"),
    "required with an empty list": (_body(tools=[], tool_choice="required"), 400, "tools"),
    "a choice that is not there": (
        _body(tools=[_tool()], tool_choice={"type": "function", "function": {"name": "g"}}),
        400,
        "tool_choice.function.name",
    ),
    "a choice that does not exist": (_body(tools=[_tool()], tool_choice="maybe"), 400, "tool_choice"),
    "more calls than allowed": (
        _body(tools=[_tool()], min_tool_calls=3, max_tool_calls=2),
        400,
        "min_tool_calls",
    ),
    "a prompt longer than the context": (
        _body(messages=[{"role": "user", "content": "word " * 5000}]),
        400,
        "messages",
    ),
    "no answers": (_body(n=0), 400, "n"),
    "an image": (
        _body(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
        400,
        "messages[0].content[0].type",
    ),
    "a body that is a list": ([], 400, "body"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_bad_input_is_refused_with_the_name_of_the_field(http: httpx.Client, name: str, stream: bool) -> None:
    body, status, param = BAD_REQUESTS[name]
    sent = {**body, "stream": stream} if isinstance(body, dict) else body
    answer = http.post(
        "/chat/completions", content=json.dumps(sent), headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert http.post("/chat/completions", json=_body()).status_code == 200


@pytest.mark.parametrize("depth", [120, 200, 300, 400, 450])
def test_a_schema_nested_without_end_is_refused(http: httpx.Client, depth: int) -> None:
    answer = http.post("/chat/completions", json=_body(tools=[_tool(**_nested(depth))]))
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith("tools")


@pytest.mark.parametrize("depth", [200, 900, 960, 100_000])
def test_arguments_nested_without_end_break_nothing(http: httpx.Client, depth: int) -> None:
    arguments = '{"a":' + "[" * depth + "]" * depth + "}"
    as_text = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    as_object = json.dumps(_body(messages=[as_text])).replace(json.dumps(arguments), arguments)
    for body in (json.dumps(_body(messages=[as_text])), as_object):
        answer = http.post("/chat/completions", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"model": ', b"\xff\xfe", b'"text"', b"null", b"[" * 100_000, b'{"model": "\xff"}'],
)
def test_what_is_not_json_is_refused(http: httpx.Client, content: bytes) -> None:
    answer = http.post("/chat/completions", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_an_unknown_path_and_method_have_openais_error_shape(http: httpx.Client) -> None:
    for answer, status in ((http.get("/nothing"), 404), (http.get("/chat/completions"), 405)):
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_the_models_are_listed(http: httpx.Client) -> None:
    listed = http.get("/models").json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["recorded"]


def test_health_answers(http: httpx.Client) -> None:
    assert http.get("../health").json() == {"status": "ok"}


def test_lone_surrogates_in_a_message_are_replaced(http: httpx.Client) -> None:
    body = json.dumps(_body(messages=[{"role": "user", "content": "cut \ud83d"}]))
    answer = http.post("/chat/completions", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200


def test_the_openapi_document_describes_the_request(http: httpx.Client) -> None:
    schemas = http.get("../openapi.json").json()["components"]["schemas"]
    assert {"messages", "tools", "min_tool_calls"} <= set(schemas["ChatRequest"]["properties"])
    assert "ChatCompletion" in schemas
