"""Applying a mask to one row of 151,936 float32 logits, on one thread.

Three masks: nearly all tokens allowed (inside a string), one in a hundred, three. Then all masks of a turn
one after the other, as a backend meets them. `python -m benchmarks.apply` prints the figures alone.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from time import perf_counter
from typing import Any, Literal

import llguidance.numpy
import numpy as np
import torch
import xgrammar
from numpy.typing import NDArray

from benchmarks import environment
from benchmarks.contender import Words
from benchmarks.larksong_engine import Larksong
from benchmarks.workload import FORMATS, Workload, qwen
from larksong.api.commands.bench.timing import Spread, median
from larksong.api.commands.bench.workload import request
from larksong.engine.backends.sampler import MaskBias

Row = NDArray[np.float32]
Apply = Callable[[Row, Words], object]


def methods(width: int) -> dict[str, Apply]:
    """Ways to set the logits of refused tokens to minus infinity, in place."""
    bias = MaskBias(width)

    def add_bias(row: Row, words: Words) -> None:
        row += bias.get(words)[0]

    def make_bias(row: Row, words: Words) -> None:
        row += MaskBias(width).get(words)[0]

    def unpack(row: Row, words: Words) -> None:
        bits = np.unpackbits(words.view(np.uint8), count=width, bitorder="little")
        np.copyto(row, -np.inf, where=bits == 0)

    def xgrammar_with(backend: Literal["cpu", "torch_native"]) -> Apply:
        def apply(row: Row, words: Words) -> None:
            logits, mask = torch.from_numpy(row)[None], torch.from_numpy(words)[None]
            xgrammar.apply_token_bitmask_inplace(logits, mask, backend=backend)

        return apply

    def llguidance_numpy(row: Row, words: Words) -> None:
        llguidance.numpy.apply_token_bitmask_inplace(row[None], words[None])

    return {
        "larksong, cached bias": add_bias,
        "larksong, bias not cached": make_bias,
        "numpy, unpacked": unpack,
        "xgrammar, cpu": xgrammar_with("cpu"),
        "xgrammar, torch_native": xgrammar_with("torch_native"),
        "llguidance, numpy": llguidance_numpy,
    }


def measure(workload: Workload, engine: Larksong, repeats: int) -> dict[str, Any]:
    """Seconds: `single` by mask and method, `turn` by format and method (the sum over a turn's masks)."""
    torch.set_num_threads(1)
    applies = methods(workload.width)
    row = np.random.default_rng(0).standard_normal(workload.width, np.float32)
    single = {
        kind: {name: _single(apply, words, row, 5 * repeats) for name, apply in applies.items()}
        for kind, words in _masks(workload).items()
    }
    turn = {}
    for format in FORMATS:
        shared = _turn_masks(workload, engine, format)
        own = [words.copy() for words in shared]  # the peers write into a buffer of their own
        turn[format] = {
            name: _turn(apply, shared if name.startswith("larksong") else own, row)
            for name, apply in applies.items()
        }
    return {"single": single, "turn": turn}


def _masks(workload: Workload) -> dict[str, Words]:
    random = np.random.default_rng(0)
    shares = {"97 % allowed": 0.97, "1 % allowed": 0.01, "3 allowed": 0.0}
    found = {}
    for kind, share in shares.items():
        bits = np.zeros(workload.words * 32, np.uint8)
        bits[: workload.width] = random.random(workload.width) < share
        bits[[5, 100, 7777]] = 1
        found[kind] = np.packbits(bits, bitorder="little").view(np.int32)
    return found


def _turn_masks(workload: Workload, engine: Larksong, format: str) -> list[Words]:
    cursor = engine.begin(engine.compile(request(format, 10)))
    masks = []
    for token in workload.ids(format, 0):
        masks.append(cursor.owner.mask())
        cursor.advance(token)
    return masks


def _single(apply: Apply, words: Words, row: Row, repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        logits = row.copy()
        before = perf_counter()
        apply(logits, words)
        times.append(perf_counter() - before)
    return median(times[1:])


def _turn(apply: Apply, masks: list[Words], row: Row) -> float:
    gc.collect()
    times = []
    for words in masks:
        logits = row.copy()
        before = perf_counter()
        apply(logits, words)
        times.append(perf_counter() - before)
    return Spread.of(times).total


def main() -> None:
    environment.pin()
    workload = qwen()
    print(json.dumps(measure(workload, Larksong(workload), 12), indent=1))


if __name__ == "__main__":
    main()
