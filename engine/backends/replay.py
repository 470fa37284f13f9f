"""Recorded text fed through a tokenizer, as if a model wrote it: for tests, notebooks and load runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import lru_cache, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from larksong.engine.backends.base import Finish, Generation, Step
from larksong.engine.backends.decoding import Decoding
from larksong.engine.backends.encoding import text_ids
from larksong.engine.backends.model_description import DescribedBackend, ModelDescription
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.sampler import AllowedCounts
from larksong.engine.matcher import Matcher
from larksong.engine.packed import allows, unpack
from larksong.engine.vocabulary import Vocabulary

Script = Sequence[str] | Callable[[str], str]


class ReplayBackend(DescribedBackend):
    """A `Backend` (see base.py) that writes the texts of a script, token by token, and then ends the turn.

    The tokens are those of the tokenizer, so a marker that it holds as one token is one. With a matcher each
    token is advanced like a sampled one; a refused one ends the sequence with an error that shows where.
    Where a budget leaves no room for the rest of a text, any tokens that the masks allow finish the turn.
    """

    unsupported = frozenset({"banned_strings"})

    def __init__(
        self,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        script: Script,
        *,
        tokens_per_second: float | None = None,
        name: str = "replay",
        context_length: int = 32_768,
        chat_template: str | None = None,
        bos_token: str = "",
        eos_token: str = "",
    ) -> None:
        """`script`: texts used one a request, from the start again after the last; or prompt to text.

        `tokens_per_second`: the pace of each sequence; None writes as fast as it can be read.
        """
        if not callable(script) and not script:
            raise ValueError("the script has no texts")
        if tokens_per_second is not None and tokens_per_second <= 0:
            raise ValueError(f"tokens_per_second must be above 0, not {tokens_per_second}")
        super().__init__(
            ModelDescription(
                name=name,
                tokenizer=tokenizer,
                vocabulary=vocabulary,
                context_length=context_length,
                chat_template=chat_template,
                bos_token=bos_token,
                eos_token=eos_token,
            )
        )
        self._script = script
        self._pause = 0.0 if tokens_per_second is None else 1 / tokens_per_second
        self._requests = 0
        self._lock = threading.Lock()
        self._closed = False
        self._allowed = AllowedCounts()
        self._ids = lru_cache(partial(text_ids, tokenizer, vocabulary))

    @classmethod
    def from_folder(
        cls, folder: ModelFolder, script: Script, *, tokens_per_second: float | None = None
    ) -> Self:
        """A stand-in for a real model: its tokenizer, chat template and limits, the script's words."""
        return cls(
            folder.tokenizer,
            folder.vocabulary,
            script,
            tokens_per_second=tokens_per_second,
            name=folder.name,
            context_length=folder.context_length,
            chat_template=folder.chat_template,
            bos_token=folder.bos_token,
            eos_token=folder.eos_token,
        )

    def generate(self, generation: Generation) -> AsyncGenerator[Step | Finish, None]:
        """See Backend.generate."""
        decoding = Decoding(generation, self.vocabulary, self.context_length)
        text = self._next_text(generation.prompt)
        ids = [*self._ids(text), *sorted(self.vocabulary.eos_ids)[:1]]
        budgeted = generation.matcher if generation.finish_within_budget else None
        close = generation.reasoning_budget.close if generation.reasoning_budget is not None else ()
        return self._run(decoding, _Recorded(ids, budgeted, close))

    def close(self) -> None:
        """See Backend.close."""
        self._closed = True

    def _next_text(self, prompt: tuple[int, ...]) -> str:
        if callable(self._script):
            return self._script(self.tokenizer.decode(list(prompt), skip_special_tokens=False))
        with self._lock:
            self._requests += 1
            return self._script[(self._requests - 1) % len(self._script)]

    async def _run(self, decoding: Decoding, recorded: _Recorded) -> AsyncGenerator[Step | Finish, None]:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            # Paced by the clock, not by pauses: what the reader does between steps does not slow the pace.
            due += self._pause
            await asyncio.sleep(max(0.0, due - loop.time()) if self._pause else 0)
            if self._closed:
                yield decoding.end("error", "the backend was closed")
                return
            mask = decoding.mask()
            token = recorded.close(mask) if decoding.closes_reasoning else recorded.next(mask)
            if token is None:
                break
            allowed = self.vocabulary.width if mask is None else self._allowed.of(mask)
            for item in decoding.take(token, allowed):
                if isinstance(item, Finish):
                    yield self._located(item, recorded.ids, recorded.position)
                    return
                yield item
        yield decoding.end(
            "error", "the vocabulary has no end-of-sequence token to end the recorded text with"
        )

    def _located(self, end: Finish, ids: list[int], position: int) -> Finish:
        if end.error is None:
            return end
        before, token, after = (
            self.tokenizer.decode(part, skip_special_tokens=False)
            for part in (ids[:position][-16:], ids[position : position + 1], ids[position + 1 :][:16])
        )
        where = f"token {position} of the recorded text, {token!r} between {before!r} and {after!r}"
        return Finish(end.reason, end.events, f"{where}: {end.error}")


class _Recorded:
    """Recorded tokens. `budgeted`: the matcher of a turn that has to finish within a budget.

    `close`: the tokens that end reasoning.
    """

    def __init__(self, ids: list[int], budgeted: Matcher | None, close: tuple[int, ...] = ()) -> None:
        self.ids = ids
        self._close = close
        self.position = -1
        """of the last token that was given"""
        self._budgeted = budgeted
        self._is_over = False

    def next(self, mask: NDArray[np.int32] | None) -> int | None:
        """The next token; None behind the last. Without room for it, some token of the mask."""
        self.position += 1
        if not self._is_over:
            if self.position == len(self.ids):
                return None
            token = self.ids[self.position]
            if mask is None or self._budgeted is None or allows(mask, token):
                return token
            if not self._budgeted.allows(token):
                return token  # refused by the grammar, whatever the budget
            self._is_over = True
        assert mask is not None
        return _first(mask)

    def close(self, mask: NDArray[np.int32] | None) -> int:
        """The token that ends reasoning early; the rest of the recorded reasoning is left out."""
        assert mask is not None
        size = len(self._close)
        token = _first(mask)
        if token == self._close[-1]:
            for at in range(self.position + 1, len(self.ids)):
                if tuple(self.ids[at : at + size]) == self._close:
                    self.position = at + size - 1
                    break
        return token


def _first(mask: NDArray[np.int32]) -> int:
    return int(unpack(mask).argmax())
