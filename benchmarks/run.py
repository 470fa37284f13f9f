"""`python -m benchmarks.run`: all measurements in one process on one CPU, as tables, JSON and a picture."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import apply, children, environment, first_request, forced_calls, long_string, turns
from benchmarks.engines import NAMES, factory
from benchmarks.larksong_engine import Larksong
from benchmarks.report import OURS, Results, goals, show
from benchmarks.workload import FORMATS, TOOL_COUNTS, Workload, qwen
from larksong.api.commands.bench.measure import cases

PARTS = ("turns", "first_request", "long_string", "memory", "apply", "forced_calls")


def main() -> None:
    arguments = _arguments()
    console = Console(width=None if Console().is_terminal else 190)
    cpu = environment.pin(arguments.cpu)
    environment.raise_priority()
    results = Results(environment.describe(cpu))
    workload = qwen()
    for part in arguments.parts:
        console.print(f"[dim]{part} …[/]")
        _PARTS[part](results, workload, arguments, console)
        if arguments.json:  # after each part, so that a long run that is stopped is not lost
            arguments.json.write_text(json.dumps(_as_json(results), indent=1))
    show(results, console)
    if arguments.plot and results.turns:
        from benchmarks.plot import draw

        draw(results, arguments.plot)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    parser.add_argument("--cpu", type=int, help="the CPU to run on (default: the last one)")
    parser.add_argument("--engines", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--tools", nargs="+", type=int, default=TOOL_COUNTS, metavar="N")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    return parser.parse_args()


def _turns(results: Results, workload: Workload, arguments: argparse.Namespace, console: Console) -> None:
    engines = [factory(name)(workload) for name in arguments.engines]
    results.environment["engines"] = {engine.name: engine.version() for engine in engines}
    all_cases = cases(arguments.formats, arguments.tools)
    results.checked = turns.warm_up(engines, workload, all_cases)

    def say(text: str) -> None:
        console.print(f"[dim]{text}[/]")

    results.turns = turns.measure(engines, workload, all_cases, arguments.repeats, say)


def _first_request(results: Results, workload: Workload, arguments: argparse.Namespace, _: Console) -> None:
    formats = arguments.formats[:1]
    results.first_request = first_request.measure(workload, arguments.engines, formats, arguments.repeats)


def _long_string(results: Results, workload: Workload, arguments: argparse.Namespace, _: Console) -> None:
    engine = Larksong(workload)
    results.long_string = [
        long_string.measure(engine, workload, format, arguments.repeats)
        for format in ("hermes", "qwen3_coder")
    ]


def _memory(results: Results, _: Workload, arguments: argparse.Namespace, __: Console) -> None:
    wanted: Sequence[tuple[str, str]] = [
        (name, format)
        for name in arguments.engines
        for format in (("hermes", "qwen3_coder") if name == OURS else ("hermes",))
    ]
    results.memory = [children.run("memory", name, format) for name, format in wanted]


def _apply(results: Results, workload: Workload, arguments: argparse.Namespace, _: Console) -> None:
    results.apply = apply.measure(workload, Larksong(workload), arguments.repeats)


def _forced_calls(
    results: Results, workload: Workload, arguments: argparse.Namespace, console: Console
) -> None:
    folder = forced_calls.cases_folder()
    if folder is None:
        console.print("the recorded calls are not here: set LARKSONG_CASES to their folder")
        return
    measured = [forced_calls.measure(factory(name)(workload), workload, folder) for name in arguments.engines]
    results.forced_calls = [found for found in measured if found is not None]


_PARTS = {
    "turns": _turns,
    "first_request": _first_request,
    "long_string": _long_string,
    "memory": _memory,
    "apply": _apply,
    "forced_calls": _forced_calls,
}


def _as_json(results: Results) -> dict[str, Any]:
    """All figures; times in seconds, memory in bytes."""
    return {
        "environment": results.environment,
        "turns": [turns.as_json(record) for record in results.turns],
        "checked": [asdict(found) for found in results.checked],
        "first_request": results.first_request,
        "long_string": [asdict(found) for found in results.long_string],
        "memory": results.memory,
        "apply": results.apply,
        "forced_calls": [asdict(found) for found in results.forced_calls],
        "goals": [asdict(line) for line in goals(results)],
    }


if __name__ == "__main__":
    main()
