"""Conversations whose order of roles the chat template does not take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from larksong.api.turns.chat_template import ChatTemplate
from larksong.grammars import wire_format
from tests.support.families import FAMILIES, Family

HERMES = wire_format("hermes")
WRITES = """\
{%- for message in messages %}[{{ message.role }}] {{ message.content }}
{%- for call in message.tool_calls or [] %}({{ call.function.name }}){% endfor %}{{ '\\n' }}{% endfor %}"""
SYSTEM_FIRST = (
    "{% for message in messages %}{% if message.role == 'system' and not loop.first %}"
    "{{ raise_exception('system first') }}{% endif %}{% endfor %}" + WRITES
)
SYSTEM_DROPPED = WRITES.replace(
    "%}[", "%}{% if message.role == 'system' and not loop.first %}{% continue %}{% endif %}["
)
ALTERNATING = (
    "{% set talk = namespace(last='') %}{% for message in messages %}"
    "{% set side = 'assistant' if message.role == 'assistant' else 'user' %}"
    "{% if side == talk.last %}{{ raise_exception('alternate') }}{% endif %}"
    "{% set talk.last = side %}{% endfor %}" + WRITES
)
CALLS = [{"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]


def said(*messages: tuple[str, str]) -> list[dict[str, Any]]:
    """Messages of these roles and texts; one of the assistant without a text calls."""
    made = []
    for role, text in messages:
        message: dict[str, Any] = {"role": role, "content": text}
        if role == "assistant" and not text:
            message["tool_calls"] = CALLS
        if role == "tool":
            message["tool_call_id"] = "abcdefghi"
        made.append(message)
    return made


def test_instructions_behind_others_become_the_users_words() -> None:
    talk = said(("system", "A"), ("system", "B"), ("user", "C"), ("system", "D"), ("assistant", "E"))
    expected = "[system] A\n\nB\n[user] C\n[user] D\n[assistant] E\n"
    for source in (SYSTEM_FIRST, SYSTEM_DROPPED):
        assert ChatTemplate(source).render(talk, (), HERMES) == expected


def test_neighbours_are_joined_where_roles_alternate() -> None:
    talk = said(("user", "A"), ("user", "B"), ("assistant", ""), ("tool", "C"), ("user", "D"))
    rendered = ChatTemplate(ALTERNATING).render(talk, (), HERMES)
    assert rendered == "[user] A\n\nB\n[assistant] (f)\n[tool] C\n\nD\n"


def test_a_template_that_takes_everything_gets_the_messages_as_they_are() -> None:
    talk = said(("system", "A"), ("system", "B"), ("user", "C"), ("user", "D"), ("system", "E"))
    rendered = ChatTemplate(WRITES).render(talk, (), HERMES)
    assert rendered == "[system] A\n[system] B\n[user] C\n[user] D\n[system] E\n"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.template)
def test_no_template_of_a_family_refuses_or_drops_what_agents_send(family: Family) -> None:
    folder = os.environ.get("LARKSONG_CASES")
    if not folder:
        pytest.skip("LARKSONG_CASES does not name a folder of recorded cases")
    source = (Path(folder) / "templates" / f"{family.template}.jinja").read_text()
    template = ChatTemplate(source, bos_token=family.bos, eos_token=family.ends[0])
    talk = said(
        *(("system", "zqA"), ("user", "zqB"), ("user", "zqC"), ("system", "zqD"), ("assistant", "")),
        *(("tool", "zqE"), ("user", "zqF"), ("assistant", "zqG"), ("system", "zqH"), ("user", "zqI")),
    )
    rendered = template.render(talk, (), wire_format(family.format))
    assert [text for text in "ABCDEFGHI" if f"zq{text}" not in rendered] == []
