"""Probabilities of an answer's tokens, in OpenAI's shape."""

from __future__ import annotations

from larksong.api.openai_chat.schemas import Logprobs, TokenLogprob, TopLogprob
from larksong.api.turns.model import Model
from larksong.engine.backends.base import Step

_NEVER = -9999.0  # OpenAI's stand-in: JSON has no infinity


class LogprobWriter:
    """Gathers the steps between two chunks."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._content: list[TokenLogprob] = []

    def add(self, step: Step) -> None:
        """Take note of a step."""
        # Without any nobody was asked: the token was the only one that could come.
        logprob, top = (step.logprobs.chosen, step.logprobs.top) if step.logprobs is not None else (0.0, ())
        written = self._token(step.token, logprob)
        self._content.append({**written, "top_logprobs": [self._token(*each) for each in top]})

    def take(self) -> Logprobs | None:
        """What has come since the last time; None if nothing has."""
        if not self._content:
            return None
        content, self._content = self._content, []
        return {"content": content, "refusal": None}

    def _token(self, token: int, logprob: float) -> TopLogprob:
        data = self._model.backend.vocabulary.text(token)
        return {
            "token": self._model.token_text(token),
            "logprob": max(logprob, _NEVER),
            "bytes": list(data) if data else None,
        }
