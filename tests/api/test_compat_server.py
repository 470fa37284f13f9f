"""Compat mode over HTTP: the bytes of tabbyAPI's end parse, streamed and whole, under OpenAI's finish reasons."""

import json
from typing import Any

import openai
import pytest
from typer.testing import CliRunner

from larksong.api.cli import app
from larksong.api.turns.compat import end_parse, split
from larksong.api.turns.compat_formats import compat_formats
from larksong.api.turns.compat_turn import SCHEMA_BLIND
from larksong.grammars import wire_format
from tests.api.serving import Served, serving
from tests.support.markers import MARKERS

PARAMETERS = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "days": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["code"],
}
TOOLS = [{"type": "function", "function": {"name": "book", "parameters": PARAMETERS}}]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("book", {"code": "0012", "days": 3, "city": "São Paulo 😀"}),
    ("book", {"code": "123", "city": "  indented  "}),
]


def ask(server: Served, **changes: Any) -> Any:
    body: dict[str, Any] = {"tools": TOOLS, "compat": "tabbyapi", **changes}
    return server.client.chat.completions.create(
        model="recorded",
        messages=[{"role": "user", "content": "hi"}],
        stream=bool(body.pop("stream", False)),
        extra_body=body,
    )


def of_stream(chunks: Any) -> tuple[str, list[tuple[str, str]], str, list[str]]:
    content, calls, finish, said = "", list[tuple[str, str]](), "", list[str]()
    for chunk in chunks:
        (choice,) = chunk.choices
        content += choice.delta.content or ""
        for call in choice.delta.tool_calls or ():
            if call.id:
                assert call.index == len(calls)
                calls.append((call.function.name, ""))
            name, written = calls[call.index]
            calls[call.index] = name, written + call.function.arguments
        finish = choice.finish_reason or finish
        said = (choice.model_extra or {}).get("larksong", {}).get("compat", said)
    return content, calls, finish, said


def of_whole(answer: Any) -> tuple[str, list[tuple[str, str]], str, list[str]]:
    (choice,) = answer.choices
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    said = (choice.model_extra or {}).get("larksong", {}).get("compat", [])
    return choice.message.content or "", calls, choice.finish_reason, said


@pytest.mark.parametrize("name", compat_formats())
@pytest.mark.parametrize("markers", [(), MARKERS], ids=["markers in letters", "markers by id"])
def test_the_answer_has_the_bytes_of_the_end_parse_streamed_and_whole(
    name: str, markers: tuple[str, ...]
) -> None:
    text = wire_format(name).render_calls(CALLS)
    content, _, tool = split(name, text)
    expected = [(found.name, found.arguments) for found in end_parse(name, tool)]
    assert len(expected) == (2 if name != "mistral_v11" else len(expected))
    with serving(text, format=name, markers=markers) as server:
        whole = of_whole(ask(server))
        assert whole == of_stream(ask(server, stream=True))
        assert whole == (content, expected, "tool_calls", [SCHEMA_BLIND])
        # Without the field the types are the schemas'.
        typed = of_whole(ask(server, compat=None))
        assert [json.loads(written) for _, written in typed[1]] == [arguments for _, arguments in CALLS]


def test_a_text_that_looks_like_a_number_becomes_one() -> None:
    text = wire_format("qwen3_coder").render_calls(CALLS[1:])
    with serving(text, compat=True) as server:
        _, calls, _, _ = of_whole(ask(server, compat=None))
        assert calls == [("book", '{"code": 123, "city": "indented"}')]
        _, calls, _, said = of_whole(ask(server, compat="none"))
        assert calls == [("book", '{"code": "123", "city": "  indented  "}')]
        assert said == []


@pytest.mark.parametrize("stream", [False, True])
def test_finish_reasons_stay_openais(stream: bool) -> None:
    read = of_stream if stream else of_whole
    text = wire_format("qwen3_coder").render_calls(CALLS)
    with serving(text) as server:
        content, calls, finish, said = read(ask(server, stream=stream, max_tokens=30))
        assert (finish, len(calls), said) == ("length", 0, [])
    with serving("Use <think> or not") as server:  # nothing was called
        content, calls, finish, _ = read(ask(server, stream=stream, tools=None))
        assert (content, calls, finish) == ("Use ", [], "stop")


def test_with_tool_choice_none_the_tags_of_calls_are_text() -> None:
    text = "Write <tool_call> before a call."
    with serving(text) as server:
        assert of_whole(ask(server, tool_choice="none"))[:3] == (text, [], "stop")
        # Without tools they are tags all the same, as in tabbyAPI, and what follows is no answer.
        assert of_whole(ask(server, tools=None))[:3] == ("Write ", [], "stop")


@pytest.mark.parametrize("flag", [False, True])
def test_other_formats_are_refused(flag: bool) -> None:
    with serving("Hi", compat=flag) as server:
        changes = {"compat": None} if flag else {}
        with pytest.raises(openai.BadRequestError) as refused:
            ask(server, tool_format="hermes", **changes)
        body: Any = refused.value.body
        assert body["param"] == "compat"
        assert "qwen3_coder" in body["message"]
        with pytest.raises(openai.BadRequestError):
            ask(server, compat="tabby")
        assert of_whole(ask(server, tool_format="hermes", compat="none"))[0] == "Hi"


def test_the_server_does_not_start_in_compat_mode_with_another_format() -> None:
    result = CliRunner().invoke(app, ["serve", "--compat", "tabbyapi", "--format", "hermes"])
    assert result.exit_code == 2
    assert "qwen3_coder" in result.output
    assert CliRunner().invoke(app, ["serve", "--compat", "other"]).exit_code == 2
