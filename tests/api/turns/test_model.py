"""What a model's own settings make of a request."""

from collections.abc import AsyncGenerator

import openai
import pytest
from tokenizers import AddedToken

from larksong.api.http.metrics import Metrics
from larksong.api.openai_chat.logprobs import LogprobWriter
from larksong.api.turns.model import Model
from larksong.api.turns.request import TurnRequest
from larksong.api.turns.turn import Turn, TurnEnd, TurnPlan
from larksong.engine.backends.base import Finish, Sampling, Step
from larksong.engine.backends.replay import ReplayBackend
from larksong.engine.events import Content
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, wire_format
from tests.api.serving import serving
from tests.support.masks import allowed
from tests.support.tokenizers import EOS, byte_level_tokenizer
from tests.support.turns import WEATHER


@pytest.mark.parametrize(
    ("template", "reasons"),
    [
        ("{% for message in messages %}{{ message.content }}{% endfor %}", False),
        ("{% for message in messages %}{{ message.content.split('</think>')[-1] }}{% endfor %}", True),
        (None, True),
    ],
)
async def test_only_models_whose_template_knows_reasoning_may_begin_with_it(
    template: str | None, reasons: bool
) -> None:
    added = [AddedToken(text, special=False) for text in ("<think>", "</think>", "<tool_call>")]
    tokenizer = byte_level_tokenizer(added=added)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[EOS])
    backend = ReplayBackend(tokenizer, vocabulary, ["x"], context_length=4096, chat_template=template)
    model = Model(backend, wire_format("hermes"))
    request = TurnRequest(
        messages=[{"role": "user", "content": "hi"}],
        tools=[WEATHER],
        calls=CallPolicy(required=True),
        wire_format=model.wire_format,
        sampling=Sampling(),
        max_tokens=20,
    )
    generation, _ = model._generation(request)
    assert generation.matcher is not None
    mask = allowed(generation.matcher.mask())
    assert vocabulary.special["<tool_call>"] in mask
    assert (vocabulary.special["<think>"] in mask) is reasons


def test_what_the_backend_does_not_heed_is_refused() -> None:
    with serving("x") as served, pytest.raises(openai.BadRequestError) as refused:
        served.client.chat.completions.create(
            model="recorded",
            messages=[{"role": "user", "content": "hi"}],
            extra_body={"banned_strings": ["secret"]},
        )
    assert refused.value.param == "banned_strings"
    assert refused.value.code == "unsupported_parameter"


def test_columns_of_the_logits_that_no_token_has_read_as_nothing() -> None:
    tokenizer = byte_level_tokenizer()
    size = tokenizer.get_vocab_size()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[EOS], width=size + 3)
    backend = ReplayBackend(tokenizer, vocabulary, ["x"], context_length=4096)
    model = Model(backend, wire_format("hermes"))
    assert (model.token_text(size + 2), vocabulary.text(size + 2)) == ("", b"")
    logprobs = LogprobWriter(model)
    logprobs.add(Step(size + 2, b"", (), 1, 0.1))
    taken = logprobs.take()
    assert taken is not None
    assert taken["content"][0]["bytes"] is None


async def test_an_answer_that_a_stop_text_ends_tells_what_of_its_prompt_was_known() -> None:
    async def items() -> AsyncGenerator[Step | Finish, None]:
        yield Step(1, b"a STOP", (Content(b"a STOP"),), 5, 0.1, cached_tokens=7)

    metrics = Metrics()
    turn = Turn(TurnPlan(10, 100, clamped=False, stops=("STOP",), widened=()), items())
    turn.watch = metrics.watch("m", "hermes", 10)
    *_, end = [item async for item in turn.run()]
    assert isinstance(end, TurnEnd)
    assert (end.stop, end.cached_tokens) == ("STOP", 7)
    assert 'larksong_cached_prompt_tokens_total{model="m"} 7.0' in metrics.text().decode()
