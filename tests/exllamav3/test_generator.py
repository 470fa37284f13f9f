"""The filter through everything that the real generator does with a job."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
import torch
from exllamav3 import AsyncGenerator, AsyncJob, Filter, LLGuidanceFilter
from exllamav3.generator.sampler import GreedySampler

from larksong.engine.events import FunctionOpen
from larksong.engine.packed import pack_mask
from larksong.grammars import wire_format
from tests.exllamav3.contract import ARGUMENTS, SHORT, Only, calls_of, events_of, same
from tests.exllamav3.rig import Ran, Rig, note
from tests.exllamav3.stand_in.model import hashed
from tests.support.generations import CALL_TEXT

LONG = {"type": "array", "items": {"type": "integer"}, "minItems": 500}


def test_jobs_with_and_without_filters_run_together_as_they_run_alone(rig: Rig) -> None:
    def jobs() -> list[Any]:
        return [
            rig.job(f"prompt {number}", *([rig.filter(rig.json_matcher(SHORT))] if number % 2 else []),
                    seed=number, max_new_tokens=60 + number)
            for number in range(6)
        ]  # fmt: skip

    together = rig.run(rig.generator(), *jobs())
    alone = [rig.run(rig.generator(), job)[0] for job in jobs()]
    assert [ran.ids for ran in together] == [ran.ids for ran in alone]


def test_a_batch_smaller_than_its_jobs_serves_them_in_turn(rig: Rig) -> None:
    filters = [rig.filter(rig.json_matcher(SHORT)) for _ in range(5)]
    jobs = [rig.job(f"prompt {number}", ours, seed=number) for number, ours in enumerate(filters)]
    ran = rig.run(rig.generator(max_batch_size=2), *jobs)
    for ours, one in zip(filters, ran, strict=True):
        same(ours, one)
        assert ours.fault is None


@pytest.mark.parametrize("tokens", [1, 5, 20, 30])
def test_a_limit_inside_a_call_is_no_end_of_the_grammar(rig: Rig, tokens: int) -> None:
    rig.follow({"hello": CALL_TEXT})
    for drafts in ({}, {"forced": 16}):
        ours = rig.filter()
        (ran,) = rig.run(rig.generator(**drafts), rig.job("hello", ours, max_new_tokens=tokens))
        assert ran.reason == "max_new_tokens"
        assert len(ran.ids) == tokens
        same(ours, ran)
        assert not ours.finished
        assert not ours.is_completed()


def test_every_end_token_must_be_a_stop_condition(rig: Rig) -> None:
    """Without it the end is given out like any other token: so the backend passes all of them."""
    first, second = sorted(rig.vocabulary.eos_ids)
    noise = hashed(rig.model.width)
    for end in (first, second):
        rig.model.policy = lambda prefix, end=end: noise(prefix) + 90 * (np.arange(rig.model.width) == end)
        ours = rig.filter(rig.json_matcher({"const": 7}))
        (ran,) = rig.run(rig.generator(), rig.job("hello", ours))
        assert (ran.reason, ran.text, ran.ids[-1]) == ("stop_token", "7", end)
        assert "token_ids" not in ran.last  # held back, and not given out
        ours = rig.filter(rig.json_matcher({"const": 7}))
        (ran,) = rig.run(rig.generator(), rig.job("hello", ours, stops=()))
        assert (ran.reason, ours.finished) == ("end_filter", True)
        assert ran.last["token_ids"][0].tolist() == [end]


def test_a_job_that_is_requeued_keeps_its_filter(rig: Rig) -> None:
    plain = rig.filter(rig.json_matcher(LONG))
    (other,) = rig.run(rig.generator(), rig.job("hello", plain, max_new_tokens=600))
    for drafts in ({}, {"ngram_match_min": 2}, {"forced": 8}):
        ours = rig.filter(rig.json_matcher(LONG))
        job = rig.job("hello", ours, max_new_tokens=600, max_rq_tokens=256)
        (ran,) = rig.run(rig.generator(**drafts), job)
        assert any(result.get("requeue") for result in ran.results)
        assert ran.ids == other.ids
        same(ours, ran)
        assert events_of(ours) == events_of(plain)


def test_a_job_that_was_taken_out_and_put_back_goes_on_as_if_nothing_had_been(rig: Rig) -> None:
    """What the worker does with a job whose reader is slow, by exllamav3's own requeue."""
    ours, plain = rig.filter(rig.json_matcher(LONG)), rig.filter(rig.json_matcher(LONG))
    (wanted,) = rig.run(rig.generator(), rig.job("hello", plain, max_new_tokens=400))
    generator = rig.generator()
    job, other = rig.job("hello", ours, max_new_tokens=400), rig.job("other", max_new_tokens=900)
    generator.enqueue([job, other])
    ran = Ran()
    for step in range(2000):
        for result in generator.iterate():
            if result["job"] is job:
                note(ran, result)
        if step in (50, 100, 300):
            generator.cancel(job)
            for _ in range(3):
                generator.iterate()
            generator.pending_jobs.append(job.prepare_for_requeue())
        if ran.reason:
            break
    assert (ran.ids, ran.reason) == (wanted.ids, wanted.reason)


def test_a_healed_token_is_not_the_filters(rig: Rig) -> None:
    """The last token of the prompt is written again and longer; the grammar begins behind it."""
    ours = rig.filter(rig.json_matcher({"enum": ["yes", "no"]}))
    (ran,) = rig.run(rig.generator(), rig.job("The wind", ours, token_healing=True))
    assert [token.token for token in ours.accepted] == ran.ids[1:]
    assert ran.text.endswith(('"yes"', '"no"'))
    assert ours.fault is None


def test_a_trigger_inside_a_draft_wakes_the_filter(rig: Rig) -> None:
    marker = rig.vocabulary.special["<think>"]
    value = '{"city": "Rome", "days": 12}'
    text = f"so it is so it is <think>{value}"
    rig.follow({f"{text} {text}": f"{text} {text}"})
    # The model goes on to write the same once more, so that n-grams draft the marker and what is behind it.
    found = []
    for drafts in ({}, {"ngram_match_min": 1, "num_draft_tokens": 6}):
        rig.model.forwards = 0
        ours = rig.filter(rig.json_matcher(SHORT), trigger_token=marker)
        (ran,) = rig.run(rig.generator(**drafts), rig.job(f"{text} {text}", ours))
        assert marker in ran.ids
        behind = ran.ids[ran.ids.index(marker) + 1 :]
        assert [token.token for token in ours.accepted] == behind
        assert ours.finished
        assert json.loads(b"".join(rig.vocabulary.tokens[token] for token in behind)) == json.loads(value)
        found.append((ran.ids, rig.model.forwards))
    (plain, forwards), (drafted, fewer) = found
    assert plain == drafted
    assert fewer < forwards


def test_a_rewind_before_the_trigger_puts_the_filter_to_sleep(rig: Rig) -> None:
    marker = rig.vocabulary.special["<think>"]
    rig.follow({"hello": 'well <think>"yes"'})
    ours = rig.filter(rig.json_matcher({"enum": ["yes", "no"]}), trigger_token=marker)
    # The text of the marker is held as part of a banned string until that is complete.
    job = rig.job("hello", ours, banned_strings=['<think>"y'], decode_special_tokens=True, max_new_tokens=40)
    (ran,) = rig.run(rig.generator(), job)
    assert any("suppressed_text" in result for result in ran.results)
    behind = ran.ids[ran.ids.index(marker) + 1 :] if marker in ran.ids else []
    assert [token.token for token in ours.accepted] == behind
    assert ours.fault is None


@pytest.mark.parametrize("agrees", [True, False])
def test_a_draft_model_changes_no_text(rig: Rig, agrees: bool) -> None:
    draft, cache = rig.draft()
    rig.follow({"hello": CALL_TEXT})
    draft.policy = rig.model.policy if agrees else hashed(rig.model.width, seed=5)
    found = []
    for drafts in ({}, {"draft_model": draft, "draft_cache": cache}):
        rig.model.forwards = 0
        ours = rig.filter()
        (ran,) = rig.run(rig.generator(**drafts), rig.job("hello", ours))
        assert calls_of(ours) == [ARGUMENTS]
        same(ours, ran)
        found.append((ran.ids, rig.model.forwards))
    assert found[0][0] == found[1][0]
    assert found[1][1] < found[0][1] * 0.4 if agrees else found[1][1] <= found[0][1]


@pytest.mark.parametrize("more", ["alone", "n-gram", "draft model"])
def test_forced_tokens_change_no_text_and_save_passes(rig: Rig, more: str) -> None:
    options: dict[str, Any] = {}
    if more == "n-gram":
        options = {"ngram_match_min": 2}
    elif more == "draft model":
        model, cache = rig.draft()
        model.policy = hashed(rig.model.width, seed=5)  # guesses wrong: what is forced goes before it
        options = {"draft_model": model, "draft_cache": cache}
    rig.follow({"hello": CALL_TEXT})
    found = []
    for forced in (0, 16):
        rig.model.forwards = 0
        ours = rig.filter()
        (ran,) = rig.run(rig.generator(forced=forced, **options), rig.job("hello", ours))
        assert calls_of(ours) == [ARGUMENTS]
        found.append((ran.ids, rig.model.forwards, sum(token.forced for token in ours.accepted)))
    (plain, forwards, none), (drafted, fewer, many) = found
    assert plain == drafted
    assert none == 0
    assert many > 5
    assert fewer < 0.7 * forwards


def test_a_draft_model_reads_the_forced_tokens_too(rig: Rig) -> None:
    """Their places in its cache are not left empty, nor hold what it had guessed in their stead."""
    draft, cache = rig.draft()
    rig.follow({"hello": CALL_TEXT})
    written = [*rig.ids("hello"), *rig.ids(CALL_TEXT)]
    agrees = rig.model.policy
    seen = []

    def policy(prefix: np.ndarray) -> np.ndarray:
        seen.append(prefix.tolist())
        return agrees(prefix)

    draft.policy = policy
    forwards = []
    for forced in (16, 0):
        rig.model.forwards = 0
        ours = rig.filter()
        generator = rig.generator(forced=forced, draft_model=draft, draft_cache=cache, num_draft_tokens=2)
        rig.run(generator, rig.job("hello", ours))
        assert calls_of(ours) == [ARGUMENTS]
        forwards.append(rig.model.forwards)
    assert forwards[0] < forwards[1]
    assert len(seen) > 20
    assert all(prefix[: len(written)] == written[: len(prefix)] for prefix in seen)


def test_forced_tokens_beside_jobs_that_have_none(rig: Rig) -> None:
    """The passes of the others carry drafts that are refused; no text changes."""
    rig.follow({"hello": CALL_TEXT})

    def jobs() -> list[Any]:
        return [
            rig.job("hello", rig.filter()),
            rig.job("free", max_new_tokens=50),
            rig.job("string", rig.filter(rig.json_matcher(SHORT)), max_new_tokens=80),
        ]

    plain = rig.run(rig.generator(), *jobs())
    drafted = rig.run(rig.generator(forced=16), *jobs())
    assert [ran.ids for ran in plain] == [ran.ids for ran in drafted]


def test_a_job_keeps_the_drafts_of_its_draft_model_beside_a_job_with_forced_tokens(rig: Rig) -> None:
    """One forced token does not make the whole batch's drafts as short as itself."""
    draft, cache = rig.draft()
    text = "so many words that nobody has counted them, and yet more of them, " * 3
    rig.follow({"free": text, "hello": CALL_TEXT})
    draft.policy = rig.model.policy
    generator = rig.generator(forced=16, draft_model=draft, draft_cache=cache, num_draft_tokens=4)
    passes, texts = [], []
    for more in ([], [rig.job("hello", rig.filter())]):
        rig.model.forwards = 0
        first, *_ = rig.run(generator, rig.job("free"), *more)
        passes.append(rig.model.forwards)
        texts.append(first.ids)
    assert texts[0] == texts[1]
    assert passes[1] <= passes[0] + 1


def test_what_a_recurrent_draft_model_has_read_is_not_taken_from_under_it(rig: Rig) -> None:
    """exllamav3 hands over its whole buffer, with rows for jobs that are not there."""
    rig.follow({"hello": CALL_TEXT})
    generator = rig.generator(forced=16)
    ours = rig.filter()
    job = rig.job("hello", ours)
    generator.enqueue(job)
    generator.iterate()
    assert job.is_prefill_done()
    must = ours.draft()
    generator.draft_recurrent = True
    wrong = next(token for token in range(9, 99) if token != must[0])
    for own, wanted in (([must[0]], list(must)), ([wrong], [wrong])):
        buffer = torch.tensor([own] * 5)
        found = generator.iterate_hybrid_gen(buffer, 16)
        assert found[0].tolist() == wanted


def test_sampled_tokens_are_drawn_alike_with_and_without_forced_ones(rig: Rig) -> None:
    """The model has no script: each place is drawn at random, forced or not."""
    for seed in range(8):
        filters = [rig.filter(rig.json_matcher(SHORT)) for _ in range(2)]
        (plain,) = rig.run(rig.generator(), rig.job("hello", filters[0], seed=seed))
        (drafted,) = rig.run(rig.generator(forced=16), rig.job("hello", filters[1], seed=seed))
        assert plain.ids == drafted.ids


async def test_jobs_of_the_asynchronous_generator_are_cancelled_one_by_one(rig: Rig) -> None:
    generator = AsyncGenerator(model=rig.model, cache=rig.cache, tokenizer=rig.tokenizer, max_batch_size=4)
    filters = [rig.filter(rig.json_matcher(LONG)) for _ in range(6)]

    async def run(number: int) -> int:
        job = AsyncJob(
            generator,
            input_ids=torch.tensor([rig.ids(f"prompt {number}")]),
            max_new_tokens=60,
            sampler=GreedySampler(),
            stop_conditions=list(rig.vocabulary.eos_ids),
            filters=[filters[number]],
        )
        seen = 0
        async for _ in job:
            seen += 1
            if number % 2 and seen == 10:
                await job.cancel()
        return len(filters[number].accepted)

    written = await asyncio.gather(*(run(number) for number in range(6)))
    assert written[::2] == [60, 60, 60]
    assert all(count < 60 for count in written[1::2])
    assert generator.generator.num_remaining_jobs() == 0
    assert all(ours.fault is None for ours in filters)
    await generator.close()


class Form(Only):
    """Masks of a given format and width, for what exllamav3 makes of them."""

    def __init__(self, rig: Rig, ids: set[int], dtype: torch.dtype, width: int) -> None:
        super().__init__(rig, ids)
        self.dtype, self.width = dtype, width

    def get_next_logit_mask(self) -> torch.Tensor:
        if self.dtype is torch.int32:
            kept = {token for token in self.ids if token < self.width * 32}
            return torch.from_numpy(pack_mask(kept, self.width)[None])
        mask = torch.full((1, self.width), float("-inf"), dtype=self.dtype)
        mask[0, sorted(self.ids)] = 0
        return mask


def test_packed_masks_may_have_any_width_and_dense_ones_only_the_padded(rig: Rig) -> None:
    low, high = rig.ids("a")[0], rig.end
    padded = -(-rig.tokenizer.config.vocab_size // 32) * 32
    for width in (1 + (high >> 5), padded // 32, 500):
        (ran,) = rig.run(rig.generator(), rig.job("hello", Form(rig, {high}, torch.int32, width)))
        assert ran.ids == [high]
    (ran,) = rig.run(
        rig.generator(),
        rig.job("hello", Form(rig, {low, high}, torch.int32, 1 + (low >> 5)), max_new_tokens=9),
    )
    assert ran.ids == [low] * 9  # what a narrow mask does not reach is refused
    (ran,) = rig.run(rig.generator(), rig.job("hello", Form(rig, {high}, torch.half, padded)))
    assert ran.ids == [high]
    for width in (rig.tokenizer.actual_vocab_size, rig.tokenizer.config.vocab_size, padded + 32):
        with pytest.raises(RuntimeError):
            rig.run(rig.generator(), rig.job("hello", Form(rig, {high}, torch.half, width)))


def test_an_empty_mask_is_token_0_without_an_error(rig: Rig) -> None:
    """Why our filter never gives one."""
    taken: list[int] = []

    class Nothing(Form):
        def accept_token(self, token: int) -> None:
            taken.append(token)

    rig.run(rig.generator(), rig.job("hello", Nothing(rig, set(), torch.int32, 18), max_new_tokens=3))
    assert taken == [0, 0, 0]


def test_another_filters_exception_breaks_the_generator_for_all(rig: Rig) -> None:
    """Why ours never raises, and catches what others raise."""
    everything = set(range(rig.tokenizer.actual_vocab_size))
    with pytest.raises(RuntimeError, match="another filter's fault"):
        rig.run(rig.generator(), rig.job("hello"), rig.job("bad", Only(rig, everything, "raises")))


def test_llguidance_beside_our_filter_narrows_it(rig: Rig) -> None:
    theirs = LLGuidanceFilter(rig.tokenizer, None, None, False, regex='"[a-c]{2,4}"')
    ours = rig.filter(rig.json_matcher({"type": "string", "minLength": 3}), also=[theirs])
    (ran,) = rig.run(rig.generator(), rig.job("hello", ours))
    value = json.loads(ran.text)
    assert 3 <= len(value) <= 4
    assert set(value) <= set("abc")
    assert ours.fault is None
    contrary = LLGuidanceFilter(rig.tokenizer, None, None, False, regex="[0-9]+")
    ours = rig.filter(rig.json_matcher({"type": "string"}), also=[contrary])
    rig.run(rig.generator(), rig.job("hello", ours))
    assert ours.fault is not None
    assert "no token in common" in ours.fault


def test_events_tell_the_name_when_it_is_certain(rig: Rig) -> None:
    rig.follow({"hello": wire_format("qwen3_coder").render_call("get_weather", ARGUMENTS)})
    ours = rig.filter(rig.matcher(rig.grammar(format="qwen3_coder")))
    rig.run(rig.generator(), rig.job("hello", ours))
    places = [i for i, token in enumerate(ours.accepted) if FunctionOpen("get_weather") in token.events]
    assert len(places) == 1
    assert places[0] < len(ours.accepted) / 2


def test_symbols_of_the_extension_that_nobody_replaced_raise_when_called() -> None:
    import exllamav3_ext

    from tests.exllamav3.stand_in.extension import READ_AT_IMPORT

    assert exllamav3_ext.asked == set(READ_AT_IMPORT)
    with pytest.raises(NotImplementedError, match="exl3_gemm"):
        exllamav3_ext.exl3_gemm(1)


def test_the_stand_in_is_the_version_that_is_pinned() -> None:
    from larksong.engine.backends.exllamav3.version import TESTED, installed
    from tests.exllamav3.stand_in.install import VERSION

    assert installed() == VERSION
    assert VERSION in TESTED


def test_filters_are_subclasses_of_exllamav3s(rig: Rig) -> None:
    assert isinstance(rig.filter(), Filter)


def test_formatron_beside_our_filter_narrows_it(rig: Rig) -> None:
    from exllamav3 import FormatronFilter
    from exllamav3.generator.filter import formatron

    assert formatron._load_formatron()
    from formatron.formatter import FormatterBuilder
    from formatron.integrations.utils import update_vocab_dot_G

    def theirs(pattern: str) -> Any:
        builder = FormatterBuilder()
        builder.append_str(f"{builder.regex(pattern)}")
        return FormatronFilter(
            rig.tokenizer,
            formatter_builder=builder,
            eos_after_completed=True,
            vocab_processors=[update_vocab_dot_G],
        )

    ours = rig.filter(rig.json_matcher({"type": "string", "minLength": 3}), also=[theirs('"[a-c]{2,4}"')])
    (ran,) = rig.run(rig.generator(), rig.job("hello", ours))
    assert 3 <= len(json.loads(ran.text)) <= 4
    assert set(json.loads(ran.text)) <= set("abc")
    assert ours.fault is None
    ours = rig.filter(rig.json_matcher({"type": "string"}), also=[theirs("[0-9]+x")])
    rig.run(rig.generator(), rig.job("hello", ours))
    assert "no token in common" in (ours.fault or "")
