"""What Anthropic's fields become in the chat request that runs."""

from __future__ import annotations

from typing import Any

import pytest

from larksong.api.anthropic.requests import translated
from larksong.api.anthropic.schemas import MessagesRequest
from larksong.api.errors import ApiError
from larksong.api.openai_chat.schemas import ChatRequest


def chat(**fields: Any) -> ChatRequest:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], **fields}
    return translated(MessagesRequest.model_validate(body)).chat


def test_thinking_is_left_to_the_chat_template_where_nothing_is_said() -> None:
    for made in (chat(), chat(thinking={"type": "adaptive"})):
        assert made.reasoning_effort is None
        assert made.chat_template_kwargs is None
        assert made.thinking_budget is None


@pytest.mark.parametrize("display", ["summarized", "omitted", "updates"])
def test_however_thinking_is_to_be_shown_it_is_asked_for(display: str) -> None:
    assert chat(thinking={"type": "enabled", "budget_tokens": 9, "display": display}).thinking_budget == 9


def test_thinking_is_switched_on_with_its_budget() -> None:
    made = chat(thinking={"type": "enabled", "budget_tokens": 2000}, chat_template_kwargs={"a": 1})
    assert made.chat_template_kwargs == {"enable_thinking": True, "thinking": True, "a": 1}
    assert made.thinking_budget == 2000


def test_thinking_is_switched_off_whatever_the_effort() -> None:
    made = chat(thinking={"type": "disabled"}, output_config={"effort": "high"})
    assert made.reasoning_effort == "none"
    assert chat(output_config={"effort": "high"}).reasoning_effort == "high"


def test_shared_fields_are_handed_on() -> None:
    made = chat(temperature=0.5, top_k=3, seed=1, tool_format="hermes", finish_within_budget=True)
    assert (made.temperature, made.top_k, made.seed) == (0.5, 3, 1)
    assert (made.tool_format, made.finish_within_budget, made.max_tokens) == ("hermes", True, 9)


def test_thinking_between_calls_stays_with_its_message() -> None:
    use: Any = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "a", "signature": "s"}, use]},
        result,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "b", "signature": ""},
                {"type": "text", "text": "so"},
                {"type": "thinking", "thinking": "c", "signature": "s"},
                {**use, "id": "2"},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "text", "text": "?"}, {"type": "tool_result", "tool_use_id": "2"}],
        },
    ]
    made = chat(messages=messages).messages
    assert [message.role for message in made] == ["user", "assistant", "tool", "assistant", "tool", "user"]
    assert [message.reasoning_content for message in made if message.role == "assistant"] == ["a", "b\n\nc"]
    assert made[3].text == "so"


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("user", {"type": "tool_use", "id": "1", "name": "f", "input": {}}),
        ("user", {"type": "thinking", "thinking": "a"}),
        ("assistant", {"type": "tool_result", "tool_use_id": "1"}),
    ],
)
def test_blocks_of_the_other_side_are_refused(role: str, block: Any) -> None:
    with pytest.raises(ApiError) as caught:
        chat(messages=[{"role": role, "content": [block]}, {"role": "user", "content": "Hi"}])
    assert caught.value.param == "messages[0].content"
