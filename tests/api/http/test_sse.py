import json
from collections.abc import AsyncGenerator

import pytest

from larksong.api.errors import ServerFault
from larksong.api.http.sse import event_data, json_line


async def _chunks(fault: Exception | None = None) -> AsyncGenerator[dict[str, object], None]:
    yield {"n": 1}
    if fault is not None:
        raise fault
    yield {"n": 2}


async def test_a_stream_ends_with_done() -> None:
    assert [data async for data in event_data(_chunks())] == [
        b'data: {"n":1}\n\n',
        b'data: {"n":2}\n\n',
        b"data: [DONE]\n\n",
    ]


@pytest.mark.parametrize("fault", [ServerFault("the model is gone"), RuntimeError("a secret")])
async def test_a_fault_becomes_one_error_event_before_done(fault: Exception) -> None:
    first, error, done = [data async for data in event_data(_chunks(fault))]
    assert (first, done) == (b'data: {"n":1}\n\n', b"data: [DONE]\n\n")
    detail = json.loads(error.removeprefix(b"data: "))["error"]
    assert detail["type"] == "server_error"
    assert "secret" not in detail["message"]


async def test_closing_the_events_closes_the_chunks() -> None:
    chunks = _chunks()
    events = event_data(chunks)
    await anext(events)
    await events.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)


def test_no_character_of_a_line_ends_it_for_any_client() -> None:
    text = "a\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029é東🗼"
    line = json_line({"t": text})
    assert line.decode().splitlines() == [line.decode()]
    assert json.loads(line) == {"t": text}
    assert "é東🗼" in line.decode()


def test_lone_surrogates_are_escaped() -> None:
    assert json.loads(json_line({"t": "\ud800"})) == {"t": "\ud800"}
