"""One fresh process, one engine, its first request: `python -m benchmarks.first_request_child ENGINE …`.

Times are seconds since the parent started this process: `time.perf_counter` is the system's monotonic clock
on Linux, so both read the same one. Imports are inside the function, since they are what is timed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter


def main(name: str, format: str, tokenizer: str, width: str, eos: str, started: str) -> dict[str, float]:
    """Start an engine, ask for the first mask, read the standard turn."""
    from benchmarks.engines import factory
    from benchmarks.environment import rss
    from benchmarks.workload import Workload
    from larksong.api.commands.bench.timing import time_turn
    from larksong.api.commands.bench.workload import request

    # What the benchmark itself imports holds most of Larksong's own imports: they count for Larksong alone.
    origin = perf_counter() if name != "larksong" else float(started)
    rss_before = rss()
    start = factory(name)
    imported, rss_imported = perf_counter(), rss()
    workload = Workload(Path(tokenizer), int(width), eos)
    engine = start(workload)
    ready, rss_ready = perf_counter(), rss()
    asked = request(format, 10)
    cursor = engine.begin(engine.compile(asked))
    cursor.mask()
    first_mask = perf_counter()
    ids = workload.ids(format, 0)
    begin = perf_counter()
    time_turn(engine, asked, ids)
    end = perf_counter()
    return {
        "imported": imported - origin,
        "ready": ready - origin,
        "first_mask": first_mask - origin,
        "turn": end - begin,
        "rss_before": rss_before,
        "rss_imported": rss_imported,
        "rss_ready": rss_ready,
        "rss_turn": rss(),
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
