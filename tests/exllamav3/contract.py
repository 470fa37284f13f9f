"""What our filter promises inside the real generator, as cases that any filter class can be put through.

`test_contract.py` runs them with the filter as it is; `test_mutations.py` with copies that are broken on
purpose, which must fail at least one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from exllamav3 import Filter

from larksong.engine.backends.exllamav3.filter import MatcherFilter
from larksong.engine.events import Events, Json
from larksong.engine.matcher import Matcher
from larksong.engine.packed import pack_mask
from tests.exllamav3.rig import Ran, Rig
from tests.support.calls import joined, turn
from tests.support.generations import CALL_TEXT

Class = type[MatcherFilter]
Case = Callable[[Rig, Class], None]

ARGUMENTS = {"city": "Amsterdam", "unit": "celsius"}
SHORT = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


def made(rig: Rig, kind: Class, matcher: Any = None, **options: Any) -> MatcherFilter:
    return kind(rig.tokenizer, matcher or rig.matcher(), ends=rig.vocabulary.eos_ids, **options)


def events_of(filter: MatcherFilter) -> Events:
    return (*(event for token in filter.accepted for event in token.events), *filter.finish())


def calls_of(filter: MatcherFilter) -> list[dict[str, Any] | None]:
    return [call.arguments for call in turn(events_of(filter)).calls]


def same(filter: MatcherFilter, ran: Ran) -> None:
    """What the filter read is what exllamav3 gave out."""
    assert [token.token for token in filter.accepted] == ran.ids


def writes_a_call(rig: Rig, kind: Class) -> None:
    rig.follow({"hello": CALL_TEXT})
    ours = made(rig, kind)
    (ran,) = rig.run(rig.generator(), rig.job("hello", ours))
    assert (ran.reason, ours.fault, ours.finished) == ("stop_token", None, True)
    assert calls_of(ours) == [ARGUMENTS]
    same(ours, ran)


def keeps_to_its_mask(rig: Rig, kind: Class) -> None:
    """The model wants something else at every step."""
    for seed in range(6):
        ours = made(rig, kind, rig.json_matcher(SHORT))
        (ran,) = rig.run(rig.generator(), rig.job("hello", ours, seed=seed, max_new_tokens=400))
        assert ours.fault is None
        same(ours, ran)
        check = rig.json_matcher(SHORT)
        for token in ran.ids:
            assert check.allows(token), (token, ran.text)
            check.advance(token)


def allows_the_last_id_of_the_vocabulary(rig: Rig, kind: Class) -> None:
    """The end tokens are the last ids: a mask that is too short would ban them."""
    ours = made(rig, kind, rig.json_matcher({"const": 7}))
    assert max(rig.vocabulary.eos_ids) == rig.tokenizer.actual_vocab_size - 1
    (ran,) = rig.run(rig.generator(), rig.job("hello", ours, max_new_tokens=20))
    assert (ran.reason, ran.text) == ("stop_token", "7")


def gives_a_mask_of_the_models_width(rig: Rig, kind: Class) -> None:
    ours = made(rig, kind)
    rig.run(rig.generator(), rig.job("hello", ours, max_new_tokens=1))
    mask = ours.get_next_logit_mask()
    assert mask.dtype == torch.int32
    assert mask.shape == (1, -(-rig.tokenizer.config.vocab_size // 32))


class FaultyMatcher:
    """A matcher that fails inside, in one of its methods, once it has written `after` tokens."""

    def __init__(self, inner: Matcher, where: str, after: int = 40) -> None:
        self._inner = inner
        self._where = where
        self._after = after
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        if name == self._where and self._count >= self._after:
            raise ZeroDivisionError("on purpose")
        return getattr(self._inner, name)

    def advance(self, token: int) -> Events:
        self._count += 1
        if self._where == "advance" and self._count >= self._after:
            raise ZeroDivisionError("on purpose")
        return self._inner.advance(token)

    def rollback(self, count: int) -> None:
        if self._where == "rollback":
            raise ZeroDivisionError("on purpose")
        self._count -= count
        self._inner.rollback(count)

    def fork(self) -> FaultyMatcher:
        return FaultyMatcher(self._inner.fork(), self._where, self._after)


def a_fault_ends_one_job_and_leaves_seven_alone(rig: Rig, kind: Class) -> None:
    """Eight jobs; one filter fails on the way, at each of the places where it can. Once they are long."""
    free = {"type": "array", "items": {"type": "string"}, "minItems": 200}
    prompts = [f"number {number}" for number in range(7)]

    def jobs(tokens: int, *more: Any) -> list[Any]:
        filters = [made(rig, kind, rig.json_matcher(free)) for _ in prompts]
        pairs = zip(prompts, filters, strict=True)
        return [rig.job(prompt, ours, max_new_tokens=tokens) for prompt, ours in pairs] + list(more)

    alone = rig.run(rig.generator(), *jobs(300))
    assert [len(ran.ids) for ran in alone] == [300] * 7
    for where, tokens in (("mask", 300), ("advance", 60), ("fault", 60), ("finished", 60)):
        bad = made(rig, kind, FaultyMatcher(rig.json_matcher(free), where))
        *others, failed = rig.run(rig.generator(), *jobs(tokens, rig.job("bad", bad)))
        assert [ran.ids for ran in others] == [ran.ids[:tokens] for ran in alone]
        assert bad.fault is not None
        assert "on purpose" in bad.fault
        assert failed.reason in ("stop_token", "end_filter")
        assert len(failed.ids) < 60
    rig.follow({"bad": '["Rotterdam"'})
    bad = made(rig, kind, FaultyMatcher(rig.json_matcher(free), "rollback"))
    good = made(rig, kind, rig.json_matcher(free))
    failed, fine = rig.run(
        rig.generator(),
        rig.job("bad", bad, banned_strings=["rotter"]),
        rig.job("other", good, max_new_tokens=60),
    )
    assert bad.fault is not None
    assert "on purpose" in bad.fault
    assert failed.reason == "stop_token"
    assert (len(fine.ids), good.fault) == (60, None)


class Only(Filter):  # type: ignore[misc]
    """Another filter: allows some ids, in a mask of its own format and width."""

    def __init__(self, rig: Rig, ids: set[int], form: str = "packed") -> None:
        super().__init__(rig.tokenizer, None, None, False)
        self.ids, self.form = ids, form
        self.fed: list[int] = []

    def reset(self) -> None:
        self.fed.clear()

    def accept_token(self, token: int) -> None:
        if token not in self.ids:
            raise ValueError("a token that was not allowed")
        self.fed.append(token)

    def rollback_tokens(self, num_tokens: int) -> bool:
        del self.fed[-num_tokens:]
        return True

    def is_completed(self) -> bool:
        return False

    def get_next_logit_mask(self) -> torch.Tensor:
        if self.form == "dense":
            mask = torch.full((1, self.vocab_size), float("-inf"), dtype=torch.half)
            mask[0, sorted(self.ids)] = 0
            return mask
        if self.form == "raises":
            raise RuntimeError("another filter's fault")
        words = {"packed": self.vocab_size // 32, "wide": 200}[self.form]
        return torch.from_numpy(pack_mask(self.ids, words)[None])


def an_empty_intersection_ends_one_job_with_a_clear_error(rig: Rig, kind: Class) -> None:
    everything = set(range(rig.tokenizer.actual_vocab_size))
    for form in ("packed", "dense", "wide"):
        narrowed = made(
            rig, kind, rig.json_matcher({"enum": ["left", "right"]}), also=[Only(rig, everything, form)]
        )
        (ran,) = rig.run(rig.generator(), rig.job("hello", narrowed))
        assert ran.text in ('"left"', '"right"')
        lone = made(rig, kind, also=[Only(rig, {rig.ids("no")[0]}, form)])
        good = made(rig, kind, rig.json_matcher(SHORT))
        bad, fine = rig.run(
            rig.generator(), rig.job("hello", lone), rig.job("other", good, max_new_tokens=100)
        )
        assert lone.fault is not None
        assert "no token in common" in lone.fault
        assert len(bad.ids) <= 1
        assert good.fault is None
        same(good, fine)
    raising = made(rig, kind, also=[Only(rig, everything, "raises")])
    rig.run(rig.generator(), rig.job("hello", raising))
    assert raising.fault is not None
    assert "another filter's fault" in raising.fault


def a_mask_is_never_empty(rig: Rig, kind: Class) -> None:
    """exllamav3 takes token 0 of an empty mask: where a job itself bans what is left, it ends with a reason."""
    lone = made(rig, kind, rig.json_matcher({"const": 7}))
    good = made(rig, kind, rig.json_matcher(SHORT))
    bad, fine = rig.run(
        rig.generator(),
        rig.job("hello", lone, min_new_tokens=30),
        rig.job("other", good, max_new_tokens=100),
    )
    assert lone.fault == "min_new_tokens bans the end, and the grammar allows nothing else"
    assert bad.reason == "end_filter"
    assert good.fault is None
    same(good, fine)
    longer = made(
        rig, kind, rig.json_matcher({"type": "array", "items": {"type": "integer"}, "minItems": 20})
    )
    (ran,) = rig.run(rig.generator(), rig.job("hello", longer, min_new_tokens=30, max_new_tokens=40))
    assert (len(ran.ids), ran.reason) == (40, "max_new_tokens")
    assert longer.fault is None


def banned_strings_are_taken_back(rig: Rig, kind: Class) -> None:
    """The model wants to write what is banned; events and mask go back with the tokens."""
    text = CALL_TEXT.replace("Amsterdam", "Rotterdam or Amsterdam")
    for drafts in ({}, {"ngram_match_min": 1, "num_draft_tokens": 3}):
        rig.follow({"Rotterdam or Amsterdam": text})
        ours = made(rig, kind)
        job = rig.job("Rotterdam or Amsterdam", ours, banned_strings=["ROTTER", "amster"])
        (ran,) = rig.run(rig.generator(**drafts), job)
        assert any("suppressed_text" in result for result in ran.results)
        same(ours, ran)
        assert ours.fault is None
        check = rig.matcher()
        for token in ran.ids:
            assert check.allows(token)
            check.advance(token)
        written = b"".join(rig.vocabulary.tokens[token] for token in ran.ids).decode(errors="replace")
        assert "rotter" not in written.lower()
        assert "amster" not in written.lower()
        # Where only a few texts are allowed, what is left is written.
        cities = rig.json_matcher({"enum": ["Rotterdam", "Amsterdam", "Rome", "Berlin"]})
        rig.follow({"a city": '"Rotterdam"'})
        ours = made(rig, kind, cities)
        job = rig.job("a city", ours, banned_strings=["rotterdam", "amster", "rom"])
        (ran,) = rig.run(rig.generator(**drafts), job)
        assert (ran.text, ran.reason, ours.fault) == ('"Berlin"', "stop_token", None)
        assert joined(events_of(ours)) == [Json(b'"Berlin"')]
        # Where none is left, the request fails, and nothing is written that the grammar does not allow.
        ours = made(rig, kind, rig.json_matcher({"const": "Rotterdam"}))
        job = rig.job("a city", ours, banned_strings=['"', "rotter"])
        rig.run(rig.generator(**drafts), job)
        assert ours.fault is not None
        assert "banned strings leave no token" in ours.fault


def drafts_are_read_like_sampled_tokens(rig: Rig, kind: Class) -> None:
    text = CALL_TEXT.replace("Amsterdam", "so so so so so so so so so so so so so so so")
    rig.follow({"hello": text})
    found = []
    for drafts in ({}, {"ngram_match_min": 2, "num_draft_tokens": 4}):
        rig.model.forwards = 0
        ours = made(rig, kind)
        (ran,) = rig.run(rig.generator(**drafts), rig.job("hello", ours))
        same(ours, ran)
        found.append((ran.ids, events_of(ours), rig.model.forwards))
    (plain, events, forwards), (drafted, drafted_events, fewer) = found
    assert (plain, events) == (drafted, drafted_events)
    assert fewer < forwards


def is_asked_in_the_order_that_we_know(rig: Rig, kind: Class) -> None:
    log: list[str] = []

    class Logged(kind):  # type: ignore[valid-type, misc]
        def attach(self, job: Any) -> None:
            log.append("attach")
            super().attach(job)

        def reset(self) -> None:
            log.append("reset")
            super().reset()

        def get_next_logit_mask(self) -> torch.Tensor:
            pool = threading.current_thread() is not threading.main_thread()
            log.append("mask in the pool" if pool else "mask")
            return super().get_next_logit_mask()

        def accept_token(self, token: int) -> None:
            log.append("accept")
            super().accept_token(token)

    ours = made(rig, Logged, rig.json_matcher({"const": "no"}))
    (ran,) = rig.run(rig.generator(), rig.job("hello", ours))
    assert ran.reason == "stop_token"
    assert log == ["attach", "reset", *["mask in the pool", "accept"] * len(ran.ids)]
    assert np.all(ours.get_next_logit_mask().numpy()[0] == pack_mask(rig.vocabulary.eos_ids, 18))


CASES: tuple[Case, ...] = (
    writes_a_call,
    keeps_to_its_mask,
    allows_the_last_id_of_the_vocabulary,
    gives_a_mask_of_the_models_width,
    a_fault_ends_one_job_and_leaves_seven_alone,
    an_empty_intersection_ends_one_job_with_a_clear_error,
    a_mask_is_never_empty,
    banned_strings_are_taken_back,
    drafts_are_read_like_sampled_tokens,
    is_asked_in_the_order_that_we_know,
)
