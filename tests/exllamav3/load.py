"""What attached streams cost the model: the median step with and without them, run by run in turn.

    python -m tests.exllamav3.load --streams 64 --runs 5

The stand-in's step takes 10 ms and releases the interpreter, as waiting for a GPU does. Three arms:

- idle: the jobs run and nobody reads them;
- elsewhere: the same jobs, while a server in another process sends as many streams to the same clients;
- attached: the server of this process sends what the jobs write to the clients.

Cores that share a cache, a clock or, as virtual ones, a physical core compute slower while the other one works.
`elsewhere` has that work too, so attached over elsewhere is what the streams do to the generator by being in
its process, and attached over idle what they do to it at all. Clients are a process of their own. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.exllamav3.stand_in import install

install()

import numpy as np  # noqa: E402

from benchmarks.server import Running  # noqa: E402
from larksong.engine.backends.base import Finish, Generation, Step  # noqa: E402
from larksong.engine.backends.exllamav3.backend import ExllamaV3Backend  # noqa: E402
from tests.exllamav3.folder import write_folder  # noqa: E402
from tests.exllamav3.serving import Served, serving  # noqa: E402

STEP_SECONDS = 0.010
TOKENS = 250
CLIENTS = """
import asyncio, json, sys
from urllib.parse import urlsplit

async def ask(url, number, tokens):
    messages = [{"role": "user", "content": f"question {number}"}]
    request = {"messages": messages, "stream": True, "seed": number, "max_tokens": tokens, "model": sys.argv[4]}
    body = json.dumps(request)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = f"POST {url.path}/chat/completions HTTP/1.1\\r\\nhost: load\\r\\ncontent-type: application/json\\r\\n"
    writer.write(f"{head}content-length: {len(body)}\\r\\n\\r\\n{body}".encode())
    last = b""
    while not last.endswith(b"data: [DONE]\\n\\n\\r\\n0\\r\\n\\r\\n"):
        piece = await reader.read(1 << 16)
        assert piece, last
        last = (last + piece)[-200:]
    writer.close()

async def main(url, streams, tokens):
    await asyncio.gather(*(ask(urlsplit(url), number, tokens) for number in range(streams)))

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


class _Nobody:
    """In a reader's place where no stream is attached."""

    full = False

    def __init__(self) -> None:
        self.over = threading.Event()

    def put_unannounced(self, item: Step | Finish) -> None:
        if isinstance(item, Finish):
            self.over.set()


@contextmanager
def _recorded(backend: ExllamaV3Backend) -> Iterator[list[Generation]]:
    """What the server asks of the backend meanwhile."""
    generations: list[Generation] = []
    generate = backend.generate

    def record(generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        matcher = generation.matcher and generation.matcher.fork()
        generations.append(replace(generation, matcher=matcher))
        return generate(generation)

    backend.generate = record  # type: ignore[method-assign]
    yield generations
    del backend.generate


def _detached(backend: ExllamaV3Backend, generations: list[Generation]) -> None:
    """Run what the server made of the clients' requests, read by nobody."""
    sequences = []
    for generation in generations:
        matcher = generation.matcher and generation.matcher.fork()
        sequence = backend.sequence(replace(generation, matcher=matcher))
        sequence.handover = _Nobody()  # type: ignore[assignment]
        sequences.append(sequence)
    for sequence in sequences:
        backend._worker.start(sequence)
    for sequence in sequences:
        sequence.handover.over.wait()  # type: ignore[union-attr]


def _steps(served: Served, streams: int) -> tuple[float, float]:
    """Medians in milliseconds, of the steps in which all streams run: the step, and what it waited.

    It waits for the interpreter, or a core, when it neither computes nor has the model compute.
    """
    whole, waited = [], []
    for (began, cpu, jobs), (next_began, next_cpu, next_jobs) in pairwise(served.model.begun):
        if jobs == next_jobs == streams:
            whole.append(next_began - began)
            waited.append(whole[-1] - (next_cpu - cpu) - STEP_SECONDS)
    return 1000 * statistics.median(whole), 1000 * statistics.median(waited)


def _clients(url: str, streams: int, tokens: int, model: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CLIENTS, url, str(streams), str(tokens), model])


def _finish(clients: subprocess.Popen[bytes]) -> None:
    if clients.wait() != 0:
        raise RuntimeError("the clients have failed, see above")


def measure(streams: int, runs: int, tokens: int = TOKENS) -> dict[str, Any]:
    """Median steps in milliseconds of each arm and run, and how much the attached streams raise them.

    `raised_over_…` is the median over the runs of attached by that arm, less 1. `waited` is what of the steps was
    spent waiting for the interpreter or a core, and `raised_by_waiting` what attached streams add to it, as a share
    of the idle step. Unlike the steps themselves it does not depend on how fast the core computes at the time.
    """
    arms: dict[str, list[tuple[float, float]]] = {"idle": [], "elsewhere": [], "attached": []}
    with tempfile.TemporaryDirectory() as folder, serving(write_folder(Path(folder) / "model")) as served:
        backend = served.backend
        served.model.step_seconds = STEP_SECONDS
        # One prompt in every step, not in every fifth: all streams soon run together.
        backend._worker.generator.prefill_cooldown = 0
        likes = np.random.default_rng(0).standard_normal(served.model.width).astype(np.float32)
        likes[sorted(backend.vocabulary.eos_ids)] = -50
        served.model.policy = lambda prefix: likes
        with _recorded(backend) as generations:
            _finish(_clients(served.url, streams, tokens, "small"))
        pace = 1000 / _steps(served, streams)[0]
        with Running("larksong", False, pace) as other:
            for _ in range(runs):
                served.model.begun.clear()
                _detached(backend, generations)
                arms["idle"].append(_steps(served, streams))

                served.model.begun.clear()
                clients = _clients(f"http://127.0.0.1:{other.port}/v1", streams, tokens, "recorded")
                _detached(backend, generations)
                arms["elsewhere"].append(_steps(served, streams))
                _finish(clients)

                served.model.begun.clear()
                _finish(_clients(served.url, streams, tokens, "small"))
                arms["attached"].append(_steps(served, streams))

    def medians(arm: str) -> tuple[float, float]:
        whole, waited = zip(*arms[arm], strict=True)
        return statistics.median(whole), statistics.median(waited)

    def ratios(arm: str) -> list[float]:
        return [one / other for (one, _), (other, _) in zip(arms["attached"], arms[arm], strict=True)]

    return {
        "streams": streams,
        "runs": runs,
        **{f"{name}_ms": [round(whole, 2) for whole, _ in steps] for name, steps in arms.items()},
        **{f"{name}_waited_ms": [round(waited, 2) for _, waited in steps] for name, steps in arms.items()},
        "raised_over_idle": round(statistics.median(ratios("idle")) - 1, 4),
        "raised_over_idle_at_best": round(min(ratios("idle")) - 1, 4),
        "raised_over_elsewhere": round(statistics.median(ratios("elsewhere")) - 1, 4),
        "raised_by_waiting": round((medians("attached")[1] - medians("idle")[1]) / medians("idle")[0], 4),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    options = parser.parse_args()
    print(json.dumps(measure(options.streams, options.runs, options.tokens), indent=2))
