"""exllamav3 in a test's hand: a model, its engine, and jobs that run to their end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from exllamav3 import Cache, Config, Filter, Generator, Job, Model, Tokenizer
from exllamav3.generator.sampler import CategoricalSampler, GreedySampler

from larksong.engine.backends.exllamav3.drafts import ForcedDraftGenerator
from larksong.engine.backends.exllamav3.filter import MatcherFilter
from larksong.engine.backends.exllamav3.vocabulary import encoder_of, vocabulary_of
from larksong.engine.engine import Engine
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.matcher import Matcher
from larksong.grammars import CallPolicy, Tool, wire_format
from larksong.grammars.answers.response_format import response_grammar
from tests.exllamav3.stand_in.model import PrefixModel, scripted
from tests.support.generations import ONE_CALL, WEATHER


@dataclass
class Ran:
    """What became of a job."""

    ids: list[int] = field(default_factory=list)
    """What exllamav3 gave out, held tokens of the end included."""
    text: str = ""
    reason: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def last(self) -> dict[str, Any]:
        return self.results[-1]


class Rig:
    """A model without weights and what belongs to it."""

    def __init__(self, folder: Path, *, pages: int = 64) -> None:
        self.folder = folder
        config = Config.from_directory(str(folder))
        self.model: PrefixModel = Model.from_config(config)
        self.cache = Cache(self.model, max_num_tokens=pages * 256)
        self.model.load(device="cpu")
        self.tokenizer = Tokenizer.from_config(config)
        self.vocabulary = vocabulary_of(self.tokenizer)
        self.encode = encoder_of(self.tokenizer, self.vocabulary)
        self.engine = Engine(self.vocabulary, encode=self.encode)
        self._generators: list[Any] = []

    def close(self) -> None:
        for generator in self._generators:
            generator.close()

    def generator(self, *, forced: int = 0, **options: Any) -> Any:
        """A generator over the model; with `forced` one that drafts so many forced tokens."""
        given = {"model": self.model, "cache": self.cache, "tokenizer": self.tokenizer, **options}
        made = ForcedDraftGenerator(forced_draft=forced, **given) if forced else Generator(**given)
        self._generators.append(made)
        return made

    def draft(self) -> tuple[PrefixModel, Any]:
        """A second model to guess with, and its cache."""
        config = Config.from_directory(str(self.folder))
        model: PrefixModel = Model.from_config(config)
        cache = Cache(model, max_num_tokens=self.cache.max_num_tokens)
        model.load(device="cpu")
        return model, cache

    def ids(self, text: str) -> list[int]:
        return list(self.encode(text))

    @property
    def end(self) -> int:
        return min(self.vocabulary.eos_ids)

    def follow(self, scripts: dict[str, str]) -> None:
        """Prompts → what the model wants to write after them, ends included."""
        self.model.policy = scripted(
            self.model.width,
            {tuple(self.ids(prompt)): [*self.ids(text), self.end] for prompt, text in scripts.items()},
        )

    def grammar(
        self,
        tools: Sequence[Tool] = (WEATHER,),
        *,
        format: str = "hermes",
        policy: CallPolicy = ONE_CALL,
        in_reasoning: bool = False,
    ) -> Grammar:
        return wire_format(format).grammar(tools, policy, self.vocabulary, in_reasoning=in_reasoning)

    def matcher(self, grammar: Grammar | None = None) -> Matcher:
        return self.engine.matcher(grammar or self.grammar())

    def json_matcher(self, schema: dict[str, Any]) -> Matcher:
        return self.engine.matcher(response_grammar(schema, self.vocabulary))

    def filter(self, matcher: Matcher | None = None, **options: Any) -> MatcherFilter:
        return MatcherFilter(
            self.tokenizer, matcher or self.matcher(), ends=self.vocabulary.eos_ids, **options
        )

    def job(
        self,
        prompt: str = "hello",
        *filters: Filter,
        max_new_tokens: int = 300,
        greedy: bool = False,
        stops: Iterable[int | str] | None = None,
        **options: Any,
    ) -> Any:
        return Job(
            input_ids=torch.tensor([self.ids(prompt)], dtype=torch.long),
            max_new_tokens=max_new_tokens,
            sampler=GreedySampler() if greedy else CategoricalSampler(),
            stop_conditions=list(self.vocabulary.eos_ids if stops is None else stops),
            filters=list(filters),
            **{"seed": 1, **options},
        )

    def run(self, generator: Any, *jobs: Any) -> list[Ran]:
        """Run jobs together to their ends."""
        ran = {id(job): Ran() for job in jobs}
        generator.enqueue(list(jobs))
        while generator.num_remaining_jobs():
            for result in generator.iterate():
                note(ran[id(result["job"])], result)
        return [ran[id(job)] for job in jobs]


def note(ran: Ran, result: dict[str, Any]) -> None:
    """Add a result to what a job became."""
    ran.results.append(result)
    ran.text += result.get("text", "")
    for part in (result, result.get("held", {})):
        if "token_ids" in part:
            ran.ids += part["token_ids"][0].tolist()
    if result["eos"]:
        ran.reason = result.get("eos_reason", result["stage"])
