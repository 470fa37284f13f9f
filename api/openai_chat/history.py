"""Messages → what chat templates read: results stand behind their calls, in the order of the calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from larksong.api.errors import ApiError
from larksong.api.openai_chat.messages import Message
from larksong.api.turns.chat_template import ChatMessage


def template_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """The conversation as chat templates read it.

    Raises ApiError for a result without a call and for one that names another call than those before it.
    """
    written: list[ChatMessage] = []
    open_ids: list[str] = []  # calls of the last assistant message that have no result yet
    order: dict[str, int] = {}
    first_result = 0
    for index, message in enumerate(messages):
        if message.role in ("tool", "function"):
            result, called = _result(message, index, open_ids)
            open_ids.remove(called)
            written.append(result)
            written[first_result:] = sorted(
                written[first_result:], key=lambda each: order.get(each["tool_call_id"], 0)
            )
            continue
        made = _message(message, index)
        written.append(made)
        calls = made.get("tool_calls", ())
        open_ids = [call["id"] for call in calls]
        order = {id: place for place, id in enumerate(open_ids)}
        first_result = len(written)
        if len(order) < len(open_ids):
            raise ApiError("Two calls have the same id.", param=f"messages[{index}].tool_calls")
    return written


def _message(message: Message, index: int) -> dict[str, Any]:
    # Absent members stay absent: templates ask whether they are defined.
    calls = [
        # An id that a client left out is the call's place.
        {**call.model_dump(), "id": call.id or f"call_{index}_{place}"}
        for place, call in enumerate(message.tool_calls or ())
    ]
    if message.function_call is not None:
        function = message.function_call.model_dump()
        calls.append({"id": f"call_{index}_{len(calls)}", "type": "function", "function": function})
    reasoning, content = message.reasoning_content or message.reasoning, message.text
    if message.role == "assistant" and reasoning is None and content.startswith("<think>"):
        # Clients that do not know reasoning keep it in the text.
        thought, closed, rest = content.removeprefix("<think>").partition("</think>")
        if closed:
            reasoning, content = thought.strip("\n"), rest.lstrip("\n")
    optional = {"name": message.name, "reasoning_content": reasoning, "tool_calls": calls or None}
    # Models know the developer's instructions as the system message.
    role = "system" if message.role == "developer" else message.role
    present = {key: value for key, value in optional.items() if value is not None}
    return {"role": role, "content": content, **present}


def _result(message: Message, index: int, open_ids: list[str]) -> tuple[dict[str, Any], str]:
    """A result as a tool message, and the id of the call that it answers."""
    if not open_ids:
        raise ApiError(
            "A result must follow an assistant message with a call that has no result yet.",
            param=f"messages[{index}].role",
        )
    # Without an id it belongs to the first call that has none yet: llama-stack gives back no ids.
    called = message.tool_call_id or open_ids[0]
    if called not in open_ids:
        raise ApiError(
            f"'{called}' is not the id of a call before it that has no result yet.",
            param=f"messages[{index}].tool_call_id",
        )
    made: dict[str, Any] = {"role": "tool", "content": message.text, "tool_call_id": called}
    if message.name is not None:
        made["name"] = message.name
    return made, called
