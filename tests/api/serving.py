"""A real server whose model is recorded text."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any

import openai
from tokenizers import AddedToken

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.settings.settings import Settings
from larksong.api.turns.generation import Model
from larksong.api.turns.schema_policy import DEFAULT_POLICY, SchemaPolicy
from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.encoding import text_ids
from larksong.engine.backends.replay import ReplayBackend
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import wire_format
from tests.support.tokenizers import EOS, byte_level_tokenizer


class Recorded(ReplayBackend):
    """Writes `texts`, one a request, and remembers the prompts and how the generation went.

    `markers` are tokens of their own for its tokenizer.
    """

    def __init__(
        self, *texts: str, tokens_per_second: float | None = None, markers: tuple[str, ...] = ()
    ) -> None:
        added = tuple(AddedToken(marker, special=False, normalized=False) for marker in markers)
        tokenizer = byte_level_tokenizer(added=added)
        super().__init__(
            tokenizer,
            Vocabulary.from_tokenizer(tokenizer, eos=[EOS]),
            texts,
            tokens_per_second=tokens_per_second,
            name="recorded",
            context_length=4096,
        )
        self.prompts: list[str] = []
        self.written = 0
        self.closed = threading.Event()

    def generate(self, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        items = super().generate(generation)
        self.prompts.append(self.tokenizer.decode(list(generation.prompt), skip_special_tokens=False))
        return self._watched(items)

    async def _watched(
        self, items: AsyncGenerator[Step | Finish, None]
    ) -> AsyncGenerator[Step | Finish, None]:
        try:
            async with aclosing(items):
                async for item in items:
                    self.written += 1
                    yield item
        finally:
            self.closed.set()


@dataclass(frozen=True)
class Served:
    """A running server: a client of it, its model and the recorded text behind that."""

    client: openai.OpenAI
    model: Model
    backend: Recorded

    def tokens(self, text: str) -> list[str]:
        """The tokens in which the model writes `text`, each as people read it."""
        ids = text_ids(self.backend.tokenizer, self.backend.vocabulary, text)
        return [self.model.token_text(token) for token in ids]


@contextmanager
def serving(
    *texts: str,
    format: str = "qwen3_coder",
    tokens_per_second: float | None = None,
    markers: tuple[str, ...] = (),
    schemas: SchemaPolicy = DEFAULT_POLICY,
    settings: dict[str, Any] | None = None,
    compat: bool = False,
) -> Iterator[Served]:
    """A server of `Recorded(*texts, …)` in this wire format."""
    backend = Recorded(*texts, tokens_per_second=tokens_per_second, markers=markers)
    model = Model(backend, wire_format(format), schemas=schemas, compat=compat)
    with BackgroundServer(create_app([model], Settings(**settings or {}))) as server:
        yield Served(openai.OpenAI(base_url=server.url, api_key="none", max_retries=0), model, backend)
