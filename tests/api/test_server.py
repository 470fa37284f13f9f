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


def _called(*ids: str, arguments: str = "{}") -> dict[str, Any]:
    calls = [{"id": id, "function": {"name": "f", "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(id: str) -> dict[str, Any]:
    return {"role": "tool", "content": "x", "tool_call_id": id}


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
    "a result without a call": (
        _body(messages=[{"role": "tool", "content": "x", "tool_call_id": "1"}]),
        400,
        "messages[0].role",
    ),
    "a result of another call": (
        _body(messages=[_called("1"), _result("2")]),
        400,
        "messages[1].tool_call_id",
    ),
    "two results of one call": (
        _body(messages=[_called("1", "2"), _result("1"), _result("1")]),
        400,
        "messages[2].tool_call_id",
    ),
    "two calls of one id": (_body(messages=[_called("1", "1")]), 400, "messages[0].tool_calls"),
    "arguments with a bracket too few": (
        _body(messages=[_called("1", arguments='{"a": [1}')]),
        400,
        "messages[0].tool_calls[0].function.arguments",
    ),
    "an allowed tool that is not there": (
        _body(
            tools=[_tool()],
            tool_choice={
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "g"}}]},
            },
        ),
        400,
        "tool_choice.allowed_tools.tools[0].function.name",
    ),
    "a function that is not there": (
        _body(functions=[{"name": "f"}], function_call={"name": "g"}),
        400,
        "function_call.name",
    ),
    "functions and tools": (_body(functions=[{"name": "f"}], tools=[_tool()]), 400, "functions"),
    "a bias for no token": (_body(logit_bias={"x": 1}), 400, "logit_bias"),
    "a bias for a token beyond the vocabulary": (_body(logit_bias={"999999": 1}), 400, "logit_bias"),
    "a ban of no token": (_body(banned_tokens=[-1]), 400, "banned_tokens"),
    "top_logprobs alone": (_body(top_logprobs=2), 400, "top_logprobs"),
    "audio": (_body(modalities=["text", "audio"]), 400, "modalities"),
    "a search in the web": (_body(web_search_options={}), 400, "web_search_options"),
    "a sampler that is not here": (_body(mirostat_mode=2), 400, "mirostat_mode"),
    "too many stops": (_body(stop=["x"] * 100), 400, "stop"),
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
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == "body" or content in (b"", b'"text"', b"null")


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


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
def test_a_body_that_is_not_said_to_be_json_is_refused_with_the_header(
    http: httpx.Client, headers: dict[str, str]
) -> None:
    answer = http.post("/chat/completions", content=json.dumps(_body()), headers=headers)
    assert answer.status_code == 400
    assert "Content-Type: application/json" in answer.json()["error"]["message"]


def test_lone_surrogates_in_a_message_are_replaced(http: httpx.Client) -> None:
    body = json.dumps(_body(messages=[{"role": "user", "content": "cut \ud83d"}]))
    answer = http.post("/chat/completions", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200


def test_the_openapi_document_describes_the_request(http: httpx.Client) -> None:
    schemas = http.get("../openapi.json").json()["components"]["schemas"]
    assert {"messages", "tools", "min_tool_calls"} <= set(schemas["ChatRequest"]["properties"])
    assert "ChatCompletion" in schemas


WRONG: list[Any] = [3.5, "text", True, [1], {"a": 1}, [[]], {}, -(2**70)]


def _fields() -> list[str]:
    from larksong.api.openai_chat.schemas import ChatRequest

    return sorted(ChatRequest.model_fields)


@pytest.mark.parametrize("field", _fields())
def test_no_value_of_any_field_makes_the_server_fail(http: httpx.Client, field: str) -> None:
    for value in WRONG:
        answer = http.post("/chat/completions", json=_body(**{field: value}))
        if "of the recorded text" in answer.text:
            continue  # a form that the recorded answer does not have: a model's masks would lead it there
        assert answer.status_code in (200, 400, 404), (field, value, answer.text)
        if answer.status_code == 400:
            error = answer.json()["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert error["param"], error


def test_a_result_may_come_in_any_order() -> None:
    from larksong.api.openai_chat.history import template_messages
    from larksong.api.openai_chat.messages import Message

    said = [
        _called("1", "2", "3"),
        _result("3"),
        _result("1"),
        _result("2"),
        {"role": "user", "content": "x"},
    ]
    written = template_messages([Message.model_validate(each) for each in said])
    assert [each.get("tool_call_id") for each in written] == [None, "1", "2", "3", None]


def test_results_that_name_no_call_are_those_of_the_calls_in_turn() -> None:
    from larksong.api.openai_chat.history import template_messages
    from larksong.api.openai_chat.messages import Message

    nameless = {"role": "tool", "content": "x"}
    said = [_called("1", "2", "3"), nameless, _result("3"), nameless]
    written = template_messages([Message.model_validate(each) for each in said])
    assert [each.get("tool_call_id") for each in written] == [None, "1", "2", "3"]


def test_tokens_go_there_and_back() -> None:
    with serving("Hi.") as server:
        root = str(server.client.base_url).removesuffix("/v1/")
        text = "Grüße, 東京 <|end|>"
        made = httpx.post(f"{root}/tokenize", json={"prompt": text, "return_token_strs": True}).json()
        assert made["count"] == len(made["tokens"]) == len(made["token_strs"])
        assert made["max_model_len"] == 4096
        assert server.backend.vocabulary.special["<|end|>"] in made["tokens"]
        back = httpx.post(f"{root}/detokenize", json={"tokens": made["tokens"]}).json()
        assert back == {"prompt": text, "content": text}
        chat = httpx.post(f"{root}/tokenize", json={"messages": [{"role": "user", "content": text}]}).json()
        assert server.backend.vocabulary.special["<|end|>"] not in chat["tokens"]
        for path, body in (
            ("tokenize", {}),
            ("tokenize", {"prompt": "x", "messages": [{"role": "user"}]}),
            ("detokenize", {"tokens": [10**9]}),
            ("detokenize", {"tokens": [-1]}),
        ):
            assert httpx.post(f"{root}/{path}", json=body).status_code == 400


def test_completions_take_texts_and_tokens_and_tell_probabilities() -> None:
    with serving("one two", "one two", "one two") as server:
        url = f"{server.client.base_url}completions"
        tokens = server.backend.tokenizer.encode("Count:").ids
        asked = {"model": "recorded", "prompt": ["Count:", "Go:"], "max_tokens": 50, "echo": True}
        made = httpx.post(url, json=asked).json()
        assert [choice["text"] for choice in made["choices"]] == ["Count:one two", "Go:one two"]
        asked = {"model": "recorded", "prompt": tokens, "max_tokens": 50, "logprobs": 1}
        [choice] = httpx.post(url, json=asked).json()["choices"]
        assert "".join(choice["logprobs"]["tokens"]) == choice["text"]
        assert choice["logprobs"]["text_offset"][0] == 0
        for wrong in ({"prompt": []}, {"prompt": [10**9]}, {"prompt": "x", "suffix": "y"}, {"prompt": [[]]}):
            answer = httpx.post(url, json={"model": "recorded", **wrong})
            assert answer.status_code == 400, wrong


def test_logprobs_of_a_chat_stand_beside_its_tokens(http: httpx.Client) -> None:
    [choice] = http.post("/chat/completions", json=_body(logprobs=True, top_logprobs=2)).json()["choices"]
    assert "".join(each["token"] for each in choice["logprobs"]["content"]) == "Hello."
    assert all(each["bytes"] and each["logprob"] <= 0 for each in choice["logprobs"]["content"])
