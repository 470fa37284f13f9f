"""Large bodies: read as small ones are, refused at their first fault, and never in the way of other requests."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from larksong.api.anthropic.schemas import CountRequest, MessagesRequest
from larksong.api.openai_chat.schemas import ChatRequest
from larksong.api.raw_text.completions import CompletionRequest
from larksong.api.raw_text.tokens import DetokenizeRequest, TokenizeRequest
from larksong.api.responses.schemas import ResponsesRequest
from tests.api.serving import Served, serving

REQUESTS: list[type[BaseModel]] = [
    *(ChatRequest, CompletionRequest, MessagesRequest, CountRequest, ResponsesRequest),
    *(TokenizeRequest, DetokenizeRequest),
]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("Hello. " * 40, format="hermes", tokens_per_second=100) as server:
        yield server


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=str(served.client.base_url), timeout=60) as client:
        yield client


def _collections(schema: Any) -> Iterator[dict[str, Any]]:
    """All lists and mappings of pydantic's inner schema whose entries can be wrong."""
    if isinstance(schema, dict):
        entries = schema.get("items_schema") or schema.get("values_schema")
        if schema.get("type") in ("list", "dict") and entries is not None and entries["type"] != "any":
            yield schema
        for value in schema.values():
            yield from _collections(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _collections(each)


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda kind: kind.__name__)
def test_every_list_of_a_request_is_refused_at_its_first_wrong_entry(request_type: type[BaseModel]) -> None:
    found = list(_collections(request_type.__pydantic_core_schema__))
    assert found
    assert all(each.get("fail_fast") for each in found), [each for each in found if not each.get("fail_fast")]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        (
            {"messages": [{"role": "robot", "content": [{"type": "x"}] * 3}] * 100_000},
            "messages[0].content[0].type",
        ),
        ({"stop": [1] * 1_000_000}, "stop[0]"),
        ({"logit_bias": {str(id): "x" for id in range(300_000)}}, "logit_bias.0"),
    ],
)
def test_a_million_faults_are_one_error(http: httpx.Client, changes: dict[str, Any], param: str) -> None:
    body = {"model": "recorded", "messages": [{"role": "user", "content": "hi"}], **changes}
    text = json.dumps(body)
    times: list[float] = []
    while len(times) < 3 and min(times, default=5) >= 5:  # other work may hold one up
        begin = time.monotonic()
        answer = http.post("/chat/completions", content=text, headers={"content-type": "application/json"})
        times.append(time.monotonic() - begin)
    assert min(times) < 5  # to report them all took ten times as long
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


_BLANKS = b" " * (1 << 19)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b'{"model": "m", "model": "none"}', 400, "Missing required parameter: 'messages'."),
        (
            b'{"model": "recorded", "messages": [{"role": "user", "content": "\\ud800"}], "max_tokens": 1}',
            200,
            None,
        ),
        (b'{"model": "recorded", "messages": [], "x": NaN}', 400, None),
        (b'{"model": "recorded", "messages": "\xff"}', 400, "The body is not JSON that can be read."),
        (b'{"model": "recorded"', 400, "The request body is not valid JSON: Expecting ',' delimiter."),
        (b'{"x": ' + b"[" * 100_000, 400, "The body is not JSON that can be read."),
        (b'{"seed": ' + b"9" * 5_000 + b"}", 400, "The body is not JSON that can be read."),
    ],
)
def test_a_large_body_is_read_as_a_small_one(
    http: httpx.Client, body: bytes, status: int, message: str | None
) -> None:
    answers = [
        http.post("/chat/completions", content=text, headers={"content-type": "application/json"})
        for text in (body, _BLANKS + body)
    ]
    assert [answer.status_code for answer in answers] == [status, status]
    if status != 200:
        small, large = (answer.json() for answer in answers)
        assert small == large
        assert message is None or small["error"]["message"] == message


def test_a_stream_goes_on_while_a_long_prompt_is_encoded(served: Served, http: httpx.Client) -> None:
    """300,000 words, a second or more of encoding, which once stopped all streams."""
    times: list[float] = []
    begun = threading.Event()

    def read() -> None:
        stream = served.client.chat.completions.create(
            model="recorded", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        for _ in stream:
            times.append(time.monotonic())
            begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    begun.wait(10)
    begin = time.monotonic()
    body = {"model": "recorded", "messages": [{"role": "user", "content": "hello world " * 150_000}]}
    answer = http.post("/chat/completions", json=body)
    took = time.monotonic() - begin
    reader.join()
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert max(pauses) < took / 2
