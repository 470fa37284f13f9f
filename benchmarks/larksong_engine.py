"""Larksong's engine as a contender."""

from __future__ import annotations

from importlib.metadata import version

from benchmarks.contender import Forced, Words
from benchmarks.workload import Workload
from larksong.api.commands.bench.measure import LarksongBench
from larksong.api.commands.bench.timing import Cursor
from larksong.engine.vocabulary import Vocabulary


class Larksong(LarksongBench):
    """With the package's own caches of grammars, tables and walks."""

    learns = True

    def __init__(self, workload: Workload) -> None:
        vocabulary = Vocabulary.from_tokenizer(workload.tokenizer, eos=[workload.eos], width=workload.width)
        super().__init__(vocabulary, workload.tokenizer, ("hermes", "qwen3_coder"))

    def version(self) -> str:
        return version("larksong")

    def packed(self, cursor: Cursor) -> Words:
        words: Words = cursor.owner.mask()
        return words

    def forced(self, cursor: Cursor) -> Forced | None:
        forced: Forced | None = getattr(cursor.owner, "forced", None)
        return forced
