"""The replay backend: recorded text as if a model wrote it."""

import asyncio
import time

import pytest
from tokenizers import Tokenizer

from larksong.engine.backends.base import Generation, Sampling
from larksong.engine.backends.errors import PromptTooLong
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.replay import ReplayBackend
from larksong.engine.engine import Engine
from larksong.engine.events import CallClose, FunctionOpen
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import wire_format
from tests.support.generations import CALL_TEXT, ONE_CALL, WEATHER, collect, content, generation
from tests.support.tokenizers import EOS, SAMPLE


@pytest.fixture(scope="module")
def engine(byte_vocabulary: Vocabulary) -> Engine:
    return Engine(byte_vocabulary)


def one_call(engine: Engine) -> Matcher:
    return engine.matcher(wire_format("hermes").grammar([WEATHER], ONE_CALL, engine.vocabulary))


async def test_the_text_comes_token_by_token_and_ends_the_turn(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [SAMPLE])
    steps, end = await collect(backend.generate(generation(backend, max_tokens=10_000)))
    assert [step.token for step in steps] == byte_tokenizer.encode(SAMPLE).ids
    assert content(steps, end) == SAMPLE.encode()
    assert end.reason == "stop"


async def test_texts_are_used_one_a_request_and_again_from_the_start(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, ["one", "two"])
    texts = [content(*await collect(backend.generate(generation(backend)))) for _ in range(5)]
    assert texts == [b"one", b"two", b"one", b"two", b"one"]


async def test_a_script_may_answer_the_prompt(byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, lambda prompt: prompt.upper())
    assert content(*await collect(backend.generate(generation(backend, "say this")))) == b"SAY THIS"


async def test_the_limit_cuts_the_text(byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [SAMPLE])
    steps, end = await collect(backend.generate(generation(backend, max_tokens=7)))
    assert (len(steps), end.reason) == (7, "length")


def test_a_prompt_longer_than_the_context_is_refused(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, ["x"], context_length=16)
    with pytest.raises(PromptTooLong, match="the prompt has 16 tokens; the context of 16"):
        backend.generate(Generation((20,) * 16, None, Sampling(), 1))


async def test_the_pace_is_kept_whatever_the_reader_does(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, ["a b c d e f g h i j"], tokens_per_second=20)
    began = time.perf_counter()
    steps = 0
    async for _ in backend.generate(generation(backend)):
        steps += 1
        await asyncio.sleep(0.04)  # most of the 50 ms that a token takes
    assert steps * 0.05 * 0.9 < time.perf_counter() - began < steps * 0.09


async def test_sequences_run_at_the_same_time(byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, ["a b c d e f g h i j"], tokens_per_second=100)
    began = time.perf_counter()
    await asyncio.gather(*(collect(backend.generate(generation(backend))) for _ in range(50)))
    assert time.perf_counter() - began < 3


async def test_a_matcher_reads_the_recorded_call(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary, engine: Engine
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [CALL_TEXT])
    asked = generation(backend, matcher=one_call(engine), max_tokens=500)
    steps, end = await collect(backend.generate(asked))
    events = [event for item in (*steps, end) for event in item.events]
    assert end.reason == "stop"
    assert events[0] == FunctionOpen("get_weather")
    assert CallClose() in events
    assert all(1 <= step.allowed < byte_vocabulary.width for step in steps)


async def test_a_refused_token_ends_with_an_error_that_shows_where(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary, engine: Engine
) -> None:
    wrong = CALL_TEXT.replace("celsius", "kelvin")
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [wrong])
    asked = generation(backend, matcher=one_call(engine), max_tokens=500)
    steps, end = await collect(backend.generate(asked))
    assert end.reason == "error"
    assert end.error is not None
    assert end.error.startswith(f"token {len(steps)} of the recorded text")
    assert '"unit": "' in end.error


async def test_a_text_that_ends_too_early_is_refused_at_its_end(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary, engine: Engine
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [CALL_TEXT[:40]])
    asked = generation(backend, matcher=one_call(engine), max_tokens=500)
    _, end = await collect(backend.generate(asked))
    assert end.reason == "error"
    assert EOS in (end.error or "")


async def test_closing_the_iterator_or_the_backend_ends_a_sequence(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [SAMPLE], tokens_per_second=200)
    items = backend.generate(generation(backend, max_tokens=10_000))
    await anext(items)
    await items.aclose()
    others = backend.generate(generation(backend, max_tokens=10_000))
    await anext(others)
    backend.close()
    _, end = await collect(others)
    assert (end.reason, end.error) == ("error", "the backend was closed")


async def test_without_an_end_token_the_end_is_an_error(byte_tokenizer: Tokenizer) -> None:
    backend = ReplayBackend(byte_tokenizer, Vocabulary.from_tokenizer(byte_tokenizer), ["x"])
    _, end = await collect(backend.generate(generation(backend)))
    assert end.reason == "error"


def test_it_stands_for_a_models_folder(smollm2: ModelFolder) -> None:
    backend = ReplayBackend.from_folder(smollm2, ["x"], tokens_per_second=10)
    assert backend.name == "SmolLM2-135M-Instruct"
    assert backend.chat_template == smollm2.chat_template
    assert (backend.context_length, backend.eos_token) == (8192, "<|im_end|>")


@pytest.mark.parametrize(("script", "pace"), [([], None), (["x"], 0), (["x"], -1.0)])
def test_an_empty_script_or_a_pace_of_nothing_is_refused(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary, script: list[str], pace: float | None
) -> None:
    with pytest.raises(ValueError, match=r"script has no texts|must be above 0"):
        ReplayBackend(byte_tokenizer, byte_vocabulary, script, tokens_per_second=pace)
