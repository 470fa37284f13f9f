"""Writes down a turn while it runs, for the memory of calls."""

from __future__ import annotations

from collections.abc import Sequence

from larksong.api.turns.answer import Answer
from larksong.api.turns.call_memory import CallMemory, WrittenCall, WrittenTurn
from larksong.api.turns.deltas import Delta
from larksong.api.turns.prompt_writer import Prompt
from larksong.engine.backends.base import Finish, Step
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import WireFormat


class TurnRecorder:
    """Gathers what `WrittenTurn` has."""

    def __init__(
        self, memory: CallMemory, prompt: Prompt, wire_format: WireFormat, vocabulary: Vocabulary
    ) -> None:
        self._memory = memory
        self._header = prompt.header
        self._close = wire_format.reasoning_close
        self._vocabulary = vocabulary
        self._tokens: list[int] = []
        self._thought = 0 if prompt.in_reasoning else None
        self._deltas: list[Delta] = []

    def add(self, item: Step | Finish, deltas: Sequence[Delta], *, thinks: bool) -> None:
        """Take note of a step; `thinks`: its token is reasoning."""
        if isinstance(item, Step):
            self._tokens.append(item.token)
            if thinks:
                self._thought = len(self._tokens)
        self._deltas += deltas

    def keep(self) -> None:
        """Remember the turn, which has ended by itself, if it has calls."""
        answer = Answer()
        for delta in self._deltas:
            answer.add(delta)
        calls = answer.calls
        if not calls or not self._header:
            return
        self._memory.keep(
            WrittenTurn(
                self._header,
                tuple(self._tokens),
                self._answer_at(),
                answer.reasoning,
                answer.content,
                tuple(WrittenCall(call.id, call.name, arguments) for call, arguments in calls),
            )
        )

    def _answer_at(self) -> int | None:
        """Where the tokens of reasoning and of the marker that closes it end."""
        if self._thought is None:
            return 0
        marker = self._vocabulary.special.get(self._close)
        if marker is not None:
            for at in range(self._thought, len(self._tokens)):
                if self._tokens[at] == marker:
                    return at + 1
            return None
        written = b""
        # The last token of reasoning may have the first letters of the marker.
        for at in range(max(self._thought - 1, 0), len(self._tokens)):
            written += self._vocabulary.text(self._tokens[at])
            if written.endswith(self._close.encode()):
                return at + 1
        return None
