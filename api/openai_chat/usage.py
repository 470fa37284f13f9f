"""The tokens of an answer, as OpenAI tells them."""

from __future__ import annotations

from larksong.api.openai_chat.schemas import Usage
from larksong.api.turns.totals import Totals


def usage(totals: Totals) -> Usage:
    """The tokens read and written."""
    return {
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "total_tokens": totals.prompt_tokens + totals.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": totals.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": totals.reasoning_tokens},
    }
