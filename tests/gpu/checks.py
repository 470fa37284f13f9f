"""What is checked of exllamav3 on a GPU. Writes JSON.

    python -m tests.gpu.checks FOLDER RESULTS

A process of its own, with the real extension: the tests' stand-in must not be in it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from exllamav3 import Job
from exllamav3.generator.sampler import CategoricalSampler

from larksong.engine.backends.exllamav3.backend import ExllamaV3Backend
from larksong.engine.backends.exllamav3.drafts import ForcedDraftGenerator
from larksong.engine.backends.exllamav3.filter import MatcherFilter
from larksong.engine.backends.exllamav3.settings import ExllamaV3Settings
from larksong.engine.backends.exllamav3.vocabulary import encoder_of
from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.grammars import CallPolicy, Tool, wire_format
from larksong.grammars.answers.response_format import response_grammar

LONG = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 8},
    "minItems": 2000,
}
UNITS = ["celsius", "fahrenheit", "kelvin"]
CALLED = Tool(
    "get_weather_forecast",
    parameters={
        "type": "object",
        "properties": {
            name: {"enum": UNITS} for name in ("temperature_unit", "humidity_unit", "pressure_unit")
        },
        "required": ["temperature_unit", "humidity_unit", "pressure_unit"],
        "additionalProperties": False,
    },
)


class Checks:
    """The checks over one loaded model; `size` scales how much is generated, `runs` how often."""

    def __init__(self, folder: Path, *, size: float = 1.0, runs: int = 5, device: str | None = None) -> None:
        settings = ExllamaV3Settings(cache_tokens=16 * 2048, max_batch=16, device=device)
        self._backend = ExllamaV3Backend.load(folder, settings)
        self._tokenizer = self._backend._exllama_tokenizer
        vocabulary = self._backend.vocabulary
        self._engine = Engine(vocabulary, encode=encoder_of(self._tokenizer, vocabulary))
        self._size = size
        self._runs = runs
        self._backend._worker.close()  # generators are driven from here
        self._model, self._cache = self._backend._model, self._backend._cache

    def run(self) -> dict[str, Any]:
        began = time.perf_counter()
        results = {
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
            "model": self._backend.name,
            "masks": self.masks(round(20_000 * self._size)),
            "filter": {str(batch): self.filter_cost(batch) for batch in (1, 16)},
            "forced": self.forced_gain(),
        }
        return {**results, "seconds": round(time.perf_counter() - began, 1)}

    def _generator(self, forced: int = 0) -> Any:
        return ForcedDraftGenerator(
            model=self._model,
            cache=self._cache,
            tokenizer=self._tokenizer,
            max_batch_size=16,
            forced_draft=forced,
        )

    def _job(self, number: int, filters: Sequence[MatcherFilter], tokens: int) -> Any:
        prompt = self._backend.tokenizer.encode(f"question {number}", add_special_tokens=False).ids
        return Job(
            input_ids=torch.tensor([prompt]),
            max_new_tokens=tokens,
            sampler=CategoricalSampler(),
            seed=number,
            # Free text must not end early, and forbidding its end would cost a mask.
            stop_conditions=list(self._backend.vocabulary.eos_ids) if filters else [],
            filters=list(filters),
        )

    def _filter(self, matcher: Matcher) -> MatcherFilter:
        return MatcherFilter(self._tokenizer, matcher, ends=self._backend.vocabulary.eos_ids)

    def _long(self) -> Matcher:
        return self._engine.matcher(response_grammar(LONG, self._backend.vocabulary))

    @staticmethod
    def _drain(generator: Any, jobs: Sequence[Any]) -> tuple[float, int]:
        """Seconds and passes."""
        generator.enqueue(list(jobs))
        passes = 0
        began = time.perf_counter()
        while generator.num_remaining_jobs():
            generator.iterate()
            passes += 1
        return time.perf_counter() - began, passes

    def masks(self, tokens: int) -> dict[str, int]:
        """Tokens that the model took under the mask, and how many of them a second matcher refuses."""
        each = -(-tokens // 16)
        written = violations = 0
        generator = self._generator()
        filters = [self._filter(self._long()) for _ in range(16)]
        self._drain(generator, [self._job(n, [each_filter], each) for n, each_filter in enumerate(filters)])
        for one in filters:
            check = self._long()
            for accepted in one.accepted:
                written += 1
                violations += not check.allows(accepted.token)
                check.advance(accepted.token)
        generator.close()
        return {"tokens": written, "violations": violations}

    def filter_cost(self, batch: int) -> dict[str, float]:
        """Tokens per second with and without the filter, in turn; the median of the runs' ratios."""
        tokens = max(20, round(300 * self._size))
        generator = self._generator()
        speeds: dict[bool, list[float]] = {True: [], False: []}
        for run in range(self._runs + 1):
            for filtered in (False, True):
                jobs = [
                    self._job(n, [self._filter(self._long())] if filtered else [], tokens)
                    for n in range(batch)
                ]
                seconds, _ = self._drain(generator, jobs)
                if run:  # the first one warms up
                    speeds[filtered].append(batch * tokens / seconds)
        generator.close()
        ratios = [with_ / without for with_, without in zip(speeds[True], speeds[False], strict=True)]
        return {
            "without": round(statistics.median(speeds[False]), 1),
            "with": round(statistics.median(speeds[True]), 1),
            "ratio": round(statistics.median(ratios), 4),
        }

    def forced_gain(self) -> dict[str, float]:
        """Passes and seconds of calls with much that is forced; how many of them have the same tokens.

        In a format in which no text may stand before a call: a model that is not asked for one would go on with it.
        On a GPU a forward pass of another width rounds otherwise, so a choice between two tokens that are
        equally likely may fall otherwise, now and then.
        """
        vocabulary = self._backend.vocabulary
        policy = CallPolicy(required=True, max_calls=1)
        grammar = wire_format("llama3_json").grammar([CALLED], policy, vocabulary)
        found: dict[str, float] = {"runs": self._runs}
        texts = []
        for name, forced in (("plain", 0), ("forced", 16)):
            generator = self._generator(forced)
            filters = [self._filter(self._engine.matcher(grammar)) for _ in range(self._runs)]
            timed = [self._drain(generator, [self._job(n, [one], 400)]) for n, one in enumerate(filters)]
            texts.append([[accepted.token for accepted in one.accepted] for one in filters])
            found[f"{name}_passes"] = sum(passes for _, passes in timed)
            found[f"{name}_seconds"] = round(sum(seconds for seconds, _ in timed), 3)
            generator.close()
        found["same_tokens"] = sum(plain == forced for plain, forced in zip(*texts, strict=True))
        found["finished"] = sum(one.finished for one in filters)
        found["fewer_passes"] = round(1 - found["forced_passes"] / found["plain_passes"], 4)
        return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--device", default=None)
    options = parser.parse_args()
    options.results.write_text(json.dumps(Checks(options.folder, device=options.device).run(), indent=2))
