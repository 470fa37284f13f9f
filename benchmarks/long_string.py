"""Delta making inside one string of 30,000 tokens: what a token costs, and whether that grows."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from benchmarks.larksong_engine import Larksong
from benchmarks.workload import Workload
from larksong.api.commands.bench.timing import median
from larksong.api.commands.bench.workload import request, turn
from larksong.api.turns.emitter import DeltaEmitter
from larksong.grammars import wire_format

TOKENS = 30_000
_WINDOW = 1_000
_EARLY = 100


@dataclass(frozen=True)
class LongString:
    """Seconds a token, medians of a thousand tokens: from the 100th on, and before the 30,000th."""

    format: str
    tokens: int
    early_delta: float
    late_delta: float
    early_advance: float
    late_advance: float

    @property
    def growth(self) -> float:
        """How much dearer a delta is at the end: 1 is not at all."""
        return self.late_delta / self.early_delta


def measure(engine: Larksong, workload: Workload, format: str, repeats: int) -> LongString:
    """Read a `write` call whose content has 30,000 tokens; each figure is the median over the repeats."""
    ids, first = _ids(workload, format)
    early, late = (
        slice(first + _EARLY, first + _EARLY + _WINDOW),
        slice(first + TOKENS - _WINDOW, first + TOKENS),
    )
    grammar = engine.compile(request(format, 10))
    figures: list[list[float]] = []
    for _ in range(repeats + 1):
        gc.collect()
        cursor, emitter = engine.begin(grammar), DeltaEmitter()
        deltas, advances = [], []
        for token in ids:
            cursor.mask()
            before = perf_counter()
            events = cursor.owner.advance(token)
            between = perf_counter()
            emitter.feed(events)
            after = perf_counter()
            advances.append(between - before)
            deltas.append(after - between)
        assert cursor.finished(), f"the long turn of {format} was not read to its end"
        figures.append([median(times[window]) for times in (deltas, advances) for window in (early, late)])
    # The first round meets most tokens for the first time.
    medians = [median(values) for values in zip(*figures[1:], strict=True)]
    return LongString(format, len(ids), *medians)


def _ids(workload: Workload, format: str) -> tuple[Sequence[int], int]:
    """The turn's tokens, and where the long value begins."""
    written = wire_format(format)
    encode = workload.tokenizer.encode
    content, number = "", 1
    while len(encode(content).ids) < TOKENS + 2 * _WINDOW:
        content += "".join(turn(number + offset).calls[1][1]["content"] for offset in range(10))
        number += 10
    text = written.render_call("write", {"path": "long.py", "content": content})
    first = len(encode(text[: text.index(content[:3])], add_special_tokens=False).ids)
    return [*encode(text, add_special_tokens=False).ids, workload.eos_id], first
