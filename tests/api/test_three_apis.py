"""Chat completions, Anthropic's messages and OpenAI's responses: one turn, three shapes, the same calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.turns.accumulate import accumulate
from larksong.api.turns.model import Model
from larksong.engine.backends.replay import ReplayBackend
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import Tool, wire_format
from tests.support.cuts import turns
from tests.support.examples import examples
from tests.support.tokenizers import EOS, byte_level_tokenizer

FORMATS = ["qwen3_coder", "hermes", "harmony"]


@dataclass
class Spoken:
    """A server whose model says `text` to everything."""

    url: str = ""
    text: str = ""


@pytest.fixture(scope="module", params=FORMATS)
def spoken(request: pytest.FixtureRequest) -> Iterator[tuple[str, Spoken]]:
    speech = Spoken()
    tokenizer = byte_level_tokenizer()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[EOS])
    backend = ReplayBackend(tokenizer, vocabulary, lambda _: speech.text, name="recorded")
    with BackgroundServer(create_app([Model(backend, wire_format(request.param))])) as server:
        speech.url = server.url
        yield request.param, speech


@dataclass
class Told:
    """What a client of any of the APIs knows at the end."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    fragments: list[list[str]] = field(default_factory=list)
    cut: bool = False


def _events(url: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    with httpx.stream("POST", url, json={"model": "recorded", "stream": True, **body}) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
        assert answer.status_code == 200, lines
    return [json.loads(line) for line in lines if line != "[DONE]"]


def _chat(url: str, tools: list[Tool], limit: int) -> Told:
    listed = [
        {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}} for tool in tools
    ]
    body = {"messages": [{"role": "user", "content": "Go."}], "tools": listed, "max_tokens": limit}
    chunks = _events(f"{url}/chat/completions", body)
    told = Told()
    for chunk in chunks:
        for delta in chunk["choices"][0]["delta"].get("tool_calls", ()):
            if "id" in delta:
                told.fragments.append([])
            else:
                told.fragments[delta["index"]].append(delta["function"]["arguments"])
    found = accumulate(chunks)
    [message] = found.messages
    told.text = message["content"] or ""
    told.reasoning = message.get("reasoning_content", "")
    told.calls = [
        (call["function"]["name"], "".join(pieces))
        for call, pieces in zip(message.get("tool_calls", ()), told.fragments, strict=True)
    ]
    told.cut = found.finish_reasons == ["length"]
    return told


def _messages(url: str, tools: list[Tool], limit: int) -> Told:
    listed = [{"name": tool.name, "input_schema": dict(tool.parameters)} for tool in tools]
    body = {"messages": [{"role": "user", "content": "Go."}], "tools": listed, "max_tokens": limit}
    told, names = Told(), {}
    for event in _events(f"{url}/messages", body):
        match event:
            case {
                "type": "content_block_start",
                "index": index,
                "content_block": {"type": "tool_use"} as block,
            }:
                names[index] = block["name"]
                told.fragments.append([])
            case {"type": "content_block_delta", "delta": {"partial_json": fragment}}:
                told.fragments[-1].append(fragment)
            case {"type": "content_block_delta", "delta": {"text": text}}:
                told.text += text
            case {"type": "content_block_delta", "delta": {"thinking": text}}:
                told.reasoning += text
            case {"type": "message_delta", "delta": {"stop_reason": reason}}:
                told.cut = reason == "max_tokens"
    told.calls = list(zip(names.values(), map("".join, told.fragments), strict=True))
    return told


def _responses(url: str, tools: list[Tool], limit: int) -> Told:
    listed = [{"type": "function", "name": tool.name, "parameters": tool.parameters} for tool in tools]
    body = {"input": "Go.", "tools": listed, "max_output_tokens": limit}
    told, names = Told(), []
    events = _events(f"{url}/responses", body)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        match event["type"]:
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                names.append(event["item"]["name"])
                told.fragments.append([])
            case "response.function_call_arguments.delta":
                told.fragments[-1].append(event["delta"])
            case "response.function_call_arguments.done":
                assert event["arguments"] == "".join(told.fragments[-1])
            case "response.output_text.delta":
                told.text += event["delta"]
            case "response.reasoning_text.delta":
                told.reasoning += event["delta"]
            case "response.incomplete":
                told.cut = True
    told.calls = list(zip(names, map("".join, told.fragments), strict=True))
    return told


@given(data=st.data(), before=st.sampled_from(["", "I look.\n", "<think>Well, é😀</think>\n"]))
@examples(10)
def test_the_streams_of_the_three_apis_carry_the_same_calls(
    spoken: tuple[str, Spoken], data: st.DataObject, before: str
) -> None:
    format, server = spoken
    tools, text = data.draw(turns(format))
    server.text = text if format == "harmony" else before + text
    limit = data.draw(st.sampled_from([4000, 4000, 12, 40]))
    chat, messages, responses = (each(server.url, tools, limit) for each in (_chat, _messages, _responses))
    assert chat.calls == messages.calls == responses.calls
    assert chat.fragments == messages.fragments == responses.fragments
    assert chat.cut == messages.cut == responses.cut
    assert chat.reasoning == messages.reasoning == responses.reasoning
    assert messages.text == responses.text
    # Blank text alone makes no block.
    assert chat.text.strip() == messages.text.strip()
    if not chat.cut:
        for _, arguments in chat.calls:
            assert isinstance(json.loads(arguments), dict)
