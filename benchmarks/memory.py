"""Memory of 1,000 live sequences over 50 tool sets, beyond what the process holds before its first request.

`python -m benchmarks.memory ENGINE FORMAT` prints one JSON object; a process of its own, so that nothing
measured before is counted.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

from benchmarks.engines import factory
from benchmarks.environment import rss
from benchmarks.workload import qwen
from larksong.api.commands.bench.workload import request

SEQUENCES = 1_000
TOOL_SETS = 50


def main(name: str, format: str) -> dict[str, Any]:
    """Every tool set is another one, every sequence stands somewhere in a turn of its own."""
    workload = qwen()
    engine = factory(name)(workload)
    for number in range(SEQUENCES):  # encoded before, so that the tokenizer's caches are not counted
        workload.ids(format, number % _TURNS)
    gc.collect()
    before = rss()
    live = []
    for number in range(SEQUENCES):
        ids = workload.ids(format, number % _TURNS)
        # Sequences of one tool set come one after the other, as far apart as 50 tool sets take turns.
        cursor = engine.begin(engine.compile(request(format, 10, number % TOOL_SETS)))
        for token in ids[: len(ids) * (number % 10 + 1) // 10 - 1]:
            cursor.mask()
            cursor.advance(token)
        cursor.mask()
        live.append(cursor)
    gc.collect()
    return {
        "engine": name,
        "format": format,
        "sequences": len(live),
        "tool_sets": TOOL_SETS,
        "before": before,
        "beyond": rss() - before,
    }


_TURNS = 250  # distinct values; more would only be more of the same

if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
