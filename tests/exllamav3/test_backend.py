"""The backend over the real package: requests in, steps and ends out."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from larksong.engine.backends.base import Generation, ReasoningBudget, Sampling, Step
from larksong.engine.backends.errors import (
    BackendUnavailable,
    BudgetTooSmall,
    ModelNotFound,
    NotAModel,
    PromptTooLong,
)
from larksong.engine.backends.exllamav3.backend import ExllamaV3Backend
from larksong.engine.backends.exllamav3.settings import ExllamaV3Settings
from larksong.engine.engine import Engine
from larksong.engine.events import Reasoning
from larksong.engine.matcher import Matcher
from larksong.engine.packed import unpack
from larksong.grammars import wire_format
from larksong.grammars.answers.response_format import response_grammar
from tests.exllamav3.contract import ARGUMENTS, SHORT, FaultyMatcher
from tests.exllamav3.folder import write_folder
from tests.exllamav3.rig import Rig
from tests.exllamav3.stand_in.model import PrefixModel, hashed, scripted
from tests.support.calls import turn
from tests.support.generations import CALL_TEXT, ONE_CALL, WEATHER, collect, content
from tests.support.waiting import until

SETTINGS = ExllamaV3Settings(device="cpu", cache_tokens=16384, max_batch=16)


class Loaded:
    """A backend, its stand-in of a model, and what tests ask of both."""

    def __init__(self, folder: Path, settings: ExllamaV3Settings = SETTINGS) -> None:
        self.backend = ExllamaV3Backend.load(folder, settings)
        self.model: PrefixModel = self.backend._model
        self.engine = Engine(self.backend.vocabulary, encode=self._encode)

    def _encode(self, text: str) -> list[int]:
        return list(self.backend.tokenizer.encode(text, add_special_tokens=False).ids)

    def follow(self, scripts: dict[str, str]) -> None:
        end = min(self.backend.vocabulary.eos_ids)
        self.model.policy = scripted(
            self.model.width,
            {tuple(self._encode(prompt)): [*self._encode(text), end] for prompt, text in scripts.items()},
        )

    def call(self) -> Matcher:
        return self.engine.matcher(
            wire_format("hermes").grammar([WEATHER], ONE_CALL, self.backend.vocabulary)
        )

    def value(self, schema: dict[str, Any]) -> Matcher:
        return self.engine.matcher(response_grammar(schema, self.backend.vocabulary))

    def generation(
        self, prompt: str = "hello", matcher: Matcher | None = None, max_tokens: int = 100, **options: Any
    ) -> Generation:
        names = ("forced_tokens", "finish_within_budget", "reasoning_budget")
        rest = {key: options.pop(key) for key in names if key in options}
        return Generation(
            tuple(self._encode(prompt)), matcher, Sampling(**{"seed": 1, **options}), max_tokens, **rest
        )

    async def run(self, *args: Any, **options: Any) -> Any:
        return await collect(self.backend.generate(self.generation(*args, **options)))


@pytest.fixture
def loaded(folder: Path) -> Iterator[Loaded]:
    loaded = Loaded(folder)
    yield loaded
    loaded.backend.close()


def told(steps: list[Step], end: Any) -> Any:
    return turn([event for item in (*steps, end) for event in item.events])


async def test_a_call_is_streamed_step_by_step(loaded: Loaded) -> None:
    loaded.follow({"hello": CALL_TEXT})
    steps, end = await loaded.run("hello", loaded.call())
    assert end.reason == "stop"
    (call,) = told(steps, end).calls
    assert (call.name, call.arguments) == ("get_weather", ARGUMENTS)
    assert any(step.forced for step in steps)
    assert all(step.allowed >= 1 for step in steps)
    assert len(steps) > loaded.model.forwards


async def test_forced_tokens_are_off_where_the_request_or_the_settings_say_so(
    loaded: Loaded, folder: Path
) -> None:
    loaded.follow({"hello": CALL_TEXT})
    plain, end = await loaded.run("hello", loaded.call(), forced_tokens=False)
    assert end.reason == "stop"
    assert not any(step.forced for step in plain)
    drafted, _ = await loaded.run("hello", loaded.call())
    assert [step.token for step in plain] == [step.token for step in drafted]
    off = Loaded(folder, ExllamaV3Settings(device="cpu", cache_tokens=4096, forced_draft=0))
    off.follow({"hello": CALL_TEXT})
    steps, _ = await off.run("hello", off.call())
    assert [step.token for step in steps] == [step.token for step in plain]
    assert not any(step.forced for step in steps)
    off.backend.close()


async def test_forced_tokens_are_off_with_a_version_that_was_not_tested(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("larksong.engine.backends.exllamav3.backend.installed", lambda: "1.7.0")
    other = Loaded(folder)
    other.follow({"hello": CALL_TEXT})
    steps, end = await other.run("hello", other.call())
    assert end.reason == "stop"
    assert not any(step.forced for step in steps)
    assert "forced tokens are off: exllamav3 1.7.0" in caplog.text
    other.backend.close()


async def test_reasoning_ends_when_its_budget_is_spent(loaded: Loaded) -> None:
    vocabulary = loaded.backend.vocabulary
    close = vocabulary.special["</think>"]
    matcher = loaded.engine.matcher(wire_format("hermes").text_grammar(vocabulary, in_reasoning=True))
    for spent in (0, 7):
        steps, _ = await loaded.run(
            "hello", matcher.fork(), 40, reasoning_budget=ReasoningBudget(spent, (close,), begun=True)
        )
        assert [step.token for step in steps].index(close) == spent
        assert all(isinstance(event, Reasoning) for step in steps[:spent] for event in step.events)
        assert not any(isinstance(event, Reasoning) for step in steps[spent + 1 :] for event in step.events)
    steps, _ = await loaded.run("hello", matcher.fork(), 40)
    assert close not in [step.token for step in steps]


async def test_a_budget_of_reasoning_holds_where_banned_strings_are_taken_back(loaded: Loaded) -> None:
    vocabulary = loaded.backend.vocabulary
    close = vocabulary.special["</think>"]
    loaded.follow({"hello": "one two three four five six seven"})
    matcher = loaded.engine.matcher(wire_format("hermes").text_grammar(vocabulary, in_reasoning=True))
    budget = ReasoningBudget(8, (close,), begun=True)
    steps, _ = await loaded.run("hello", matcher, 30, reasoning_budget=budget, banned_strings=("three",))
    assert [step.token for step in steps].index(close) == 8


async def test_no_end_before_min_tokens_where_the_grammar_allows_more(loaded: Loaded) -> None:
    ends = loaded.backend.vocabulary.eos_ids
    noise = hashed(loaded.model.width)
    eager = np.isin(np.arange(loaded.model.width), sorted(ends))
    loaded.model.policy = lambda prefix: noise(prefix) + 60 * eager
    free = loaded.engine.matcher(wire_format("hermes").text_grammar(loaded.backend.vocabulary))
    for least in (0, 5):
        steps, end = await loaded.run("hello", free.fork(), 40, min_tokens=least)
        assert (len(steps), end.reason) == (least, "stop")
    steps, end = await loaded.run("hello", loaded.value({"const": 7}), 40, min_tokens=30)
    assert b"".join(step.text for step in steps) == b"7"  # nothing but the end may follow
    assert end.reason == "stop"


async def test_the_probability_that_masks_leave_is_measured_at_a_share_of_the_tokens(folder: Path) -> None:
    for share, least, most in ((0.0, 0, 0), (0.3, 20, 90), (1.0, 200, 200)):
        settings = ExllamaV3Settings(device="cpu", cache_tokens=4096, mass_share=share)
        measuring = Loaded(folder, settings)
        matcher = measuring.value({"type": "string", "minLength": 500})
        steps, _ = await measuring.run("hello", matcher, 200, forced_tokens=False)
        known = [step for step in steps if step.kept is not None]
        assert least <= len(known) <= most
        prompt = measuring._encode("hello")
        for number, step in enumerate(steps):
            if step.kept is not None:
                row = measuring.model.policy(np.array(prompt + [each.token for each in steps[:number]]))
                row = row[: measuring.backend._exllama_tokenizer.actual_vocab_size]
                weights = np.exp(row.astype(np.float64) - row.max())
                weights /= weights.sum()
                bits = unpack(matcher.mask())[: len(weights)]
                assert step.kept == pytest.approx(weights[bits == 1].sum(), abs=1e-4)
            matcher.advance(step.token)
        measuring.backend.close()


async def test_readers_have_a_step_while_the_next_one_is_computed(loaded: Loaded) -> None:
    loaded.follow({"hello": "one two three four five six seven eight"})
    loaded.model.step_seconds = 0.8
    arrived = []
    async for item in loaded.backend.generate(loaded.generation(max_tokens=4)):
        if isinstance(item, Step):
            arrived.append(time.perf_counter())
    begun = [began for began, _, _ in loaded.model.begun]
    for came, next_begun in zip(arrived, begun[1:], strict=False):
        assert came < next_begun + 0.7


async def test_free_text_needs_no_filter(loaded: Loaded) -> None:
    loaded.follow({"hello": "Größe: 日本, and so on."})
    steps, end = await loaded.run("hello")
    assert content(steps, end).decode() == "Größe: 日本, and so on."
    assert end.reason == "stop"
    steps, end = await loaded.run("hello", max_tokens=3)
    assert (len(steps), end.reason) == (3, "length")


async def test_a_call_that_is_cut_off_ends_by_length(loaded: Loaded) -> None:
    loaded.follow({"hello": CALL_TEXT})
    steps, end = await loaded.run("hello", loaded.call(), max_tokens=25)
    assert (len(steps), end.reason) == (25, "length")
    assert told(steps, end).calls[0].arguments is None


async def test_the_same_seed_gives_the_same_text(loaded: Loaded) -> None:
    texts = [[step.token for step in (await loaded.run(seed=seed))[0]] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


async def test_every_end_token_ends_a_turn(loaded: Loaded) -> None:
    noise = hashed(loaded.model.width)
    for end in loaded.backend.vocabulary.eos_ids:
        loaded.model.policy = lambda prefix, end=end: (
            noise(prefix) + 90 * (np.arange(loaded.model.width) == end)
        )
        steps, finish = await loaded.run()
        assert (steps, finish.reason) == ([], "stop")


async def test_banned_strings_never_reach_the_reader(loaded: Loaded) -> None:
    loaded.follow({"hello": CALL_TEXT})
    steps, end = await loaded.run("hello", loaded.call(), 60, banned_strings=("amster",))
    written = b"".join(step.text for step in steps).lower()
    assert b"amster" not in written
    assert told(steps, end).calls[0].name == "get_weather"


async def test_banned_strings_that_no_token_spells_ban_nothing(loaded: Loaded) -> None:
    plain, _ = await loaded.run(max_tokens=20)
    steps, end = await loaded.run(max_tokens=20, banned_strings=("\ud800", ""))
    assert end.reason == "length"
    assert [step.token for step in steps] == [step.token for step in plain]


async def test_there_are_no_more_likely_tokens_than_tokens(loaded: Loaded) -> None:
    steps, _ = await loaded.run(max_tokens=2, logprobs=10**6)
    assert [len(step.logprobs.top) for step in steps if step.logprobs] == [loaded.model.width] * 2


async def test_logprobs_are_of_the_model_and_not_of_the_mask(loaded: Loaded) -> None:
    matcher = loaded.value({"const": 7})
    steps, end = await loaded.run("hello", matcher, logprobs=3, temperature=0.0)
    (step,) = steps
    assert end.reason == "stop"
    assert step.logprobs is not None
    assert len(step.logprobs.top) == 3
    raw = loaded.model.policy(np.array(loaded._encode("hello"))).astype(np.float64)
    raw[loaded.backend._exllama_tokenizer.actual_vocab_size :] = -math.inf
    logs = raw - np.log(np.exp(raw).sum())
    assert step.logprobs.chosen == pytest.approx(logs[step.token], abs=0.02)
    assert step.logprobs.top[0][0] == int(raw.argmax()) != step.token
    steps, _ = await loaded.run(max_tokens=5, logprobs=0)
    assert all(step.logprobs is not None and step.logprobs.top == () for step in steps)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.0},
        {"top_k": 1},
        {"top_p": 0.0001},
        {"min_p": 1.0},
    ],
)
async def test_samplers_that_leave_one_token_give_the_likeliest(
    loaded: Loaded, options: dict[str, Any]
) -> None:
    steps, _ = await loaded.run(max_tokens=8, **options)
    greedy, _ = await loaded.run(max_tokens=8, temperature=0.0)
    assert [step.token for step in steps] == [step.token for step in greedy]


@pytest.mark.parametrize(
    "options",
    [
        {"frequency_penalty": 1.9},
        {"presence_penalty": 1.9},
        {"repetition_penalty": 3.0},
        {"dry_multiplier": 20.0, "dry_allowed_length": 1, "dry_sequence_breakers": ()},
    ],
)
async def test_penalties_break_a_loop(loaded: Loaded, options: dict[str, Any]) -> None:
    """The model likes one token a bit more than all others."""
    favourite = loaded._encode("a")[0]
    row = np.ones(loaded.model.width, dtype=np.float32)
    row[favourite] = 2.0
    loaded.model.policy = lambda prefix: row.copy()
    loop, _ = await loaded.run(max_tokens=10, temperature=0.0)
    assert {step.token for step in loop} == {favourite}
    free, _ = await loaded.run(max_tokens=10, temperature=0.0, **options)
    assert {step.token for step in free} != {favourite}


async def test_a_logit_bias_steers_but_the_mask_goes_before_it(loaded: Loaded) -> None:
    token = loaded._encode("a")[0]
    steps, _ = await loaded.run(max_tokens=5, logit_bias=((token, 100.0),))
    assert {step.token for step in steps} == {token}
    steps, end = await loaded.run("hello", loaded.value({"const": 7}), logit_bias=((token, 100.0),))
    assert ([step.text for step in steps], end.reason) == ([b"7"], "stop")


async def test_a_banned_token_is_taken_only_where_the_mask_allows_no_other(loaded: Loaded) -> None:
    (left,) = loaded._encode("l")
    for temperature in (0.0, 1.0):
        for value, banned, wanted in (
            ({"const": 7}, loaded._encode("7"), {"7"}),
            ({"enum": ["left", "right"]}, [left, *loaded._encode("le")], {'"right"'}),
            ({"enum": ["left", "right"]}, loaded.backend.vocabulary.eos_ids, {'"left"', '"right"'}),
            ({"enum": ["left", "right"]}, range(loaded.model.width), {'"left"', '"right"'}),
        ):
            bias = tuple((token, -math.inf) for token in banned)
            steps, end = await loaded.run(
                "hello", loaded.value(value), logit_bias=bias, temperature=temperature
            )
            assert b"".join(step.text for step in steps).decode() in wanted
            assert (end.reason, end.error) == ("stop", None)


async def test_an_answer_is_finished_within_its_budget(loaded: Loaded) -> None:
    with pytest.raises(BudgetTooSmall):
        loaded.backend.generate(loaded.generation("hello", loaded.call(), 5, finish_within_budget=True))
    loaded.follow({"hello": CALL_TEXT.replace("Amsterdam", "so " * 200)})
    steps, end = await loaded.run("hello", loaded.call(), 90, finish_within_budget=True)
    assert end.reason == "length"
    assert end.finished_calls == (0,)
    assert told(steps, end).calls[0].arguments is not None


async def test_many_requests_run_at_once_and_as_alone(loaded: Loaded) -> None:
    def one(number: int) -> Any:
        matcher = loaded.value(SHORT) if number % 2 else None
        return loaded.run(f"prompt {number}", matcher, 60, seed=number)

    together = await asyncio.gather(*(one(number) for number in range(24)))
    for number, (steps, end) in enumerate(together):
        alone, same_end = await one(number)
        assert [step.token for step in steps] == [step.token for step in alone]
        assert end.reason == same_end.reason
    assert loaded.model.threads == {"larksong-exllamav3"}  # never the event loop's


async def test_what_of_a_prompt_was_read_before_is_told(loaded: Loaded) -> None:
    prompt = "some words that come again " * 100
    size = len(loaded._encode(prompt))
    array = loaded.value({"type": "array", "items": {"type": "integer"}, "minItems": 50})
    first, second, third = [
        (await loaded.run(f"{prompt}{end}", matcher, 30))[1].cached_tokens
        for end, matcher in (("one", None), ("two", None), ("more", array.fork()))
    ]
    assert first == 0
    assert size - 256 <= second <= size
    assert size - 256 <= third <= size


async def test_a_reader_that_goes_away_frees_its_place(loaded: Loaded) -> None:
    items = loaded.backend.generate(loaded.generation(max_tokens=10_000))
    async for _ in items:
        break
    await items.aclose()
    generator = loaded.backend._worker.generator
    await until(lambda: not generator.num_remaining_jobs())


async def test_a_slow_reader_holds_back_its_own_sequence_alone(loaded: Loaded) -> None:
    async def slowly(items: AsyncIterator[Any]) -> list[int]:
        found = []
        async for item in items:
            if isinstance(item, Step):
                found.append(item.token)
            if len(found) % 100 == 1:
                await asyncio.sleep(0.3)
        return found

    matcher = loaded.value({"type": "array", "items": {"type": "integer"}, "minItems": 500})
    items = loaded.backend.generate(loaded.generation("slow", matcher.fork(), 400, seed=3))
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            sequences = loaded.backend._worker._running
            most = max([most, *(len(each.handover._items) for each in sequences if each.handover)])
            await asyncio.sleep(0.002)

    watcher = asyncio.create_task(watch())
    slow, (steps, end) = await asyncio.gather(slowly(items), loaded.run("fast", max_tokens=300))
    watcher.cancel()
    assert most <= 64 + 17  # a step can give all that it was allowed to draft
    assert (len(steps), end.reason) == (300, "length")
    alone, _ = await loaded.run("slow", matcher.fork(), 400, seed=3)
    assert slow == [step.token for step in alone]


@pytest.mark.parametrize("where", ["mask", "advance", "likely", "finish"])
async def test_a_broken_matcher_fails_its_own_request_alone(loaded: Loaded, where: str) -> None:
    long = {"type": "array", "items": {"type": "string"}, "minItems": 200}

    def good(number: int) -> Any:
        return loaded.run(f"good {number}", loaded.value(long), 60, seed=number)

    bad = FaultyMatcher(loaded.value(long), where, 20)
    failed, *others = await asyncio.gather(loaded.run("bad", bad, 40), *(good(n) for n in range(7)))
    assert failed[1].reason == "error"
    assert "on purpose" in failed[1].error
    assert len(failed[0]) == {"mask": 20, "advance": 19, "likely": 20, "finish": 40}[where]
    for number, (steps, end) in enumerate(others):
        alone, _ = await good(number)
        assert (len(steps), end.reason) == (60, "length")
        assert [step.token for step in steps] == [step.token for step in alone]


async def test_a_model_that_fails_ends_what_runs_and_later_requests_run(loaded: Loaded) -> None:
    noise = loaded.model.policy

    def broken(prefix: Any) -> Any:
        if len(prefix) > 20:
            raise RuntimeError("the device is gone")
        return noise(prefix)

    loaded.model.policy = broken
    both = await asyncio.gather(loaded.run(), loaded.run("other"))
    assert [end.reason for _, end in both] == ["error", "error"]
    assert all("the device is gone" in end.error for _, end in both)
    loaded.model.policy = noise
    steps, end = await loaded.run(max_tokens=30)
    assert (len(steps), end.reason) == (30, "length")


async def test_a_model_that_cannot_go_on_leaves_nobody_waiting(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(loaded.backend._worker, "_make", fail)
    loaded.model.policy = fail
    both = await asyncio.wait_for(asyncio.gather(loaded.run(), loaded.run("other")), 20)
    assert [end.reason for _, end in both] == ["error", "error"]
    steps, end = await asyncio.wait_for(loaded.run(), 20)
    assert (steps, end.reason) == ([], "error")
    assert end.error in ("the backend is closed", "the backend was closed")


async def test_a_long_answer_is_requeued_without_a_trace(folder: Path) -> None:
    small = Loaded(folder, ExllamaV3Settings(device="cpu", cache_tokens=4096, requeue_tokens=256))
    whole = Loaded(folder, ExllamaV3Settings(device="cpu", cache_tokens=4096, requeue_tokens=None))
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 500}
    found = [await each.run("hello", each.value(schema), 600) for each in (small, whole)]
    assert [step.token for step in found[0][0]] == [step.token for step in found[1][0]]
    assert len(found[0][0]) == 600
    small.backend.close()
    whole.backend.close()


async def test_n_gram_and_draft_model_change_no_text(folder: Path, loaded: Loaded) -> None:
    settings = [
        ExllamaV3Settings(device="cpu", cache_tokens=4096, ngram_draft=2),
        ExllamaV3Settings(device="cpu", cache_tokens=4096, draft_model=folder, draft_tokens=3),
    ]
    plain = [await loaded.run(f"p{n}", loaded.value(SHORT), 80, seed=n) for n in range(4)]
    for each in settings:
        other = Loaded(folder, each)
        drafted = await asyncio.gather(
            *(other.run(f"p{n}", other.value(SHORT), 80, seed=n) for n in range(4))
        )
        assert [[s.token for s in steps] for steps, _ in drafted] == [
            [s.token for s in steps] for steps, _ in plain
        ]
        other.backend.close()


async def test_closing_ends_what_runs(folder: Path) -> None:
    loaded = Loaded(folder)
    items = loaded.backend.generate(loaded.generation(max_tokens=10_000))
    await anext(items)
    threading.Thread(target=loaded.backend.close).start()
    last = [item async for item in items][-1]
    assert last.reason == "error"
    steps, end = await loaded.run()
    assert (steps, end.reason) == ([], "error")


def test_prompts_that_do_not_fit_are_refused(loaded: Loaded) -> None:
    assert loaded.backend.context_length < 16384
    with pytest.raises(PromptTooLong):
        loaded.backend.generate(loaded.generation("word " * 20_000))


async def test_the_longest_prompt_that_fits_is_answered(folder: Path) -> None:
    small = Loaded(folder, ExllamaV3Settings(device="cpu", cache_tokens=1024))
    prompt = tuple(small._encode("a") * (small.backend.context_length - 1))
    steps, end = await collect(small.backend.generate(Generation(prompt, None, Sampling(), 50)))
    assert (len(steps), end.reason) == (1, "length")
    small.backend.close()


def test_what_is_no_model_is_said(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ModelNotFound, match="exllamav3 loads folders"):
        ExllamaV3Backend.load(tmp_path / "nothing")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(NotAModel, match="exllamav3 loads folders, and it is a file"):
        ExllamaV3Backend.load(tmp_path / "model.gguf")
    with pytest.raises(NotAModel, match=r"config\.json"):
        ExllamaV3Backend.load(tmp_path, SETTINGS)
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["NobodyKnows"]}))
    with pytest.raises(NotAModel, match="NobodyKnows"):
        ExllamaV3Backend.load(tmp_path, SETTINGS)


@pytest.mark.parametrize(
    ("gpus", "options", "message"),
    [
        (0, {}, "torch finds 0 GPUs"),
        (0, {"tensor_parallel": True}, "torch finds 0 GPUs"),
        (1, {"device": "cuda:1"}, "device is cuda:1, and torch finds 1 GPU$"),
        (1, {"device": "1"}, "device is cuda:1, and torch finds 1 GPU$"),
        (2, {"device": "gpu"}, "device must be one such as cuda:0, not 'gpu'"),
        (2, {"device": "cuda0"}, "device must be one such as cuda:0, not 'cuda0'"),
        (2, {"gpu_split": (20.0, 0.0, 24.0)}, "gpu_split has 3 numbers, and torch finds 2 GPUs"),
    ],
)
def test_devices_that_are_not_there_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, options: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    with pytest.raises(BackendUnavailable, match=message):
        ExllamaV3Backend.load(folder, ExllamaV3Settings(**options))


def test_how_a_model_is_split_is_said_to_exllamav3(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `Model.load` of the tested version takes it."""
    taken = inspect.signature(PrefixModel.load_gen).parameters
    given: list[dict[str, Any]] = []

    def load(model: PrefixModel, **options: Any) -> None:
        assert set(options) <= set(taken)
        given.append(options)
        raise RuntimeError("no more of it")

    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr(PrefixModel, "load", load)
    for options in (
        {"tensor_parallel": True, "max_batch": 8},
        {"gpu_split": (20.0, 24.5)},
        {"device": "cuda"},
        {"device": "1"},
    ):
        with pytest.raises(NotAModel, match="no more of it"):
            ExllamaV3Backend.load(folder, ExllamaV3Settings(**options))
    parallel, split, first, second = given
    assert (parallel["tensor_p"], parallel["use_per_device"], parallel["max_output_size"]) == (
        True, None, 8 * 17,
    )  # fmt: skip
    assert (split["tensor_p"], split["use_per_device"]) == (False, [20.0, 24.5])
    assert [str(each["device"]) for each in (first, second)] == ["cuda:0", "cuda:1"]


def test_a_draft_model_that_exllamav3_cannot_use_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("Recurrent MTP draft models are not supported.")

    monkeypatch.setattr("exllamav3.Generator.__init__", refuse)
    with pytest.raises(NotAModel, match="Recurrent MTP draft models"):
        ExllamaV3Backend.load(folder, SETTINGS)


def test_a_draft_model_that_reads_other_tokens_is_refused(tmp_path: Path, folder: Path) -> None:
    other = write_folder(tmp_path / "other")
    read = json.loads((other / "tokenizer.json").read_text())
    words = read["model"]["vocab"]
    words["a"], words["b"] = words["b"], words["a"]
    (other / "tokenizer.json").write_text(json.dumps(read))
    settings = ExllamaV3Settings(device="cpu", cache_tokens=4096, draft_model=other)
    with pytest.raises(NotAModel, match="a draft model must have the tokenizer of small"):
        ExllamaV3Backend.load(folder, settings)
    (other / "tokenizer.json").unlink()
    (other / "config.json").unlink()
    with pytest.raises(NotAModel, match="exllamav3 cannot load it"):
        ExllamaV3Backend.load(folder, settings)
    settings = ExllamaV3Settings(device="cpu", cache_tokens=4096, draft_model=tmp_path / "none")
    with pytest.raises(ModelNotFound, match="none"):
        ExllamaV3Backend.load(folder, settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache_tokens": 0}, "cache_tokens must be 1 or more"),
        ({"cache_bits": (1, 8)}, "cache_bits must be from 2 to 8"),
        ({"draft_model": Path("x"), "ngram_draft": 2}, "exclude each other"),
        ({"forced_draft": -1}, "forced_draft must be 0 or more"),
        ({"tensor_parallel": True, "device": "cuda:0"}, "leave device out"),
        ({"gpu_split": (20.0, -1.0)}, "gpu_split must be gigabytes"),
        ({"gpu_split": (math.nan,)}, "gpu_split must be gigabytes"),
        ({"gpu_split": (0.0, 0.0)}, "gpu_split must be gigabytes"),
        ({"cache_tokens": 256, "forced_draft": 255}, "forced_draft must be less than cache_tokens"),
        ({"cache_tokens": 256, "draft_tokens": 900}, "draft_tokens must be less than cache_tokens"),
    ],
)
def test_settings_out_of_range_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExllamaV3Settings(**options)


def test_sizes_are_rounded_up_to_pages() -> None:
    settings = ExllamaV3Settings(cache_tokens=1000, chunk=1)
    assert (settings.cache_size, settings.chunk_size) == (1024, 256)


def test_a_rig_without_a_backend_leaves_no_thread(rig: Rig) -> None:
    assert not any(thread.name == "larksong-exllamav3" for thread in threading.enumerate())
