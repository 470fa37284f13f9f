"""The transformers backend, on a tiny random model: sampling, limits, sharing, stopping."""

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from larksong.engine.backends.base import Finish, Generation, Sampling, Step
from larksong.engine.backends.errors import EmptyPrompt, NotAModel, PromptError, PromptTooLong
from larksong.engine.backends.transformers import PREFILL_CHUNK, TransformersBackend
from larksong.engine.engine import Engine
from larksong.engine.events import CallClose, FunctionOpen
from larksong.grammars import wire_format
from tests.support.generations import ONE_CALL, WEATHER, collect, content, generation
from tests.support.tiny_model import CHAT_TEMPLATE, CONTEXT
from tests.support.tokenizers import EOS
from tests.support.waiting import until

FINITE_PARAMETERS = {
    "type": "object",
    "properties": {"city": {"enum": ["Amsterdam", "Tokyo"]}, "hourly": {"type": "boolean"}},
    "required": ["city", "hourly"],
    "additionalProperties": False,
}


def tokens(steps: list[Step]) -> list[int]:
    return [step.token for step in steps]


def test_it_tells_what_the_folder_says(tiny_backend: TransformersBackend) -> None:
    assert tiny_backend.name == "tiny"
    assert tiny_backend.context_length == CONTEXT
    assert tiny_backend.chat_template == CHAT_TEMPLATE
    assert (tiny_backend.bos_token, tiny_backend.eos_token) == ("", EOS)
    assert tiny_backend.vocabulary.width == tiny_backend.tokenizer.get_vocab_size() + 3


@pytest.mark.parametrize("length", [1, PREFILL_CHUNK - 1, PREFILL_CHUNK, PREFILL_CHUNK + 1, 300])
async def test_greedy_tokens_are_those_of_the_model_run_at_once(
    tiny_backend: TransformersBackend, tiny_folder: Path, length: int
) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32)
    prompt = tuple(range(20, 20 + length))
    steps, _ = await collect(
        tiny_backend.generate(Generation(prompt, None, Sampling(temperature=0), max_tokens=8))
    )
    written = list(prompt)
    for step in steps:
        with torch.inference_mode():
            expected = int(model(torch.tensor([written])).logits[0, -1].argmax())
        assert step.token == expected
        written.append(step.token)


async def test_steps_tell_bytes_as_content_and_the_whole_width_as_allowed(
    tiny_backend: TransformersBackend,
) -> None:
    steps, end = await collect(tiny_backend.generate(generation(tiny_backend, max_tokens=12, temperature=0)))
    assert len(steps) == 12
    assert end.reason == "length"
    assert all(step.allowed == tiny_backend.vocabulary.width for step in steps)
    assert content(steps, end) == b"".join(step.text for step in steps) != b""
    times = [step.elapsed for step in steps]
    assert times == sorted(times)
    assert times[0] > 0


async def test_the_same_seed_gives_the_same_tokens_whatever_else_runs(
    tiny_backend: TransformersBackend,
) -> None:
    alone, _ = await collect(tiny_backend.generate(generation(tiny_backend, seed=7, top_p=0.9, top_k=40)))
    crowd = [
        generation(tiny_backend, "hello", seed=7, top_p=0.9, top_k=40),
        *(generation(tiny_backend, "something else " * n, seed=n) for n in range(1, 5)),
    ]
    together = await asyncio.gather(*(collect(tiny_backend.generate(each)) for each in crowd))
    assert tokens(together[0][0]) == tokens(alone)


async def test_other_seeds_give_other_tokens(tiny_backend: TransformersBackend) -> None:
    runs = [await collect(tiny_backend.generate(generation(tiny_backend, seed=seed))) for seed in range(3)]
    assert len({tuple(tokens(steps)) for steps, _ in runs}) == 3


async def test_a_second_request_does_not_wait_for_the_first(tiny_backend: TransformersBackend) -> None:
    first = tiny_backend.generate(generation(tiny_backend, max_tokens=400, temperature=0))
    await anext(first)
    steps, _ = await collect(tiny_backend.generate(generation(tiny_backend, max_tokens=3)))
    assert len(steps) == 3
    rest, end = await collect(first)
    assert len(rest) == 399
    assert end.reason == "length"


async def test_a_long_prompt_is_read_in_turns_with_others(tiny_backend: TransformersBackend) -> None:
    order: list[str] = []

    async def first_step(name: str, prompt: tuple[int, ...]) -> None:
        items = tiny_backend.generate(Generation(prompt, None, Sampling(temperature=0), max_tokens=1))
        async with contextlib.aclosing(items):
            await anext(items)
        order.append(name)

    with tiny_backend._changed:  # the worker waits for it: the long prompt is not read before both are there
        # No other test has a prompt that begins like this: what was read before is not read again.
        steps = asyncio.gather(first_step("long", (23,) * 500), first_step("short", (20,)))
        await until(lambda: sum(not each.over for each in tiny_backend._sequences) == 2)
    await steps
    assert order == ["short", "long"]


async def test_an_answer_ends_where_the_context_does(tiny_backend: TransformersBackend) -> None:
    prompt = (20,) * (CONTEXT - 5)
    steps, end = await collect(tiny_backend.generate(Generation(prompt, None, Sampling(temperature=0), 100)))
    assert (len(steps), end.reason) == (5, "length")


@pytest.mark.parametrize(
    ("prompt", "error"),
    [((), EmptyPrompt), ((20,) * CONTEXT, PromptTooLong), ((20, 10**6), PromptError), ((-1,), PromptError)],
)
def test_a_prompt_that_does_not_fit_is_refused_before_anything_runs(
    tiny_backend: TransformersBackend, prompt: tuple[int, ...], error: type[PromptError]
) -> None:
    with pytest.raises(error):
        tiny_backend.generate(Generation(prompt, None, Sampling(), 10))


async def test_closing_the_iterator_stops_the_sequence(tiny_backend: TransformersBackend) -> None:
    items = tiny_backend.generate(generation(tiny_backend, max_tokens=400, temperature=0))
    await anext(items)
    await items.aclose()
    await until(lambda: tiny_backend._sequences == [])


async def test_cancelling_the_reader_stops_the_sequence(tiny_backend: TransformersBackend) -> None:
    reader = asyncio.create_task(
        collect(tiny_backend.generate(generation(tiny_backend, max_tokens=400, temperature=0)))
    )
    await until(lambda: tiny_backend._sequences)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await until(lambda: tiny_backend._sequences == [])


async def test_a_slow_reader_holds_up_its_own_sequence_only(tiny_backend: TransformersBackend) -> None:
    slow = tiny_backend.generate(generation(tiny_backend, max_tokens=400, temperature=0))
    first = await anext(slow)
    (sequence,) = (each for each in tiny_backend._sequences if not each.over)
    await until(lambda: sequence.handover.full)
    assert not sequence.over
    await collect(tiny_backend.generate(generation(tiny_backend, max_tokens=50)))
    steps, end = await collect(slow)
    assert (len([first, *steps]), end.reason) == (400, "length")


@pytest.mark.parametrize("format_name", ["hermes", "qwen3_coder"])
async def test_a_matcher_makes_even_a_random_model_write_a_valid_call(
    tiny_backend: TransformersBackend, format_name: str
) -> None:
    engine = Engine(tiny_backend.vocabulary)
    tool = replace(WEATHER, parameters=FINITE_PARAMETERS)  # a random model would write strings without end
    grammar = wire_format(format_name).grammar([tool], ONE_CALL, tiny_backend.vocabulary)
    for seed in range(5):
        asked = generation(tiny_backend, matcher=engine.matcher(grammar), max_tokens=400, seed=seed)
        steps, end = await collect(tiny_backend.generate(asked))
        events = [event for item in (*steps, end) for event in item.events]
        assert end.reason == "stop"
        assert FunctionOpen("get_weather") in events
        assert CallClose() in events
        assert all(1 <= step.allowed < tiny_backend.vocabulary.width for step in steps)


async def test_a_failing_sequence_leaves_the_others_alone(
    tiny_backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = generation(tiny_backend), generation(tiny_backend, max_tokens=60, temperature=0)
    expected, _ = await collect(tiny_backend.generate(good))
    items = tiny_backend.generate(good)
    first = await anext(items)
    failing = tiny_backend.generate(bad)
    broken = tiny_backend._model.forward

    def fail_once(*args: object, **kwargs: object) -> object:
        if kwargs["input_ids"].shape[1] == len(bad.prompt):  # type: ignore[attr-defined]
            raise RuntimeError("out of memory")
        return broken(*args, **kwargs)

    monkeypatch.setattr(tiny_backend._model, "forward", fail_once)
    _, end = await collect(failing)
    assert end == Finish("error", (), "RuntimeError: out of memory")
    rest, _ = await collect(items)
    assert isinstance(first, Step)
    assert tokens([first, *rest]) == tokens(expected)


async def test_closing_the_backend_ends_what_runs(tiny_folder: Path) -> None:
    backend = TransformersBackend.load(tiny_folder, device="cpu", threads=1)
    items = backend.generate(generation(backend, max_tokens=400, temperature=0))
    await anext(items)
    await asyncio.to_thread(backend.close)
    _, end = await collect(items)
    assert (end.reason, end.error) == ("error", "the backend was closed")
    _, late = await collect(backend.generate(generation(backend)))
    assert (late.reason, late.error) == ("error", "the backend is closed")


def test_damaged_weights_are_not_a_model(tiny_folder: Path, tmp_path: Path) -> None:
    for file in tiny_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(NotAModel, match="transformers cannot load it"):
        TransformersBackend.load(tmp_path, device="cpu")
