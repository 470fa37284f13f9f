"""Requests of the other APIs, written as chat requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from larksong.api.http.served import Served
from larksong.api.openai_chat.field_names import FieldNames
from larksong.api.openai_chat.prepare import prepared, prompt_tokens
from larksong.api.openai_chat.schemas import ChatRequest
from larksong.api.turns.model import Model
from larksong.api.turns.turn import Turn


@dataclass(frozen=True)
class Translation:
    """The chat request that means the same. `names`: what its fields are called by the client; `left_out`:
    the names of tools that it does not have."""

    chat: ChatRequest
    names: FieldNames
    left_out: Sequence[str]

    async def prepared(self, served: Served, model: Model) -> list[Turn]:
        """The turns. Raises ApiError in the client's words."""
        with self.names.told():
            return await prepared(self.chat, served, model)

    async def prompt_tokens(self, served: Served, model: Model) -> tuple[int, ...]:
        """The tokens of the prompt. Raises ApiError in the client's words."""
        with self.names.told():
            return await prompt_tokens(self.chat, served, model)
