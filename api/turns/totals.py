"""The tokens of an answer, counted over all its choices."""

from __future__ import annotations

from dataclasses import dataclass, field

from larksong.api.turns.turn import TurnEnd


@dataclass
class Totals:
    """Tokens of all choices of an answer, as far as they have ended."""

    prompt_tokens: int
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, end: TurnEnd) -> None:
        """Count a choice that has ended."""
        self.completion_tokens += end.completion_tokens
        self.cached_tokens = max(self.cached_tokens, end.cached_tokens)
        self.reasoning_tokens += end.reasoning_tokens
        self.reasons.append(end.reason)
