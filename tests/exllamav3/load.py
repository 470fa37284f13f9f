"""What attached streams cost the model: the median step with and without them, run by run in turn.

    python -m tests.exllamav3.load --streams 64 --runs 5

The stand-in's step takes 10 ms and releases the interpreter, as waiting for a GPU does. The streams' clients
are a process of their own. Prints JSON; a machine with other work on its cores measures that work.
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
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.exllamav3.stand_in import install

install()

import numpy as np  # noqa: E402

from larksong.engine.backends.base import Finish, Generation, Sampling, Step  # noqa: E402
from larksong.engine.backends.exllamav3.sequence import Sequence  # noqa: E402
from tests.exllamav3.folder import write_folder  # noqa: E402
from tests.exllamav3.serving import Served, serving  # noqa: E402

STEP_SECONDS = 0.010
TOKENS = 120
CLIENTS = """
import asyncio, json, sys
import httpx

async def ask(client, number, tokens):
    messages = [{"role": "user", "content": f"question {number}"}]
    request = {"messages": messages, "stream": True, "seed": number, "max_tokens": tokens, "model": "small"}
    async with client.stream("POST", "/chat/completions", json=request) as response:
        assert response.status_code == 200
        return sum([len(data) async for data in response.aiter_raw()])

async def main(url, streams, tokens):
    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
        await asyncio.gather(*(ask(client, number, tokens) for number in range(streams)))

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


def _detached(served: Served, streams: int, tokens: int) -> None:
    backend = served.backend
    sequences = []
    for number in range(streams):
        prompt = tuple(backend.tokenizer.encode(f"question {number}\n").ids)
        sequence = Sequence(
            Generation(prompt, None, Sampling(seed=number), tokens),
            backend._exllama_tokenizer,
            backend.vocabulary,
            backend.context_length,
            2048,
        )
        sequence.handover = _Nobody()  # type: ignore[assignment]
        sequences.append(sequence)
    for sequence in sequences:
        backend._worker.start(sequence)
    for sequence in sequences:
        sequence.handover.over.wait()  # type: ignore[union-attr]


def _median_step(served: Served) -> float:
    """Milliseconds, the beginning and the end of the run left out."""
    begun = served.model.begun
    gaps = [after - before for before, after in pairwise(begun)]
    cut = len(gaps) // 5
    return 1000 * statistics.median(gaps[cut:-cut])


def measure(streams: int, runs: int, tokens: int = TOKENS) -> dict[str, Any]:
    """Median steps in milliseconds; `raised` is the median over the runs of attached by detached, less 1."""
    with tempfile.TemporaryDirectory() as folder, serving(write_folder(Path(folder) / "model")) as served:
        served.model.step_seconds = STEP_SECONDS
        likes = np.random.default_rng(0).standard_normal(served.model.width).astype(np.float32)
        likes[sorted(served.backend.vocabulary.eos_ids)] = -50
        served.model.policy = lambda prefix: likes
        # What nobody reads is given to nobody: the worker announces only to those that have a loop.
        found: dict[str, list[float]] = {"detached": [], "attached": []}
        for _ in range(runs):
            served.model.begun.clear()
            _detached(served, streams, tokens)
            found["detached"].append(_median_step(served))
            served.model.begun.clear()
            command = [sys.executable, "-c", CLIENTS, served.url, str(streams), str(tokens)]
            subprocess.run(command, check=True)
            found["attached"].append(_median_step(served))
    ratios = [b / a for a, b in zip(found["detached"], found["attached"], strict=True)]
    return {
        "streams": streams,
        "runs": runs,
        **{f"{name}_ms": [round(value, 2) for value in values] for name, values in found.items()},
        "raised": round(statistics.median(ratios) - 1, 4),
        "raised_at_best": round(min(ratios) - 1, 4),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(measure(options.streams, options.runs), indent=2))
