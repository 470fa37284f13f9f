"""What is asked of one turn, whatever API asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from larksong.api.turns.answer_form import AnswerForm
from larksong.api.turns.chat_template import ChatMessage
from larksong.engine.backends.base import Sampling
from larksong.grammars import CallPolicy, Tool, WireFormat


@dataclass(frozen=True)
class TurnRequest:
    """What is asked of one turn. `calls` is None where the answer has none.

    `answer`: the schema of an answer that is no call; None where that is free text.
    """

    messages: Sequence[ChatMessage]
    tools: Sequence[Tool]
    calls: CallPolicy | None
    wire_format: WireFormat
    sampling: Sampling
    max_tokens: int | None
    answer: AnswerForm | None = None
    finish_within_budget: bool | None = None
    """Whether calls are led to a valid end before `max_tokens`; None leaves it to the model's setting."""
    allowed: frozenset[str] | None = None
    """The tools that may be called; None allows all."""
    stops: tuple[str, ...] = ()
    """Texts that end the answer where they stand in its visible text; they are left out."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """What the chat template gets beside messages and tools."""
    reasoning_budget: int | None = None
    """Most tokens of reasoning."""
    compat: bool = False
    """Whether the answer's bytes are those of tabbyAPI's end parse (see `larksong.api.turns.compat`)."""

    @property
    def callable_tools(self) -> list[Tool]:
        """Those of the tools that may be called."""
        return [tool for tool in self.tools if self.allowed is None or tool.name in self.allowed]


def with_seeds(request: TurnRequest, choices: int) -> list[TurnRequest]:
    """The request once for each choice: a given seed counts up, so that no two choices are the same."""
    seed = request.sampling.seed
    if seed is None:
        return [request] * choices
    seeds = [(seed + number) % 2**63 for number in range(choices)]
    return [replace(request, sampling=replace(request.sampling, seed=each)) for each in seeds]
