"""Which orders of roles a chat template takes, and how messages in another order come to it all the same.

Agents put instructions between the turns (Claude Code), and send several messages of the user in a row
(Codex, opencode). Some templates refuse such a conversation, others drop instructions without a word. Each
template is asked once what it does with them; what it does not take becomes part of a message beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ChatMessage = Mapping[str, Any]

_USER = {"role": "user", "content": "zqfirst"}
_NEXT = {"role": "user", "content": "zqnext"}
_SYSTEM = {"role": "system", "content": "zqlater"}
_ANSWER = {"role": "assistant", "content": "zqanswer"}
_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "abcdefghi", "type": "function", "function": {"name": "zqcall", "arguments": {}}}],
}
_RESULT = {"role": "tool", "content": "zqresult", "tool_call_id": "abcdefghi", "name": "zqcall"}


@dataclass(frozen=True)
class RoleRules:
    """What a template takes, and writes: a `later_system` message behind others, several messages of the user
    in a row (`users_in_a_row`), one of the user right `after_results`.
    """

    later_system: bool
    users_in_a_row: bool
    after_results: bool

    @classmethod
    def of(cls, written: Callable[[Sequence[ChatMessage]], str]) -> RoleRules:
        """The rules of a template. `written`: its prompt of messages, empty where it refuses them."""

        def takes(*messages: ChatMessage) -> bool:
            text = written(messages)
            return bool(text) and all(message["content"] in text for message in messages)

        # What cannot even write one message tells nothing.
        knows_users, knows_results = takes(_USER), takes(_USER, _CALL, _RESULT)
        return cls(
            not knows_users or (takes(_USER, _SYSTEM) and takes(_USER, _ANSWER, _SYSTEM, _NEXT)),
            not knows_users or takes(_USER, _NEXT),
            not knows_results or takes(_USER, _CALL, _RESULT, _NEXT),
        )

    def keep(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The messages in an order that the template takes."""
        if self.later_system and self.users_in_a_row and self.after_results:
            return messages
        kept: list[ChatMessage] = []
        for message in self._without_later_system(messages):
            last = kept[-1]["role"] if kept else None
            is_joined = message["role"] == "user" and (
                (last == "user" and not self.users_in_a_row) or (last == "tool" and not self.after_results)
            )
            if is_joined:
                kept[-1] = _joined(kept[-1], message)
            else:
                kept.append(message)
        return kept

    def _without_later_system(self, messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
        if self.later_system:
            yield from messages
            return
        first = 0
        while first < len(messages) and messages[first]["role"] == "system":
            first += 1
        if first:
            system = messages[0]
            for message in messages[1:first]:
                system = _joined(system, message)
            yield system
        for message in messages[first:]:
            yield {**message, "role": "user"} if message["role"] == "system" else message


def _joined(message: ChatMessage, other: ChatMessage) -> ChatMessage:
    texts = (message["content"], other["content"])
    return {**message, "content": "\n\n".join(text for text in texts if text)}
