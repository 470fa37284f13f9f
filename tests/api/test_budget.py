"""finish_within_budget over HTTP: calls that are complete, an honest finish_reason, refusals with the number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from time import process_time
from typing import Any

import openai
import pytest
from jsonschema import validate

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.turns.model import Model
from larksong.grammars import wire_format
from tests.api.serving import Recorded, Served, serving

PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}
TOOLS = [{"type": "function", "function": {"name": "write", "parameters": PARAMETERS}}]
ARGUMENTS = {"path": "a.py", "content": "print('hello')\n" * 40}


@pytest.fixture(scope="module", params=["hermes", "qwen3_coder"])
def server(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serving(
        wire_format(request.param).render_call("write", ARGUMENTS),
        format=request.param,
        markers=("<tool_call>", "</tool_call>"),
    ) as served:
        yield served


def ask(server: Served, *, stream: bool, **changes: Any) -> Any:
    body: dict[str, Any] = {
        "tools": TOOLS,
        "tool_choice": "required",
        "finish_within_budget": True,
        **changes,
    }
    return server.client.chat.completions.create(
        model="recorded", messages=[{"role": "user", "content": "hi"}], stream=stream, extra_body=body
    )


def test_a_call_that_does_not_fit_is_complete_and_named(server: Served) -> None:
    answer = ask(server, stream=False, max_tokens=90)
    (choice,) = answer.choices
    assert choice.finish_reason == "length"
    assert choice.model_extra == {"larksong": {"finished_within_budget": [0]}}
    assert answer.usage.completion_tokens < 90
    (call,) = choice.message.tool_calls
    arguments = json.loads(call.function.arguments)
    validate(arguments, PARAMETERS)
    assert arguments["path"] == "a.py"
    assert 0 < len(arguments["content"]) < len(ARGUMENTS["content"])


def test_a_stream_names_the_calls_with_the_finish_reason(server: Served) -> None:
    chunks = list(ask(server, stream=True, max_tokens=90))
    *before, last = chunks
    assert last.choices[0].finish_reason == "length"
    assert last.choices[0].model_extra == {"larksong": {"finished_within_budget": [0]}}
    assert not any("larksong" in (chunk.choices[0].model_extra or {}) for chunk in before)
    fragments = [
        call.function.arguments for chunk in before for call in chunk.choices[0].delta.tool_calls or ()
    ]
    validate(json.loads("".join(fragments)), PARAMETERS)


def test_a_call_that_fits_says_nothing(server: Served) -> None:
    (choice,) = ask(server, stream=False, max_tokens=4000).choices
    assert choice.finish_reason == "tool_calls"
    assert not choice.model_extra
    assert json.loads(choice.message.tool_calls[0].function.arguments) == ARGUMENTS


def test_without_it_a_call_is_an_honest_prefix(server: Served) -> None:
    (choice,) = ask(server, stream=False, max_tokens=60, finish_within_budget=False).choices
    assert choice.finish_reason == "length"
    assert not choice.model_extra
    with pytest.raises(ValueError, match="Unterminated string"):
        json.loads(choice.message.tool_calls[0].function.arguments)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "write"}}], ids=["required", "named"]
)
@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_too_few_tokens_are_refused_with_the_number_that_is_needed(
    server: Served, choice: Any, field: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(server, stream=True, tool_choice=choice, **{field: 5})
    assert refused.value.param == field
    told = re.search(r"at least (\d+) tokens", str(refused.value))
    assert told is not None
    needed = int(told[1])
    with pytest.raises(openai.BadRequestError):
        ask(server, stream=False, tool_choice=choice, **{field: needed - 1})
    answer = ask(server, stream=False, tool_choice=choice, **{field: needed})
    validate(json.loads(answer.choices[0].message.tool_calls[0].function.arguments), PARAMETERS)


def test_where_the_context_ends_first_the_messages_are_too_long(server: Served) -> None:
    room = 4096 - len(server.backend.tokenizer.encode("x" * 100).ids)
    filler = " x" * (room - 20)
    with pytest.raises(openai.BadRequestError) as refused:
        server.client.chat.completions.create(
            model="recorded",
            messages=[{"role": "user", "content": filler}],
            extra_body={"tools": TOOLS, "tool_choice": "required", "finish_within_budget": True},
        )
    assert (refused.value.param, refused.value.code) == ("messages", "context_length_exceeded")


def test_auto_is_never_refused(server: Served) -> None:
    (choice,) = ask(server, stream=False, tool_choice="auto", max_tokens=1).choices
    assert choice.finish_reason == "length"
    assert choice.model_extra == {"larksong": {"finished_within_budget": []}}
    assert choice.message.tool_calls is None


def test_text_without_tools_is_cut_as_ever(server: Served) -> None:
    (choice,) = ask(server, stream=False, tools=None, tool_choice=None, max_tokens=3).choices
    assert choice.finish_reason == "length"
    assert not choice.model_extra


def test_the_server_may_have_it_on_and_a_request_may_turn_it_off() -> None:
    backend = Recorded(wire_format("hermes").render_call("write", ARGUMENTS))
    model = Model(backend, wire_format("hermes"), finish_within_budget=True)
    with BackgroundServer(create_app([model])) as background:
        client = openai.OpenAI(base_url=background.url, api_key="none", max_retries=0)
        served = Served(client, model, backend)
        for said, named in ((None, True), (True, True), (False, False)):
            (choice,) = ask(served, stream=False, max_tokens=150, finish_within_budget=said).choices
            assert ("larksong" in (choice.model_extra or {})) == named


def test_an_answer_that_is_far_too_long_is_refused_at_once(server: Served) -> None:
    long = {"type": "object", "properties": {"a": {"type": "string", "minLength": 10**7}}, "required": ["a"]}
    tools = [{"type": "function", "function": {"name": "write", "parameters": long}}]
    begin = process_time()
    with pytest.raises(openai.BadRequestError, match="needs too many tokens"):
        ask(server, stream=False, tools=tools, max_tokens=40)
    assert process_time() - begin < 60  # to write the answer takes minutes


def test_a_json_answer_that_does_not_fit_is_complete_and_says_length() -> None:
    written = json.dumps({"path": "a.py", "content": "word " * 200})
    wanted = {"type": "json_schema", "json_schema": {"name": "file", "schema": PARAMETERS}}
    with serving(written, written) as served:
        whole, cut = (
            ask(served, stream=False, tools=None, tool_choice=None, response_format=wanted, max_tokens=limit)
            for limit in (4000, 60)
        )
    assert whole.choices[0].finish_reason == "stop"
    assert json.loads(whole.choices[0].message.content) == json.loads(written)
    assert cut.choices[0].finish_reason == "length"
    answer = json.loads(cut.choices[0].message.content)
    validate(answer, PARAMETERS)
    assert 0 < len(answer["content"]) < 200
