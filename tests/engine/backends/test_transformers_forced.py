"""Forced tokens in the transformers backend: one forward pass for all of them, and nothing else changes."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch
from jsonschema import validate
from transformers import AutoModelForCausalLM, PreTrainedModel

from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.decoding import Decoding
from larksong.engine.backends.encoding import text_ids
from larksong.engine.backends.transformers import TransformersBackend
from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.grammars import CallPolicy, Tool, wire_format
from tests.support.calls import turn
from tests.support.generations import ONE_CALL, collect, generation
from tests.support.masks import allowed

# A random model would write strings without end: every value is one of a few.
TOOLS = [
    Tool(
        "get_weather",
        "",
        {
            "type": "object",
            "properties": {
                "city": {"enum": ["Amsterdam", "Tokyo"]},
                "hourly": {"type": "boolean"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "hourly", "unit"],
            "additionalProperties": False,
        },
    ),
    Tool("read_lines", "", {"type": "object", "properties": {"number": {"enum": [1, 12, None]}}}),
]
CALLS = replace(ONE_CALL, max_calls=None)
FORMATS = pytest.mark.parametrize("format_name", ["hermes", "qwen3_coder"])


@pytest.fixture(scope="module")
def engine(tiny_backend: TransformersBackend) -> Engine:
    vocabulary = tiny_backend.vocabulary
    return Engine(vocabulary, encode=partial(text_ids, tiny_backend.tokenizer, vocabulary))


def matcher(engine: Engine, format_name: str, policy: CallPolicy = ONE_CALL) -> Matcher:
    return engine.matcher(wire_format(format_name).grammar(TOOLS, policy, engine.vocabulary))


class Passes:
    """Counts the forward passes of a backend's model."""

    def __init__(self, backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._forward = backend._model.forward
        monkeypatch.setattr(backend._model, "forward", self._counted)

    def _counted(self, *args: object, **kwargs: object) -> object:
        self.count += 1
        return self._forward(*args, **kwargs)


async def run(backend: TransformersBackend, asked: Generation) -> tuple[list[Step], Finish]:
    return await collect(backend.generate(asked))


@FORMATS
async def test_calls_are_valid_and_each_token_says_whether_it_was_forced(
    tiny_backend: TransformersBackend, engine: Engine, format_name: str
) -> None:
    for seed in range(20):
        asked = generation(tiny_backend, matcher=matcher(engine, format_name), max_tokens=300, seed=seed)
        steps, end = await run(tiny_backend, asked)
        assert end.reason == "stop"
        (call,) = turn([event for item in (*steps, end) for event in item.events]).calls
        (tool,) = [tool for tool in TOOLS if tool.name == call.name]
        validate(call.arguments, tool.parameters)
        again = matcher(engine, format_name)
        expected: tuple[int, ...] = again.forced()
        for step in steps:
            assert step.forced == bool(expected)
            if expected:
                assert (step.token, step.allowed) == (expected[0], 1)
            else:
                assert step.allowed == len(allowed(again.mask()))
            assert again.advance(step.token) == step.events
            assert engine.vocabulary.tokens[step.token] == step.text
            expected = expected[1:] or again.forced()


@FORMATS
async def test_only_sampled_tokens_cost_a_forward_pass(
    tiny_backend: TransformersBackend,
    engine: Engine,
    format_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes = Passes(tiny_backend, monkeypatch)
    tokens = sampled = 0
    for seed in range(10):
        asked = generation(tiny_backend, matcher=matcher(engine, format_name), max_tokens=300, seed=seed)
        before = passes.count
        steps, end = await run(tiny_backend, asked)
        assert end.reason == "stop"
        # The end token is forced too: there may be one call. And drafts save passes of sampled tokens.
        assert passes.count - before <= sum(not step.forced for step in steps)
        tokens += len(steps) + 1
        sampled += passes.count - before

        before = passes.count
        off = replace(asked, matcher=matcher(engine, format_name), forced_tokens=False)
        steps, _ = await run(tiny_backend, off)
        assert passes.count - before == len(steps) + 1
        assert not any(step.forced for step in steps)
    assert sampled < 0.8 * tokens


@FORMATS
async def test_likely_tokens_save_passes_and_change_nothing(
    tiny_backend: TransformersBackend,
    engine: Engine,
    format_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes = Passes(tiny_backend, monkeypatch)
    likely = Decoding.likely
    counts = []
    written = []
    for drafts in (likely, lambda turn: ()):
        monkeypatch.setattr(Decoding, "likely", drafts)
        before = passes.count
        for seed in range(10):
            asked = generation(
                tiny_backend, matcher=matcher(engine, format_name, CALLS), max_tokens=300, seed=seed
            )
            # A penalty shows whether the sampler has counted each token once.
            asked = replace(asked, sampling=replace(asked.sampling, frequency_penalty=0.5))
            steps, end = await run(tiny_backend, asked)
            written += [(step.token, step.events, step.allowed, step.forced) for step in steps]
            written.append(end.reason)
        counts.append(passes.count - before)
    half = len(written) // 2
    assert written[:half] == written[half:]
    assert counts[0] < counts[1]


@FORMATS
async def test_the_model_reads_forced_tokens_like_sampled_ones(
    tiny_backend: TransformersBackend, engine: Engine, tiny_folder: Path, format_name: str
) -> None:
    """Every sampled token is the likeliest legal one of the model run over all tokens before it at once."""
    model = AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32)
    asked = generation(tiny_backend, matcher=matcher(engine, format_name), max_tokens=300, temperature=0)
    steps, _ = await run(tiny_backend, asked)
    again = matcher(engine, format_name)
    written = list(asked.prompt)
    assert {step.forced for step in steps} == {True, False}
    for step in steps:
        if not step.forced:
            with torch.inference_mode():
                logits = model(torch.tensor([written])).logits[0, -1]
            legal = sorted(allowed(again.mask()))
            assert step.token == legal[int(logits[legal].argmax())]
        again.advance(step.token)
        written.append(step.token)


async def test_what_is_forced_at_the_beginning_comes_before_the_first_pass(
    tiny_backend: TransformersBackend, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = Passes(tiny_backend, monkeypatch)
    only = [replace(TOOLS[1], parameters={"type": "object", "properties": {}})]
    # A second call may follow, so the end is not forced.
    grammar = wire_format("qwen3_coder").grammar(only, replace(ONE_CALL, max_calls=2), engine.vocabulary)
    start = engine.matcher(grammar)
    forced = start.forced()
    assert forced
    asked = generation(tiny_backend, matcher=start, max_tokens=len(forced), seed=1)
    steps, end = await run(tiny_backend, asked)
    assert [step.token for step in steps] == list(forced)
    assert end.reason == "length"
    assert passes.count == 0


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 13])
async def test_forced_tokens_count_towards_the_limit(
    tiny_backend: TransformersBackend, engine: Engine, limit: int
) -> None:
    asked = generation(tiny_backend, matcher=matcher(engine, "qwen3_coder"), max_tokens=limit, seed=3)
    steps, end = await run(tiny_backend, asked)
    assert (len(steps), end.reason) == (limit, "length")


def log_probability(model: PreTrainedModel, prompt: tuple[int, ...], steps: list[Step]) -> float:
    """Log-probability of a whole turn by the model alone, nothing masked, in nats a byte of its text.

    A byte, since the same text has more or fewer tokens, and texts of any length are compared.
    """
    written = [step.token for step in steps]
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *written]], device=model.device)).logits[
            0, len(prompt) - 1 : -1
        ]
    chosen = torch.log_softmax(logits.float(), -1)[range(len(written)), written]
    return float(chosen.sum()) / sum(len(step.text) for step in steps)


async def assert_no_worse(
    backend: TransformersBackend, start: Matcher, prompt: str, seeds: range, temperature: float
) -> None:
    """The turn's log-probability with forced tokens is at most three standard errors below that without."""
    pairs = []
    for seed in seeds:
        found = []
        for forced in (True, False):
            asked = generation(
                backend, prompt, matcher=start.fork(), max_tokens=300, seed=seed, temperature=temperature
            )
            steps, end = await run(backend, replace(asked, forced_tokens=forced))
            assert end.reason == "stop"
            found.append(log_probability(backend._model, asked.prompt, steps))
        pairs.append(found)
    differences = [on - off for on, off in pairs]
    error = stdev(differences) / math.sqrt(len(differences))
    assert mean(differences) >= -3 * error, (mean(differences), error)


@FORMATS
async def test_forced_turns_are_as_likely_as_sampled_ones(
    tiny_backend: TransformersBackend, engine: Engine, format_name: str
) -> None:
    await assert_no_worse(tiny_backend, matcher(engine, format_name), "hello", range(40), temperature=1.0)


@pytest.fixture(scope="module")
def smollm2_backend() -> Iterator[TransformersBackend]:
    backend = TransformersBackend.load(threads=1)
    yield backend
    backend.close()


@pytest.mark.model
@FORMATS
async def test_turns_of_a_real_model_are_as_likely_with_forced_tokens(
    smollm2_backend: TransformersBackend, format_name: str
) -> None:
    vocabulary = smollm2_backend.vocabulary
    engine = Engine(vocabulary, encode=partial(text_ids, smollm2_backend.tokenizer, vocabulary))
    written = wire_format(format_name)
    prompt = (
        f"<|im_start|>system\n{written.system_text(TOOLS)}<|im_end|>\n<|im_start|>user\n"
        "What is the weather in Tokyo?<|im_end|>\n<|im_start|>assistant\n"
    )
    await assert_no_worse(smollm2_backend, matcher(engine, format_name), prompt, range(8), temperature=0.7)
