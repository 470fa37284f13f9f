"""One request on its way through exllamav3: the job, and what its results become."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, Literal

import torch
from exllamav3 import Job, Tokenizer

from larksong.engine.backends.base import Finish, Generation, Logprobs, Step
from larksong.engine.backends.constraint import BudgetReport, budget_report, constrain
from larksong.engine.backends.exllamav3.filter import MatcherFilter
from larksong.engine.backends.exllamav3.samplers import sampler_of
from larksong.engine.backends.handover import Handover
from larksong.engine.events import Content, Events
from larksong.engine.vocabulary import Vocabulary

Item = Step | Finish


class Sequence:
    """A job and its reader. From its start on it belongs to the generator's thread, `gone` excepted.

    Raises PromptError and BudgetTooSmall, see `Backend.generate`.
    """

    def __init__(
        self,
        generation: Generation,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        context_length: int,
        requeue_tokens: int | None,
        mass_share: float = 0.0,
    ) -> None:
        cursor, left = constrain(generation, vocabulary, context_length)
        sampling = generation.sampling
        sampler = sampler_of(sampling, tokenizer, mass_share)
        self._filter: MatcherFilter | None = None
        if cursor is not None:
            self._filter = MatcherFilter(
                tokenizer, cursor, ends=vocabulary.eos_ids, min_tokens=sampling.min_tokens
            )
            self._filter.drafts = generation.forced_tokens
            self._filter.measured = sampler.take
        self._vocabulary = vocabulary
        banned = [text for text in sampling.banned_strings if _may_come(text)]
        # Tokens that can be taken back, or whose probabilities are told, wait until exllamav3 gives them out.
        self._waits = bool(banned) or sampling.logprobs is not None
        self._given = 0
        self._cached_tokens = 0
        self._began = time.perf_counter()
        self.job = Job(
            input_ids=torch.tensor([generation.prompt], dtype=torch.long),
            max_new_tokens=left,
            # With a grammar it may be that nothing but the end is allowed: the filter knows.
            min_new_tokens=sampling.min_tokens if cursor is None else 0,
            sampler=sampler,
            seed=sampling.seed,
            stop_conditions=sorted(vocabulary.eos_ids),
            filters=[] if self._filter is None else [self._filter],
            banned_strings=banned or None,
            # Without one it claims what its answer can take, which is less here.
            max_rq_tokens=requeue_tokens if requeue_tokens is not None and requeue_tokens < left else None,
            return_probs=sampling.logprobs is not None,
            return_top_tokens=min(sampling.logprobs or 0, vocabulary.width),
            identifier=self,
        )
        self.handover: Handover[Item] | None = None
        self.paused = False
        self.over = False
        """Ended; nothing is given to the reader any more."""
        self.gone = False
        """Its reader has gone: set from the reader's side."""

    def put(self, items: list[Item]) -> None:
        """Give items to the reader, who is woken by `announce`."""
        assert self.handover is not None
        for item in items:
            self.over = isinstance(item, Finish)
            self.handover.put_unannounced(item)

    def read(self, result: dict[str, Any]) -> list[Item]:
        """What one of exllamav3's results for this job means."""
        if result["stage"] == "error":  # cache or prefill of this job alone
            error = result["error"]
            return [self.end("error", error=f"{type(error).__name__}: {error}")]
        if result["stage"] != "streaming":
            return []
        items: list[Item] = []
        tokens = self._free(result) if self._filter is None else self._read(self._filter, result)
        items += tokens
        if result["eos"]:
            self._cached_tokens = result["cached_tokens"]
            items.append(self._end(result["eos_reason"]))
        return items

    def end(
        self, reason: Literal["stop", "length", "error"], events: Events = (), *, error: str | None = None
    ) -> Finish:
        """The end: `events` of the last token, and what the end of the text reveals."""
        if self._filter is not None:
            events += self._filter.finish()
            if error is None and self._filter.fault is not None:
                reason, error = "error", self._filter.fault
        return Finish(reason, events, error, self._budget_report.finished_calls, self._cached_tokens)

    def _end(self, reason: str) -> Finish:
        if self._filter is None:
            return self.end("length" if reason == "max_new_tokens" else "stop")
        last = self._filter.accepted[self._given :]
        events = last[0].events if last else ()
        stopped = self._filter.finished and not self._budget_report.limited
        return self.end("stop" if stopped else "length", events)

    @property
    def _budget_report(self) -> BudgetReport:
        """From the filter's cursor: it works on a copy."""
        return budget_report(None if self._filter is None else self._filter.cursor)

    def _read(self, filter: MatcherFilter, result: dict[str, Any]) -> Iterator[Step]:
        """The tokens that the filter has accepted and exllamav3 will not take back; the end is none."""
        # One step can give several results; what the filter knows is already at the last of them.
        until = len(filter.accepted) - (filter.finished or filter.fault is not None)
        if self._waits and not result["eos"]:
            until = min(until, self._given + _count(result))
        known = list(_logprobs(result))
        for number, token in enumerate(filter.accepted[self._given : until]):
            self._given += 1
            yield Step(
                token.token,
                self._vocabulary.text(token.token),
                token.events,
                token.allowed,
                token.at - self._began,
                token.forced,
                known[number] if number < len(known) else None,
                token.kept,
            )

    def _free(self, result: dict[str, Any]) -> Iterator[Step]:
        """The tokens of a job that nothing constrains."""
        known = list(_logprobs(result))
        now = time.perf_counter() - self._began
        for number, token in enumerate(_tokens(result)):
            if token in self._vocabulary.eos_ids:
                return
            text = self._vocabulary.text(token)
            events: Events = (Content(text),) if text else ()
            logprobs = known[number] if number < len(known) else None
            yield Step(token, text, events, self._vocabulary.width, now, False, logprobs)


def _may_come(text: str) -> bool:
    """Whether any tokens could spell it: JSON can hold lone surrogates, UTF-8 cannot."""
    return bool(text) and not any("\ud800" <= character <= "\udfff" for character in text)


def _parts(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a result gives out, and at the end what was still held."""
    yield result
    if result["eos"] and "held" in result and result["eos_reason"] != "stop_string":
        yield result["held"]


def _tokens(result: dict[str, Any]) -> list[int]:
    return [
        token for part in _parts(result) if "token_ids" in part for token in part["token_ids"][0].tolist()
    ]


def _count(result: dict[str, Any]) -> int:
    return result["token_ids"].shape[-1] if "token_ids" in result else 0


def _logprobs(result: dict[str, Any]) -> Iterator[Logprobs]:
    """For each token of a result, from the raw logits: before mask, penalties and temperature."""
    for part in _parts(result):
        if "token_probs" not in part:
            continue
        chosen = part["token_probs"][0].tolist()
        tokens = part["top_k_tokens"][0].tolist() if "top_k_tokens" in part else [[]] * len(chosen)
        probabilities = part["top_k_probs"][0].tolist() if "top_k_probs" in part else [[]] * len(chosen)
        for own, ids, values in zip(chosen, tokens, probabilities, strict=True):
            pairs = zip(ids, map(_log, values), strict=True)
            yield Logprobs(_log(own), tuple(pairs))


def _log(probability: float) -> float:
    """Natural logarithm; of 0 the least that JSON can carry."""
    return math.log(probability) if probability > 0 else -9999.0
