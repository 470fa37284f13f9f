"""The server beside a bare sse-starlette application that sends the same bytes: `make bench-server`.

Both run in a process of their own, in turn, with the model replaced by recorded text; a third reads 64
streams at once. First as fast as they go: events a second. Then at 30 tokens a second a stream: how late an
event comes, against the pace of its stream.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from rich.console import Console
from rich.table import Table
from sse_starlette import EventSourceResponse

STREAMS = 64
PACE = 30.0  # tokens a second
WORDS = 60
ROUNDS = 9


def _text(call: bool) -> str:
    from larksong.grammars import wire_format

    words = " ".join(f"word{number % 7}, {number}" for number in range(WORDS))
    if not call:
        return words
    return wire_format("hermes").render_calls([("write", {"path": "notes.txt", "content": words})])


_TOOL = {
    "type": "function",
    "function": {
        "name": "write",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
}


def request(call: bool) -> bytes:
    """The request that all streams send."""
    body: dict[str, Any] = {
        "model": "recorded",
        "stream": True,
        "messages": [{"role": "user", "content": "Write it down."}],
    }
    if call:
        body |= {"tools": [_TOOL], "tool_choice": "required"}
    data = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data


def larksong_app(call: bool, pace: float | None) -> FastAPI:
    """The server with recorded text."""
    from larksong.api.server import create_app
    from larksong.api.settings.settings import Settings
    from larksong.api.turns.model import Model
    from larksong.engine.backends.replay import ReplayBackend
    from larksong.engine.vocabulary import Vocabulary
    from larksong.grammars import wire_format
    from tests.support.tokenizers import EOS, byte_level_tokenizer

    tokenizer = byte_level_tokenizer()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[EOS])
    backend = ReplayBackend(tokenizer, vocabulary, [_text(call)], tokens_per_second=pace, name="recorded")
    model = Model(backend, wire_format("hermes"))
    model.warm_up()
    return create_app([model], Settings(max_running=2 * STREAMS, log_level="warning"))


def bare_app(events: Sequence[bytes], pace: float | None) -> FastAPI:
    """What sends these bytes and nothing else."""
    app = FastAPI()

    @app.post("/v1/chat/completions")
    async def stream(body: dict[str, Any]) -> EventSourceResponse:
        async def data() -> Any:
            due = asyncio.get_running_loop().time()
            for event in events:
                due += 0 if pace is None else 1 / pace
                # As the recorded model: every token lets the others run.
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                yield event

        return EventSourceResponse(data(), sep="\n")

    return app


def _serve(kind: str, call: bool, pace: float | None, events: Sequence[bytes], ready: Connection) -> None:
    app = larksong_app(call, pace) if kind == "larksong" else bare_app(events, pace)
    sock = socket.create_server(("127.0.0.1", 0), backlog=4 * STREAMS)
    ready.send(sock.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    server.run(sockets=[sock])


async def read(port: int, sent: bytes) -> tuple[list[float], bytes]:
    """One stream: when each event came, and what."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    times: list[float] = []
    data = b""
    while True:
        piece = await reader.read(1 << 16)
        data += piece
        times += [time.perf_counter()] * piece.count(b"data: ")
        if not piece or data.endswith(b"0\r\n\r\n"):
            break
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    if not data.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(data[:300].decode())
    return times, data


def _events(data: bytes) -> list[bytes]:
    """The events of a chunked response."""
    _, _, body = data.partition(b"\r\n\r\n")
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        found += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return [event + b"\n\n" for event in found.split(b"\n\n") if event.startswith(b"data: ")]


async def _rate(port: int, sent: bytes) -> float:
    """Events a second of all streams together."""
    began = time.perf_counter()
    found = await asyncio.gather(*(read(port, sent) for _ in range(STREAMS)))
    return sum(len(times) for times, _ in found) / (time.perf_counter() - began)


async def _delays(port: int, sent: bytes) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds by which events come later than the pace of their stream, all streams together."""
    found = await asyncio.gather(*(read(port, sent) for _ in range(STREAMS)))
    late = []
    for times, _ in found:
        steady = np.array(times[2:-2])  # the role comes at once, the end with the last token
        offsets = steady - np.arange(len(steady)) / PACE
        late.append(offsets - offsets.min())
    return np.concatenate(late)


class Running:
    """A server in a process of its own."""

    def __init__(self, kind: str, call: bool, pace: float | None, events: Sequence[bytes] = ()) -> None:
        mine, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_serve, args=(kind, call, pace, events, theirs), daemon=True)
        self._process.start()
        self.port: int = mine.recv()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


def measure(call: bool) -> dict[str, Any]:
    """Both servers, both ways; medians of rounds in turn, so that other work meets both."""
    sent = request(call)
    figures: dict[str, Any] = {}
    with Running("larksong", call, None) as larksong:
        _, data = asyncio.run(read(larksong.port, sent))
        events = _events(data)
        with Running("bare", call, None, events) as bare:
            rounds = [
                (asyncio.run(_rate(larksong.port, sent)), asyncio.run(_rate(bare.port, sent)))
                for _ in range(ROUNDS)
            ]
    for kind, rates in zip(("larksong", "bare"), zip(*rounds, strict=True), strict=True):
        figures[f"{kind}_events_per_second"] = median(rates)
    figures["events_a_stream"] = len(events)
    figures["shares"] = [ours / theirs for ours, theirs in rounds]
    figures["share"] = median(figures["shares"])
    for kind in ("larksong", "bare"):
        with Running(kind, call, PACE, events) as server:
            late = asyncio.run(_delays(server.port, sent))
        figures[f"{kind}_late_ms_p50"] = float(np.percentile(late, 50)) * 1e3
        figures[f"{kind}_late_ms_p99"] = float(np.percentile(late, 99)) * 1e3
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    found = {"text": measure(call=False), "call": measure(call=True)}
    table = Table("", "larksong", "bare", title=f"{STREAMS} streams")
    for name, figures in found.items():
        rate = [f"{figures[f'{kind}_events_per_second']:,.0f}" for kind in ("larksong", "bare")]
        table.add_row(f"{name}, events a second", *rate)
        for share in ("p50", "p99"):
            late = [f"{figures[f'{kind}_late_ms_{share}']:.1f}" for kind in ("larksong", "bare")]
            table.add_row(f"{name}, {share} of the delay at {PACE:g} tokens/s, ms", *late)
    Console().print(table)
    for name, figures in found.items():
        print(f"{name}: {figures['share']:.2f} of the bare application's events a second")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
