"""`python -m benchmarks.forced_speed`: the demo's calls on the CPU, with forced tokens and without.

Runs `larksong demo` as it is, prompts, HTTP and all; only its backend also notes what it wrote. Runs with and
without forced tokens, and the likely ones that go with them, alternate: other work on the machine meets both.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import torch
from rich.console import Console
from rich.table import Table

from larksong.api.commands import demo
from larksong.api.turns.model import Model
from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.transformers import TransformersBackend, _Sequence
from larksong.grammars import format_names, wire_format


@dataclass
class Written:
    """An answer as the backend wrote it."""

    prompt: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)
    passes: int = 0
    """forward passes, the one that ends the prompt included"""

    @property
    def seconds(self) -> float:
        """From the first sampled token to the last token."""
        return self.steps[-1].elapsed - next(step.elapsed for step in self.steps if not step.forced)


class NotingBackend(TransformersBackend):
    """A backend that keeps what it wrote."""

    forced = True
    written: list[Written]

    def generate(self, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        note = Written(generation.prompt)
        self.written.append(note)
        return self._noted(super().generate(replace(generation, forced_tokens=self.forced)), note)

    def _step(self, sequence: _Sequence) -> tuple[Step | Finish, ...]:
        items = super()._step(sequence)
        self.written[-1].passes += any(isinstance(item, Finish) or not item.forced for item in items)
        return items

    async def _noted(
        self, items: AsyncGenerator[Step | Finish, None], note: Written
    ) -> AsyncGenerator[Step | Finish, None]:
        async for item in items:
            if isinstance(item, Step):
                note.steps.append(item)
            yield item

    def close(self) -> None:
        """Not yet: each demo's server closes its backend when it ends, and the next demo goes on with it."""

    def log_probability(self, answer: Written) -> float:
        """Of the whole answer by the model alone, in nats a byte: texts may differ, and how they are cut."""
        tokens = [step.token for step in answer.steps]
        with torch.inference_mode():
            output = self._model(torch.tensor([[*answer.prompt, *tokens]], device=self._model.device))
        logits = output.logits[0, len(answer.prompt) - 1 : -1].float()
        chosen = torch.log_softmax(logits, -1)[range(len(tokens)), tokens]
        return float(chosen.sum()) / sum(len(step.text) for step in answer.steps)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forced_speed", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--threads", type=int, default=1, help="torch's; more than there are idle cores is slow"
    )
    parser.add_argument("--formats", nargs="+", choices=format_names(), default=format_names())
    arguments = parser.parse_args()
    backend = NotingBackend.load(device="cpu", threads=arguments.threads)
    console = Console(width=None if Console().is_terminal else 160)
    console.print(_table(backend, arguments.formats, arguments.repeats))
    TransformersBackend.close(backend)


def _table(backend: NotingBackend, formats: Sequence[str], repeats: int) -> Table:
    table = Table(
        caption=f"{backend.name}; medians of {repeats} runs of both answers; the prompt's time is left out"
    )
    table.add_column("format")
    for name in ("forced tokens", "tokens", "passes", "seconds", "tokens/s", "nats/byte"):
        table.add_column(name, justify="right")
    for format_name in formats:
        model = Model(backend, wire_format(format_name))
        runs: dict[bool, list[list[Written]]] = {False: [], True: []}
        for _ in range(repeats):
            for forced in runs:
                backend.forced, backend.written = forced, []
                if not demo.run(model, Console(quiet=True)):
                    raise RuntimeError(f"the demo failed in {format_name}")
                runs[forced].append(backend.written)
        for forced, answers in runs.items():
            table.add_row(format_name, "on" if forced else "off", *_row(backend, answers))
    return table


def _row(backend: NotingBackend, runs: list[list[Written]]) -> list[str]:
    tokens = median(sum(len(answer.steps) for answer in run) for run in runs)
    passes = median(sum(answer.passes for answer in run) for run in runs)
    seconds = median(sum(answer.seconds for answer in run) for run in runs)
    likely = median(backend.log_probability(answer) for run in runs for answer in run)
    return [f"{tokens:.0f}", f"{passes:.0f}", f"{seconds:.2f}", f"{tokens / seconds:.1f}", f"{likely:.3f}"]


if __name__ == "__main__":
    main()
