"""What attached streams cost the model: the median step with and without them, in turn.

    python -m tests.exllamav3.load --streams 64 --runs 5

The stand-in's step takes 10 ms and releases the interpreter, as waiting for a GPU does. A server answers all
streams, whose clients are a process of their own. In every other block of steps nobody is given what the jobs
write, so the same jobs run with and without attached streams, fractions of a second apart: the speed of shared
cores drifts by more than what is looked for. Server and garbage collector are as `larksong serve` has them.
Prints JSON.

The generator's thread has a core for itself, as it has on any machine with more than two; `--anywhere` leaves
that to the system.
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
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.exllamav3.stand_in import install

install()

import numpy as np  # noqa: E402

from larksong.api.runtime.gc_tuning import settle_down  # noqa: E402
from tests.exllamav3.folder import write_folder  # noqa: E402
from tests.exllamav3.serving import Served, serving  # noqa: E402

STEP_SECONDS = 0.010
THREAD = "larksong-exllamav3"
CLIENTS = """
import asyncio, json, sys
from urllib.parse import urlsplit

async def ask(url, number, tokens):
    messages = [{"role": "user", "content": f"question {number}"}]
    request = {"messages": messages, "stream": True, "seed": number, "max_tokens": tokens, "model": "small"}
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

    def put_unannounced(self, item: object) -> None:
        """What nobody reads is gone."""


@contextmanager
def _a_core_of_its_own(thread: str, clients: int) -> Iterator[None]:
    """Keep this process's other threads and the process `clients` off the core of the thread of this name."""
    known = os.sched_getaffinity(0)
    own, *others = sorted(known)
    alone = {each.native_id for each in threading.enumerate() if each.name == thread}
    mine = {int(each) for each in os.listdir("/proc/self/task")}
    try:
        for task in {*mine, clients}:
            os.sched_setaffinity(task, {own} if task in alone else others)
        yield
    finally:
        for task in mine:
            with suppress(ProcessLookupError):  # a thread that has ended
                os.sched_setaffinity(task, known)


class _Attached:
    """The streams of a server, attached and not, block by block."""

    def __init__(self, served: Served, streams: int, clients: subprocess.Popen[bytes]) -> None:
        self._model = served.model
        self._clients = clients
        while not (self._model.begun and self._model.begun[-1][2] == streams):
            self._wait()
        self._sequences = list(served.backend._worker._running)
        self._readers = [sequence.handover for sequence in self._sequences]

    def attach(self, attached: bool) -> None:
        for sequence, reader in zip(self._sequences, self._readers, strict=True):
            sequence.handover = reader if attached else _Nobody()  # type: ignore[assignment]

    def block(self, attached: bool, steps: int) -> tuple[float, float]:
        """The median of so many steps, and of what they waited, in seconds.

        A step waits for the interpreter, or a core, when it neither computes nor has the model compute.
        """
        self.attach(attached)
        first = len(self._model.begun) + 1  # in between what was written before is still given out
        while len(self._model.begun) <= first + steps:
            self._wait()
        pairs = list(pairwise(self._model.begun[first : first + steps + 1]))
        whole = statistics.median(end - begin for (begin, _, _), (end, _, _) in pairs)
        idle = [(end - begin) - (cpu - before) for (begin, before, _), (end, cpu, _) in pairs]
        return whole, statistics.median(idle) - STEP_SECONDS

    def _wait(self) -> None:
        if self._clients.poll() is not None:
            raise RuntimeError("the clients have ended too early, see above")
        time.sleep(0.02)


def _clients(url: str, streams: int, tokens: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CLIENTS, url, str(streams), str(tokens)])


def measure(
    streams: int, runs: int, *, blocks: int = 8, steps: int = 10, alone: bool = True
) -> dict[str, Any]:
    """Median steps in milliseconds of each run, with and without attached streams.

    A run is so many pairs of blocks, one with and one without streams. `raised` compares the blocks of a pair, by
    the medians of their steps: with by without, less 1. Of it the median of a run's pairs, and of the runs.
    `raised_by_waiting`: what the steps waited longer, as a share of those without streams.
    """
    tokens = 500 + 6 * runs * blocks * steps  # more than can be needed: the clients are ended
    medians: dict[bool, list[float]] = {False: [], True: []}
    raised, waited = [], []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        served = stack.enter_context(
            serving(write_folder(folder / "model"), cache_tokens=streams * (tokens + 512))
        )
        served.model.step_seconds = STEP_SECONDS
        # One prompt in every step, not in every fifth: all streams soon run together.
        served.backend._worker.generator.prefill_cooldown = 0
        likes = np.random.default_rng(0).standard_normal(served.model.width).astype(np.float32)
        likes[sorted(served.backend.vocabulary.eos_ids)] = -50
        served.model.policy = lambda prefix: likes
        settle_down()
        clients = _clients(served.url, streams, tokens)
        attached = _Attached(served, streams, clients)
        if alone and sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1:
            stack.enter_context(_a_core_of_its_own(THREAD, clients.pid))
        for _ in range(runs):
            found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
            for number in range(2 * blocks):
                with_streams = number % 4 in (1, 2)
                found[with_streams].append(attached.block(with_streams, steps))
            for with_streams, each in found.items():
                medians[with_streams].append(statistics.median(step for step, _ in each))
            pairs = list(zip(found[False], found[True], strict=True))
            raised.append(statistics.median(more / step - 1 for (step, _), (more, _) in pairs))
            waited.append(statistics.median((more - less) / step for (step, less), (_, more) in pairs))
        attached.attach(True)
        clients.terminate()
        clients.wait()

    return {
        "streams": streams,
        "steps_per_run": blocks * steps,
        "without_ms": [round(1000 * step, 2) for step in medians[False]],
        "with_ms": [round(1000 * step, 2) for step in medians[True]],
        "raised_each": [round(more, 4) for more in raised],
        "raised": round(statistics.median(raised), 4),
        "raised_by_waiting": round(statistics.median(waited), 4),
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--anywhere", action="store_true", help="do not keep a core for the generator")
    options = parser.parse_args()
    print(json.dumps(measure(options.streams, options.runs, alone=not options.anywhere), indent=2))
