"""The items of the input → messages: what the assistant did between two others' words is one message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from larksong.api.errors import ApiError
from larksong.api.openai_chat.messages import HistoryCall, HistoryFunction, Message
from larksong.api.responses.hidden import shown
from larksong.api.responses.schemas import (
    CallItem,
    Item,
    MessageItem,
    OutputItem,
    ReasoningItem,
    ResponsesRequest,
    text_of,
)


@dataclass
class _Assistant:
    """A message of the assistant, as far as its items have come."""

    place: str
    thoughts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: list[HistoryCall] = field(default_factory=list)

    def message(self) -> Message:
        return Message(
            role="assistant",
            content="".join(self.texts),
            reasoning_content="\n\n".join(self.thoughts) or None,
            tool_calls=self.calls or None,
        )


class History:
    """The messages of a request, and where in it each comes from. Raises ApiError."""

    def __init__(self, request: ResponsesRequest) -> None:
        self.messages: list[Message] = []
        self.places: list[str] = []
        self._open: _Assistant | None = None
        if request.instructions:
            self._add(Message(role="system", content=request.instructions), "instructions")
        if isinstance(request.input, str):
            self._add(Message(role="user", content=request.input), "input")
        else:
            self._read(request.input)
        self._close()
        if not self.messages:
            raise ApiError("Invalid 'input': the list is empty.", param="input", code="empty_array")

    def _read(self, items: Sequence[Item]) -> None:
        for index, item in enumerate(items):
            place = f"input[{index}]"
            match item:
                case MessageItem(role="assistant"):
                    self._assistant(place).texts.append(text_of(item.content))
                case ReasoningItem():
                    text = text_of(item.content) or shown(item.encrypted_content) or text_of(item.summary)
                    if text:
                        self._assistant(place).thoughts.append(text)
                case CallItem():
                    self._assistant(place).calls.append(_call(item, place))
                case OutputItem():
                    self._close()
                    content = text_of(item.output)
                    self._add(Message(role="tool", tool_call_id=item.call_id, content=content), place)
                case MessageItem(role="user"):
                    self._close()
                    self._add(Message(role="user", content=text_of(item.content)), place)
                case MessageItem():
                    self._close()
                    self._instruct(text_of(item.content), place)

    def _instruct(self, text: str, place: str) -> None:
        """Instructions at the beginning are one system message: most chat templates know no second one."""
        if len(self.messages) == 1 and self.messages[0].role == "system":
            self.messages[0] = Message(role="system", content=f"{self.messages[0].text}\n\n{text}")
        else:
            self._add(Message(role="system", content=text), place)

    def _assistant(self, place: str) -> _Assistant:
        if self._open is None:
            self._open = _Assistant(place)
        return self._open

    def _close(self) -> None:
        if self._open is not None:
            self._add(self._open.message(), self._open.place)
            self._open = None

    def _add(self, message: Message, place: str) -> None:
        self.messages.append(message)
        self.places.append(place)


def _call(item: CallItem, place: str) -> HistoryCall:
    try:
        arguments = json.loads(item.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ApiError(f"The arguments are not JSON ({error}).", param=f"{place}.arguments") from None
    if not isinstance(arguments, dict):
        raise ApiError("The arguments are not a JSON object.", param=f"{place}.arguments")
    return HistoryCall(id=item.call_id, function=HistoryFunction(name=item.name, arguments=arguments))
