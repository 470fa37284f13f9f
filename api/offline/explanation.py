"""An explanation of a turn as plain values."""

from __future__ import annotations

from typing import Any

from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.explain import TurnExplanation


def explanation_json(
    found: TurnExplanation, vocabulary: Vocabulary, format: str | None = None
) -> dict[str, Any]:
    """An explanation as plain values; ids of tokens with their text.

    `format`: None for an answer by a schema.
    """
    return {
        "format": format,
        "calls": found.calls,
        "allowed": found.allowed,
        "complete": found.complete,
        "offset": found.offset,
        "token": found.token,
        "live": [{"name": each.name, "role": each.role.value, "text": each.text} for each in found.live],
        "wanted": [
            {
                "tool": each.tool,
                "pointer": each.pointer,
                "keyword": each.keyword,
                "value": each.value,
                "message": each.message,
                "in_request": each.in_request,
            }
            for each in found.wanted
        ],
        "nearest": [{"id": token, "text": token_text(vocabulary, token)} for token in found.nearest],
    }


def token_text(vocabulary: Vocabulary, token: int) -> str:
    """How a token reads; markers by their names."""
    data = vocabulary.text(token)
    if data:
        return data.decode(errors="replace")
    return next((name for name, each in vocabulary.special.items() if each == token), "")
