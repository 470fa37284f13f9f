"""`python -m benchmarks.formats`: the engine's table for every wire format, each with its family's markers.

The vocabulary is Qwen's with the markers of all families added as tokens of their own, so that each format
works as it does with its family's tokenizer. DSML's mark is added too; the engine takes it for its letters.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tokenizers import AddedToken, Tokenizer

from benchmarks import environment
from benchmarks.workload import qwen
from larksong.api.commands.bench.measure import LarksongBench, Situation, cases, take
from larksong.api.commands.bench.timing import Figures, Samples, time_turn
from larksong.api.commands.bench.workload import turn
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import format_names
from larksong.grammars.formats.deepseek_dsml import DSML
from tests.support.markers import MARKERS

_SITUATIONS = (Situation.AGAIN, Situation.VALUES, Situation.TOOLS)
Measured = dict[str, dict[Situation, Figures]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("--formats", nargs="+", choices=format_names(), default=format_names())
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--tools", type=int, default=10)
    parser.add_argument("--cpu", type=int, help="the CPU to run on (default: the last one)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    cpu = environment.pin(arguments.cpu)
    environment.raise_priority()
    measured = measure(arguments.formats, arguments.tools, arguments.repeats)
    Console(width=120).print(table(measured))
    if arguments.json:
        figures = {
            name: {situation: asdict(each) for situation, each in found.items()}
            for name, found in measured.items()
        }
        shown = {"environment": environment.describe(cpu), "formats": figures}
        arguments.json.write_text(json.dumps(shown, indent=1))


def measure(formats: Sequence[str], tools: int, repeats: int) -> Measured:
    """The figures of each format in each situation."""
    workload = qwen()
    tokenizer = Tokenizer.from_file(str(workload.file))
    tokenizer.add_tokens([AddedToken(marker, special=False, normalized=False) for marker in (*MARKERS, DSML)])
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[workload.eos], width=workload.width)
    contender = LarksongBench(vocabulary, tokenizer)
    end = min(vocabulary.eos_ids)

    @lru_cache(maxsize=1024)
    def ids(format: str, number: int) -> list[int]:
        return [*tokenizer.encode(turn(number).text(format), add_special_tokens=False).ids, end]

    wanted = [case for case in cases(formats, (tools,)) if case.situation in _SITUATIONS]
    for case in wanted:
        if case.situation is Situation.AGAIN:
            for _ in range(2):
                time_turn(contender, case.request(0), ids(case.format, 0))
    environment.settle()
    samples = {case: Samples() for case in wanted}
    for repeat in range(repeats):
        for case in wanted:
            take(samples[case], contender, case, 2 * repeat + 1, partial(ids, case.format))
    found: Measured = {name: {} for name in formats}
    for case, taken in samples.items():
        found[case.format][case.situation] = taken.figures(same_turn=case.same_turn)
    return found


def table(measured: Measured) -> Table:
    """Milliseconds of whole turns; microseconds of masks with new tools."""
    shown = Table(title="turns in ms, masks with new tools in µs", title_justify="left")
    shown.add_column("format")
    for name in (
        "tokens",
        "same turn",
        "new values",
        "new tools",
        "first mask",
        "mask p50",
        "mask p99",
        "mask max",
    ):
        shown.add_column(name, justify="right")
    for name, figures in measured.items():
        again, values, tools = (figures[situation] for situation in _SITUATIONS)
        milli = (again.turn, values.turn, tools.built_turn, tools.first_mask)
        micro = (tools.mask.p50, tools.mask.p99, tools.mask.max)
        shown.add_row(
            name,
            str(tools.tokens),
            *(f"{value * 1e3:.2f}" for value in milli),
            *(f"{value * 1e6:.1f}" for value in micro),
        )
    return shown


if __name__ == "__main__":
    main()
