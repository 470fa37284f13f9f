"""Situation (d): how long after a process was started the first mask of its first request is there."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

from benchmarks import children
from benchmarks.workload import Workload


def measure(
    workload: Workload, engines: Sequence[str], formats: Iterable[str], repeats: int
) -> list[dict[str, Any]]:
    """Medians of what `first_request_child` says; times in seconds, memory in bytes.

    Larksong starts with an empty cache folder, and with the folder that such a start has left. The peers keep
    nothing on disk. Their clock starts after the benchmark's own imports, Larksong's with the process.
    """
    found = []
    for format in formats:
        for engine in engines:
            runs: dict[str, list[dict[str, float]]] = {}
            for _ in range(repeats):
                with tempfile.TemporaryDirectory() as folder:
                    for cache in ("empty", "warm") if engine == "larksong" else ("none",):
                        runs.setdefault(cache, []).append(_start(workload, engine, format, folder))
            for cache, answers in runs.items():
                medians = {key: statistics.median(answer[key] for answer in answers) for key in answers[0]}
                found.append({"engine": engine, "format": format, "cache": cache, **medians})
    return found


def _start(workload: Workload, engine: str, format: str, cache: str) -> dict[str, Any]:
    env = {**os.environ, "LARKSONG_CACHE": cache, "XDG_CACHE_HOME": cache}
    tokenizer = (str(workload.file), str(workload.width), workload.eos)
    started = repr(perf_counter())
    return children.run("first_request_child", engine, format, *tokenizer, started, env=env)
