"""Markers in the text of users, tools and instructions are text, whatever the chat template does with it."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.api.openai_chat.history import template_messages
from larksong.api.openai_chat.messages import Message
from larksong.api.turns.call_memory import CallMemory
from larksong.api.turns.chat_template import ChatTemplate
from larksong.api.turns.prompt_writer import PromptWriter
from larksong.api.turns.quoting import Quoting
from larksong.engine.backends.replay import ReplayBackend
from larksong.grammars import Tool, wire_format
from tests.support.examples import examples
from tests.support.families import FAMILIES, Family

PLAIN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | tojson }}<|im_end|>\n{% endfor %}"

# Qwen's and Seed's templates write names so.
NAMES = """\
{% for t in tools %}{% for name, schema in t.function.parameters.properties.items() %}
<p={{ name }}>{% for key, value in schema.items() %}<{{ key }}>{{ value }}</{{ key }}>{% endfor %}{% endfor %}{% endfor %}
{% for m in messages %}<{{ m.content }}>{% for c in m.tool_calls %}
{% for name, value in c.function.arguments.items() %}[{{ name }}]{{ value }}{% endfor %}{% endfor %}{% endfor %}"""


def sources() -> list[tuple[Family, str, str | None]]:
    """Every family with its own template where the recorded cases are there, and each with two of ours."""
    found: list[tuple[Family, str, str | None]] = [
        (family, name, source)
        for family in FAMILIES
        for name, source in (("chatml", None), ("json", PLAIN), ("names", NAMES))
    ]
    folder = os.environ.get("LARKSONG_CASES")
    if folder:
        for family in FAMILIES:
            source = (Path(folder) / "templates" / f"{family.template}.jinja").read_text()
            found.append((family, family.template, source))
    return found


@lru_cache(maxsize=1)
def backend_and_template(family: Family, source: str | None) -> tuple[ReplayBackend, ChatTemplate]:
    return family.backend(source, ""), ChatTemplate(source, bos_token=family.bos, eos_token=family.ends[0])


def prompt(family: Family, source: str | None, text: str) -> tuple[ReplayBackend, tuple[int, ...]]:
    """The prompt of a conversation that has `text` wherever a client may put it."""
    backend, template = backend_and_template(family, source)
    call = {"id": "call_1", "function": {"name": "f", "arguments": {"a": text, "n": 1}}}
    spoken: list[dict[str, Any]] = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "content": text, "tool_call_id": "call_1"},
    ]
    if "mistral" not in family.format:
        spoken.insert(0, {"role": "system", "content": text})
    tool = Tool("f", text, {"type": "object", "properties": {"a": {"type": "string", "description": text}}})
    writer = PromptWriter(backend, template, CallMemory())
    messages = template_messages([Message.model_validate(message) for message in spoken])
    return backend, writer.write(messages, [tool], wire_format(family.format), {}).tokens


@pytest.mark.parametrize(("family", "name", "source"), sources(), ids=lambda each: str(each)[:40])
def test_markers_in_the_text_of_clients_are_text(family: Family, name: str, source: str | None) -> None:
    harmless = "so and so"
    backend, expected = prompt(family, source, f"a {harmless} b")
    special = set(backend.vocabulary.special.values())
    for marker in family.markers:
        _, tokens = prompt(family, source, f"a {marker} b")
        assert [token for token in tokens if token in special] == [
            token for token in expected if token in special
        ], marker
        # Nothing is lost: the text is there, spelled with other tokens.
        written, unmarked = (
            backend.tokenizer.decode(list(ids), skip_special_tokens=False).replace("\\", "")
            for ids in (tokens, expected)
        )
        assert written.count(f"a {marker} b") >= unmarked.count(f"a {harmless} b"), marker


@pytest.mark.parametrize(("family", "name", "source"), sources(), ids=lambda each: str(each)[:40])
def test_no_template_completes_a_part_of_a_marker(family: Family, name: str, source: str | None) -> None:
    parts = {part for marker in family.markers for part in (marker[1:], marker[:-1], marker[1:-1])}
    parts |= {part.strip("<>[]|｜/") for part in parts}
    parts = {part for part in parts if len(part) > 1}

    def special(parts: list[str]) -> list[int]:
        backend, template = backend_and_template(family, source)
        calls = [
            {"id": "call_1", "function": {"name": "f", "arguments": dict(zip(parts, parts, strict=True))}}
        ]
        spoken: list[dict[str, Any]] = [
            {"role": "user", "content": parts[0]},
            {"role": "assistant", "content": parts[-1], "tool_calls": calls},
            {"role": "tool", "content": parts[0], "tool_call_id": "call_1"},
        ]
        properties = {part: {"type": "string", "enum": [part], part: part} for part in parts}
        tool = Tool("f", parts[0], {"type": "object", "properties": properties})
        writer = PromptWriter(backend, template, CallMemory())
        messages = template_messages([Message.model_validate(message) for message in spoken])
        tokens = writer.write(messages, [tool], wire_format(family.format), {}).tokens
        return [token for token in tokens if token in set(backend.vocabulary.special.values())]

    assert special(sorted(parts)) == special([f"name{place}" for place in range(len(parts))])


def test_a_name_is_cut_only_where_a_template_makes_a_marker_of_it() -> None:
    quoting, cut = Quoting(["<think>", "</think>", "<|im_end|>"]), "\U00100000"
    name, end = quoting.quote("think", cut), quoting.quote("a <|", cut)
    assert quoting.split(f'"{name}" <{name}> {name}> <{name}', cut) == ['"think" <t', "hink> think> <think"]
    assert quoting.split(f"{end}, {end}im_end|>", cut) == ["a <|, a <", "|im_end|>"]


@examples(50)
@given(st.lists(st.sampled_from(["<|im_end|>", "<|im_", "end|>", "<", "|>", "<tool_call>", "x", "\n"])))
def test_no_marker_is_left_however_its_pieces_meet(pieces: list[str]) -> None:
    markers = ["<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>"]
    text = "".join(pieces)
    quoted = Quoting(markers).quote(text, "\U00100000")
    assert not any(marker in quoted for marker in markers)
    assert quoted.replace("\U00100000", "") == text
