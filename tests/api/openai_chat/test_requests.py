from typing import Any

import pytest

from larksong.api.errors import ApiError
from larksong.api.openai_chat.requests import call_policy, refusal, turn_request
from larksong.api.openai_chat.schemas import ChatRequest
from larksong.api.turns.chat_template import TemplateRefusal
from larksong.engine.backends.base import Sampling
from larksong.engine.backends.errors import PromptTooLong
from larksong.grammars import CallPolicy, wire_format
from larksong.grammars.errors import DuplicateTool, GrammarsError, InvalidSchema, UnknownFormat

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("f", "g")]


def _request(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate(
        {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    )


def _call(arguments: Any) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}


NAMED = {"type": "function", "function": {"name": "g"}}


@pytest.mark.parametrize(
    ("fields", "policy"),
    [
        ({}, None),
        ({"tools": []}, None),
        ({"tools": TOOLS, "tool_choice": "none"}, None),
        ({"tools": TOOLS}, CallPolicy()),
        ({"tools": TOOLS, "tool_choice": "auto"}, CallPolicy()),
        ({"tools": TOOLS, "tool_choice": "required"}, CallPolicy(required=True, min_calls=1)),
        ({"tools": TOOLS, "parallel_tool_calls": False}, CallPolicy(max_calls=1)),
        ({"tools": TOOLS, "parallel_tool_calls": True}, CallPolicy()),
        ({"tools": TOOLS, "min_tool_calls": 2}, CallPolicy(required=True, min_calls=2)),
        ({"tools": TOOLS, "max_tool_calls": 3}, CallPolicy(max_calls=3)),
        ({"tools": TOOLS, "tool_choice": NAMED}, CallPolicy(True, 1, 1, "g")),
        ({"tools": TOOLS, "tool_choice": NAMED, "min_tool_calls": 2}, CallPolicy(True, 2, 2, "g")),
        ({"tools": TOOLS, "tool_choice": NAMED, "max_tool_calls": 4}, CallPolicy(True, 1, 4, "g")),
    ],
)
def test_the_number_and_choice_of_calls_becomes_a_policy(
    fields: dict[str, Any], policy: CallPolicy | None
) -> None:
    assert call_policy(_request(**fields)) == policy


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required"}, "tools"),
        ({"tools": [], "tool_choice": "required"}, "tools"),
        ({"tools": [], "tool_choice": NAMED}, "tools"),
        ({"tools": [], "min_tool_calls": 1}, "tools"),
        ({"tools": TOOLS[:1], "tool_choice": NAMED}, "tool_choice.function.name"),
        ({"tools": TOOLS, "min_tool_calls": 3, "max_tool_calls": 2}, "min_tool_calls"),
        ({"tools": TOOLS, "min_tool_calls": 2, "parallel_tool_calls": False}, "min_tool_calls"),
        ({"tools": TOOLS, "min_tool_calls": 1, "tool_choice": "none"}, "min_tool_calls"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        call_policy(_request(**fields))
    assert caught.value.param == param


def test_messages_become_what_templates_read() -> None:
    request = _request(
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
                ],
            },
            {"role": "tool", "content": [{"type": "text", "text": "ok"}], "tool_call_id": "1"},
        ]
    )
    assert turn_request(request, wire_format("hermes")).messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "ab"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [_call({"x": 1})],
        },
        {"role": "tool", "content": "ok", "tool_call_id": "1"},
    ]


@pytest.mark.parametrize(
    ("arguments", "read"),
    [("", {}), (None, {}), ("{}", {}), ({"a": 1}, {"a": 1}), ('{"a": [1]}', {"a": [1]})],
)
def test_arguments_in_the_history_become_objects(arguments: Any, read: dict[str, Any]) -> None:
    request = _request(messages=[{"role": "assistant", "tool_calls": [_call(arguments)]}])
    [message] = turn_request(request, wire_format("hermes")).messages
    assert message["tool_calls"][0]["function"]["arguments"] == read


def test_a_tool_without_parameters_takes_none() -> None:
    request = _request(tools=[{"type": "function", "function": {"name": "f"}}])
    [tool] = turn_request(request, wire_format("hermes")).tools
    assert tool.parameters == {"type": "object", "properties": {}}


def test_sampling_defaults_are_openais() -> None:
    assert turn_request(_request(), wire_format("hermes")).sampling == Sampling()
    request = _request(temperature=0, top_p=0.5, top_k=-1, min_p=0.1, seed=7)
    assert turn_request(request, wire_format("hermes")).sampling == Sampling(0.0, 0, 0.5, 0.1, 7)


def test_max_completion_tokens_comes_before_max_tokens() -> None:
    request = _request(max_tokens=10, max_completion_tokens=20)
    assert turn_request(request, wire_format("hermes")).max_tokens == 20


def test_the_format_of_a_request_comes_before_the_servers() -> None:
    default = wire_format("hermes")
    assert turn_request(_request(), default).wire_format is default
    assert turn_request(_request(tool_format="qwen3_coder"), default).wire_format.name == "qwen3_coder"


@pytest.mark.parametrize(
    ("error", "param", "code"),
    [
        (UnknownFormat("x", ("hermes",)), "tool_format", "unknown_format"),
        (DuplicateTool("two", tool="f"), "tools[2].function.name", "duplicate_tool"),
        (
            InvalidSchema("bad", tool="g", pointer="/properties/a/type"),
            "tools[1].function.parameters#/properties/a/type",
            "invalid_schema",
        ),
        (InvalidSchema("bad", tool="g", pointer=""), "tools[1].function.parameters", "invalid_schema"),
        (PromptTooLong(10, 5), "messages", "context_length_exceeded"),
        (TemplateRefusal("no"), "messages", "invalid_value"),
        (RecursionError(), "tools", "invalid_value"),
    ],
)
def test_a_refusal_names_the_field(error: Any, param: str, code: str) -> None:
    refused = refusal(error, _request(tools=[*TOOLS, TOOLS[0]]))
    assert (refused.status, refused.param, refused.code) == (400, param, code)


def test_every_kind_of_refusal_has_its_field() -> None:
    for kind in GrammarsError.__subclasses__():
        assert refusal(kind("no", ()) if kind is UnknownFormat else kind("no"), _request()).status == 400
