import json
from typing import Any

import pytest
from pydantic import ValidationError

from larksong.api.errors import ApiError, invalid_request
from larksong.api.openai_chat.schemas import ChatRequest


def _refusal(**changes: Any) -> ApiError:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **changes}
    body = {key: value for key, value in body.items() if value is not ...}
    with pytest.raises(ValidationError) as caught:
        ChatRequest.model_validate(body)
    # FastAPI reports the same errors, each place under "body".
    return invalid_request([{**e, "loc": ("body", *e["loc"])} for e in caught.value.errors()], body)


def _call_in_history(arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": ...}, "model"),
        ({"model": 3}, "model"),
        ({"messages": ...}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0].type",
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}
                ]
            },
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "3"}}]}
                ]
            },
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"tools": {}}, "tools"),
        ({"tools": ["get_weather"]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "web_search", "function": {"name": "f"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"function": {"name": "f", "parameters": "object"}}]}, "tools[0].function.parameters"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function"),
        ({"tool_choice": {"type": "function", "function": {"name": 3}}}, "tool_choice.function.name"),
        ({"min_tool_calls": -1}, "min_tool_calls"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"seed": 2**63}, "seed"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"n": 0}, "n"),
        ({"stop": [3]}, "stop[0]"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"logit_bias": {"1": 101}}, "logit_bias.1"),
        ({"response_format": {"type": "yaml"}}, "response_format"),
    ],
)
def test_the_error_names_the_field(changes: dict[str, Any], param: str) -> None:
    error = _refusal(**changes)
    assert error.param == param
    assert error.status == 400
    assert f"'{param}'" in error.message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"messages": "hi"}, "Invalid 'messages': expected an array, not \"hi\"."),
        ({"temperature": "x" * 99}, "Invalid 'temperature': expected a number, not a string."),
        ({"stop": 3}, "Invalid 'stop': expected a string or an array, not 3."),
        ({"n": 0}, "Invalid 'n': expected 1 or more, not 0."),
        ({"seed": 1.5}, "Invalid 'seed': expected a whole number, not 1.5."),
        ({"stream_options": True}, "Invalid 'stream_options': expected an object, not true."),
        (
            {"response_format": {"type": "xml"}},
            "Invalid 'response_format': its 'type' must be one of 'text', 'json_object', 'json_schema', "
            'not "xml".',
        ),
    ],
)
def test_the_error_says_what_was_expected_in_jsons_words(changes: dict[str, Any], message: str) -> None:
    assert _refusal(**changes).message == message


def test_what_is_not_supported_says_so() -> None:
    assert _refusal(audio={}).code == "unsupported_parameter"


def test_a_missing_field_says_so() -> None:
    assert _refusal(model=...).body == {
        "error": {
            "message": "Missing required parameter: 'model'.",
            "type": "invalid_request_error",
            "param": "model",
            "code": "missing_required_parameter",
        }
    }


@pytest.mark.parametrize(
    "extras",
    [
        {"store": False, "metadata": {"a": 1}, "made_up": [1]},
        {"n": 1, "stop": None, "response_format": {"type": "text"}, "logprobs": False},
        {"tools": None, "tool_choice": None, "max_tokens": None, "stream": None, "temperature": None},
        {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
        {"top_k": -1, "temperature": 0, "top_p": 1},
        {"messages": [{"role": "assistant", "content": None, "tool_calls": None}]},
    ],
)
def test_what_clients_send_is_accepted(extras: dict[str, Any]) -> None:
    ChatRequest.model_validate({"model": "m", "messages": [{"role": "user", "content": ""}], **extras})


def test_the_body_of_an_error_can_always_be_sent() -> None:
    body = ApiError("unknown \ud800").body
    assert json.loads(json.dumps(body)) == body
