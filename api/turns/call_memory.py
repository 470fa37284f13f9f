"""What the model itself wrote in its recent turns with calls, found again by the ids of the calls.

Chat templates rewrite history: they sort keys, change blanks and the spelling of numbers. A prompt that holds
other tokens than the model wrote has to be read anew from there on, and the model sees calls that it would
not have written.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from larksong.api.turns.chat_template import ChatMessage

_KEPT_TOKENS = 4_000_000
_KEPT_TURNS = 10_000


@dataclass(frozen=True)
class WrittenCall:
    """A call as it went to the client."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, eq=False)
class WrittenTurn:
    """A finished turn with calls. `tokens`: all but the one that ended it.

    `header`: what the prompt ended with (`<|im_start|>assistant\\n<think>\\n`). `answer_at`: how many of the
    tokens are reasoning and its markers; None where that is not between two tokens.
    """

    header: str
    tokens: tuple[int, ...]
    answer_at: int | None
    reasoning: str
    content: str
    calls: tuple[WrittenCall, ...]

    def is_told_by(self, message: ChatMessage) -> bool:
        """Whether a client gave back this turn, unchanged. Most leave out reasoning, some blanks."""
        given = message.get("tool_calls", ())
        if message["content"].strip() != self.content.strip() or len(given) != len(self.calls):
            return False
        return all(
            call["id"] == written.id
            and call["function"]["name"] == written.name
            and call["function"]["arguments"] == json.loads(written.arguments)
            for call, written in zip(given, self.calls, strict=True)
        )


class CallMemory:
    """The last turns, the least recently used out first. Safe under threads."""

    def __init__(self, kept_tokens: int = _KEPT_TOKENS) -> None:
        self._kept_tokens = kept_tokens
        self._turns: OrderedDict[str, WrittenTurn] = OrderedDict()
        self._tokens = 0
        self._lock = threading.Lock()

    def keep(self, turn: WrittenTurn) -> None:
        """Remember a turn under the id of its first call."""
        with self._lock:
            self._turns[turn.calls[0].id] = turn
            self._tokens += len(turn.tokens)
            while self._turns and (self._tokens > self._kept_tokens or len(self._turns) > _KEPT_TURNS):
                self._tokens -= len(self._turns.popitem(last=False)[1].tokens)

    def find(self, message: ChatMessage) -> WrittenTurn | None:
        """The turn that an assistant's message gives back; None where it was another's or was changed."""
        calls: Sequence[ChatMessage] = message.get("tool_calls", ())
        if not calls:
            return None
        with self._lock:
            turn = self._turns.get(calls[0]["id"])
            if turn is not None:
                self._turns.move_to_end(calls[0]["id"])
        return turn if turn is not None and turn.is_told_by(message) else None
