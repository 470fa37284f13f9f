"""Backends finish a turn within its budget when they are asked to."""

import pytest
from jsonschema import validate
from tokenizers import Tokenizer

from larksong.engine.backends.base import Backend, Generation, Sampling
from larksong.engine.backends.errors import BudgetTooSmall
from larksong.engine.backends.replay import ReplayBackend
from larksong.engine.backends.transformers import TransformersBackend
from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, wire_format
from tests.support.emitted import emitted_calls
from tests.support.generations import CALL_TEXT, ONE_CALL, WEATHER, collect, content

FORMATS = pytest.mark.parametrize("name", ["hermes", "qwen3_coder"])


def generation(backend: Backend, matcher: Matcher | None, tokens: int, *, seed: int = 0) -> Generation:
    return Generation(
        prompt=tuple(backend.tokenizer.encode("hello").ids),
        matcher=matcher,
        sampling=Sampling(temperature=1.5, seed=seed),
        max_tokens=tokens,
        finish_within_budget=True,
    )


def matcher(engine: Engine, name: str, policy: CallPolicy = ONE_CALL) -> Matcher:
    return engine.matcher(wire_format(name).grammar([WEATHER], policy, engine.vocabulary))


@FORMATS
async def test_a_sampled_call_is_finished_with_any_budget_that_suffices(
    tiny_backend: TransformersBackend, name: str
) -> None:
    engine = Engine(tiny_backend.vocabulary)
    needed = matcher(engine, name).needed()
    for more in (0, 1, 7, 30):
        steps, end = await collect(
            tiny_backend.generate(generation(tiny_backend, matcher(engine, name), needed + more, seed=more))
        )
        assert end.reason == "length"
        assert len(steps) < needed + more  # the end-of-sequence token is one of them
        (call,) = emitted_calls(event for item in (*steps, end) for event in item.events)
        validate(call.arguments, WEATHER.parameters)
        assert end.finished_calls == (0,)


@FORMATS
async def test_too_small_a_budget_is_refused_before_anything_runs(
    tiny_backend: TransformersBackend, name: str
) -> None:
    engine = Engine(tiny_backend.vocabulary)
    needed = matcher(engine, name).needed()
    with pytest.raises(BudgetTooSmall) as refused:
        tiny_backend.generate(generation(tiny_backend, matcher(engine, name), needed - 1))
    assert (refused.value.needed, refused.value.tokens) == (needed, needed - 1)
    assert str(needed) in str(refused.value)


async def test_a_budget_ends_where_the_context_does(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    engine = Engine(byte_vocabulary)
    needed = matcher(engine, "hermes").needed()
    prompt = len(byte_tokenizer.encode("hello").ids)
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, ["x"], context_length=prompt + needed - 1)
    with pytest.raises(BudgetTooSmall):
        backend.generate(generation(backend, matcher(engine, "hermes"), 1000))


async def test_without_a_grammar_or_with_a_free_answer_no_budget_is_too_small(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, ["text that is long enough"])
    free = matcher(Engine(byte_vocabulary), "hermes", CallPolicy())
    steps, end = await collect(backend.generate(generation(backend, free, 3)))
    assert (len(steps), end.reason, end.finished_calls) == (2, "length", ())
    steps, end = await collect(backend.generate(generation(backend, None, 3)))
    assert (len(steps), end.reason, end.finished_calls) == (3, "length", None)


async def test_a_call_that_ends_by_itself_is_no_different(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [CALL_TEXT])
    at = matcher(Engine(byte_vocabulary), "hermes")
    steps, end = await collect(backend.generate(generation(backend, at, 1000)))
    assert (end.reason, end.finished_calls) == ("stop", ())
    assert emitted_calls(event for item in (*steps, end) for event in item.events)[0].arguments == {
        "city": "Amsterdam",
        "unit": "celsius",
    }


async def test_recorded_text_that_has_no_room_is_finished_too(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    text = CALL_TEXT.replace("Amsterdam", "Amsterdam" * 40)
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [text])
    at = matcher(Engine(byte_vocabulary), "hermes")
    steps, end = await collect(backend.generate(generation(backend, at, at.needed() + 20)))
    assert (end.reason, end.finished_calls) == ("length", (0,))
    (call,) = emitted_calls(event for item in (*steps, end) for event in item.events)
    assert call.arguments is not None
    assert call.arguments["city"].startswith("Amst")
    validate(call.arguments, WEATHER.parameters)


async def test_recorded_text_that_the_grammar_refuses_is_an_error_still(
    byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary
) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, [CALL_TEXT.replace("Amsterdam", "A\\x")])
    at = matcher(Engine(byte_vocabulary), "hermes")
    _, end = await collect(backend.generate(generation(backend, at, 1000)))
    assert end.reason == "error"


async def test_text_may_be_cut_anywhere(byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary) -> None:
    backend = ReplayBackend(byte_tokenizer, byte_vocabulary, ["It is sunny."])
    free = matcher(Engine(byte_vocabulary), "hermes", CallPolicy())
    steps, end = await collect(backend.generate(generation(backend, free, 100)))
    assert content(steps, end) == b"It is sunny."
    assert (end.reason, end.finished_calls) == ("stop", ())
