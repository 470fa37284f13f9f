"""The real server's responses, asked for by the openai package; the model replaced by recorded text."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest

from larksong.grammars import wire_format
from tests.api.serving import serving
from tests.clients.round_trip import (
    ANSWER,
    ARGUMENTS,
    BOOKED,
    CALL,
    FORMATS,
    HALF_KEPT,
    LEAD,
    MARKERS,
    RESULT,
    SCHEMA,
    THINKING,
    THOUGHT,
    WARNING,
    Weather,
    check_growth,
    check_second_prompt,
    kinds,
    weather,
)

TOOL: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather.",
    "parameters": SCHEMA,
    "strict": True,
}


def ask(**fields: Any) -> Any:
    return {"model": "recorded", "input": "How is São Paulo?", **fields}


def answered(response: Any) -> list[Any]:
    """The conversation after the call's result: what came goes back as it is."""
    results = [
        {"type": "function_call_output", "call_id": item.call_id, "output": RESULT}
        for item in response.output
        if item.type == "function_call"
    ]
    return [{"role": "user", "content": "How is São Paulo?"}, *response.output, *results]


@pytest.mark.parametrize("format", FORMATS)
def test_create(format: str) -> None:
    with weather(format) as server:
        made = server.client.responses.create(**ask(tools=[TOOL]))
        assert made.status == "completed"
        [call] = made.output
        assert call.type == "function_call"
        assert (call.name, json.loads(call.arguments)) == CALL
        last = server.client.responses.create(**ask(tools=[TOOL], input=answered(made)))
        assert last.output_text == ANSWER
        check_second_prompt(server)


@pytest.mark.parametrize("format", FORMATS)
def test_the_stream_helper_sees_text_and_arguments_grow(format: str) -> None:
    texts: list[str] = []
    pieces: list[str] = []
    done: list[Any] = []
    with (
        weather(format, before=LEAD) as server,
        server.client.responses.stream(**ask(tools=[TOOL])) as stream,
    ):
        for event in stream:
            if event.type == "response.output_text.delta":
                texts.append(event.delta)
            elif event.type == "response.function_call_arguments.delta":
                pieces.append(event.delta)
            elif event.type == "response.function_call_arguments.done":
                done.append(event)
        response = stream.get_final_response()
    check_growth(texts, pieces)
    assert [(event.name, json.loads(event.arguments)) for event in done] == [CALL]
    message, call = response.output
    assert message.type == "message"
    assert call.type == "function_call"
    assert call.parsed_arguments == ARGUMENTS
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_a_stream_has_the_events_that_openai_documents_in_their_order() -> None:
    text = THINKING + LEAD + wire_format("hermes").render_calls([CALL, CALL])
    with serving(text, format="hermes", markers=MARKERS) as server:
        events = list(server.client.responses.create(**ask(tools=[TOOL], stream=True)))

    def item(name: str, *around: str) -> list[str]:
        parts = [f"{name}.delta", f"{name}.done"]
        inner = ["content_part.added", *parts, "content_part.done"] if "part" in around else parts
        return ["output_item.added", *inner, "output_item.done"]

    assert kinds(event.type.removeprefix("response.") for event in events) == [
        *("created", "in_progress"),
        *item("reasoning_text", "part"),
        *item("output_text", "part"),
        *item("function_call_arguments"),
        *item("function_call_arguments"),
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.output_index for event in events if event.type == "response.output_item.added"] == [
        0,
        1,
        2,
        3,
    ]
    opened = [event.item for event in events if event.type == "response.output_item.added"]
    closed = [event.item for event in events if event.type == "response.output_item.done"]
    assert [each.id for each in opened] == [each.id for each in closed]
    assert events[-1].type == "response.completed"
    assert events[-1].response.output == closed


@pytest.mark.parametrize("include", [None, ["reasoning.encrypted_content"]])
def test_reasoning_goes_back_with_the_call(include: Any) -> None:
    text = THINKING + wire_format("hermes").render_calls([CALL])
    with serving(text, ANSWER, format="hermes", markers=MARKERS) as server:
        made = server.client.responses.create(**ask(tools=[TOOL], include=include))
        reasoning = made.output[0]
        assert reasoning.type == "reasoning"
        assert reasoning.content is not None
        assert reasoning.content[0].text == THOUGHT
        items = [item.to_dict() for item in made.output]
        if include:
            items[0]["content"] = None  # as Codex gives it back
            assert reasoning.encrypted_content
        else:
            assert reasoning.encrypted_content is None
        output = {"type": "function_call_output", "call_id": items[1]["call_id"], "output": RESULT}
        history = [{"role": "user", "content": "How is São Paulo?"}, *items, output]
        server.client.responses.create(**ask(tools=[TOOL], input=history))
        check_second_prompt(server)


def test_parse_with_a_pydantic_answer() -> None:
    with serving(json.dumps(ARGUMENTS)) as server:
        made = server.client.responses.parse(**ask(text_format=Weather))
        assert made.output_parsed == Weather(**ARGUMENTS)
        # The grammar keeps to the schema: other text is refused.
        with serving("No.") as other, pytest.raises(openai.InternalServerError):
            other.client.responses.parse(**ask(text_format=Weather))


@pytest.mark.parametrize("form", ["text", "json_object"])
def test_plain_forms_of_the_answer(form: str) -> None:
    with serving('{"a": 1}') as server:
        made = server.client.responses.create(**ask(text={"format": {"type": form}}))
    assert made.output_text == '{"a": 1}'


def test_tool_choice_and_parallel_calls_are_kept_by_the_mask() -> None:
    one, two = (wire_format("hermes").render_calls([CALL] * count) for count in (1, 2))
    other = {**TOOL, "name": "other"}
    allowed = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "get_weather"}],
    }
    named = {"type": "function", "name": "get_weather"}
    good: list[tuple[str, Any]] = [
        (two, {}),
        (one, {"parallel_tool_calls": False}),
        (one, {"tool_choice": "required"}),
        (one, {"tool_choice": named}),
        (one, {"tool_choice": allowed}),
        ("Hi.", {"tool_choice": "none"}),
    ]
    bad: list[tuple[str, Any]] = [
        (two, {"parallel_tool_calls": False}),
        ("Hi.", {"tool_choice": "required"}),
        ("Hi.", {"tool_choice": named}),
        ("Hi.", {"tool_choice": allowed}),
        (wire_format("hermes").render_calls([("other", ARGUMENTS)]), {"tool_choice": allowed}),
    ]
    with serving(*(text for text, _ in good + bad), format="hermes") as server:
        for text, fields in good:
            made = server.client.responses.create(**ask(tools=[TOOL, other], **fields))
            assert sum(item.type == "function_call" for item in made.output) == text.count("</tool_call>")
        for _, fields in bad:
            with pytest.raises(openai.InternalServerError):
                server.client.responses.create(**ask(tools=[TOOL, other], **fields))


def test_a_response_cut_short_is_incomplete() -> None:
    text = wire_format("hermes").render_calls([CALL])
    with serving(text, format="hermes") as server:
        limit = len(server.tokens(text)) - 12
        made = server.client.responses.create(**ask(tools=[TOOL], max_output_tokens=limit))
        events = list(
            server.client.responses.create(**ask(tools=[TOOL], max_output_tokens=limit, stream=True))
        )
    assert made.status == "incomplete"
    assert made.incomplete_details is not None
    assert made.incomplete_details.reason == "max_output_tokens"
    [call] = made.output
    assert call.type == "function_call"
    assert call.status == "incomplete"
    assert json.dumps(ARGUMENTS, ensure_ascii=False).startswith(call.arguments)
    assert events[-1].type == "response.incomplete"


def test_nothing_is_stored_and_that_is_said() -> None:
    with serving("Hi.") as server:
        made = server.client.responses.create(**ask(store=True))
        assert made.to_dict()["store"] is False
        assert (made.model_extra or {})["larksong"] == {"stored": False}
        with pytest.raises(openai.NotFoundError):
            server.client.responses.retrieve(made.id)
        with pytest.raises(openai.BadRequestError, match="stores no responses") as caught:
            server.client.responses.create(**ask(previous_response_id=made.id))
    assert caught.value.param == "previous_response_id"


def test_instructions_and_messages_in_all_their_shapes() -> None:
    call = {
        "type": "function_call",
        "call_id": "1",
        "name": "get_weather",
        "arguments": json.dumps(ARGUMENTS),
    }
    again = {**call, "call_id": "2"}
    parts = [{"type": "input_text", "text": "Rain, "}, {"type": "input_text", "text": "wind"}]
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Hello "}, {"type": "input_text", "text": "you."}],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        call,
        again,
        {"type": "function_call_output", "call_id": "2", "output": "Snow"},
        {"type": "function_call_output", "call_id": "1", "output": parts},
        {"role": "assistant", "content": "It rains."},
        {"role": "user", "content": "Thanks."},
    ]
    with serving("Hi.", format="hermes") as server:
        server.client.responses.create(**ask(instructions="Be brief.", input=items, tools=[TOOL]))
        [prompt] = server.backend.prompts
    texts = ["Be brief.\n\nBe kind.", "Hello you.", "I look.", "Rain, wind", "Snow", "It rains.", "Thanks."]
    places = [prompt.index(text) for text in texts]
    assert places == sorted(places)
    assert prompt.count("I look.") == 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": []}, "input"),
        ({"input": [{"role": "user", "content": "a"}, {"type": "function_call_output", "call_id": "x", "output": ""}]}, "input[1].role"),
        ({"input": [{"type": "function_call", "call_id": "x", "name": "f", "arguments": "{"}]}, "input[0].arguments"),
        ({"input": "word " * 5000}, "input"),
        ({"conversation": "c"}, "conversation"),
        ({"background": True}, "background"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "g"}}, "tool_choice.name"),
        ({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tools"),
        ({"tools": [TOOL, {**TOOL, "name": "g", "parameters": {"type": 3}}]}, "tools[1].parameters#/type"),
        ({"tools": [{"type": "web_search"}, TOOL, TOOL]}, "tools[2].name"),
        ({"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": 3}}}}, "text.format.schema#/type"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ],
)  # fmt: skip
def test_refusals_name_the_field(fields: Any, param: str) -> None:
    with serving("Hi.") as server, pytest.raises(openai.BadRequestError) as caught:
        server.client.responses.create(**ask(extra_body=fields))
    assert caught.value.param == param


def test_hosted_tools_are_left_out_and_functions_of_namespaces_keep_theirs() -> None:
    text = wire_format("hermes").render_calls([CALL])
    inner = {"type": "namespace", "name": "mcp__sky", "description": "Sky.", "tools": [TOOL]}
    patch = {"type": "custom", "name": "apply_patch"}
    with serving(text, format="hermes") as server:
        made = server.client.responses.create(
            **ask(extra_body={"tools": [{"type": "web_search"}, patch, inner]})
        )
    [call] = made.output
    assert call.type == "function_call"
    assert (call.name, call.namespace) == ("get_weather", "mcp__sky")
    assert (made.model_extra or {})["larksong"] == {"left_out_tools": ["web_search", "apply_patch"]}


def test_what_the_grammar_could_not_enforce_is_told_with_the_response() -> None:
    text = wire_format("hermes").render_calls([BOOKED])
    tool = {"type": "function", "name": "book", "parameters": HALF_KEPT, "strict": None}
    with serving(text, format="hermes") as server:
        made = server.client.responses.create(**ask(tools=[tool], store=True))
        with pytest.raises(openai.BadRequestError) as caught:
            server.client.responses.create(**ask(tools=[{**tool, "strict": True}]))
    assert (made.model_extra or {})["larksong"] == {"stored": False, "warnings": [WARNING]}
    assert caught.value.param == "tools[0].parameters#/properties/code/pattern"


def test_a_fault_in_the_stream_is_a_failed_response() -> None:
    with serving("This is no call.", format="hermes") as server:
        events = list(
            server.client.responses.create(**ask(tools=[TOOL], tool_choice="required", stream=True))
        )
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.status == "failed"
    assert last.response.error is not None
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_events_are_named_and_none_says_done() -> None:
    with serving("Hi.") as server:
        answer = httpx.post(f"{server.client.base_url}responses", json=ask(stream=True))
    lines = answer.text.splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert names == [each["type"] for each in data]
    assert names[-1] == "response.completed"
