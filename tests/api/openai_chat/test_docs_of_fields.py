"""docs/api.md names every field that a chat completion declares, in the class that it has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import AliasChoices, ValidationError

from larksong.api.openai_chat.schemas import ChatRequest

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 7]


def _class_of(name: str) -> str:
    for row in ROWS:
        if f"`{name}`" in row.split("|")[1]:
            return row.split("|")[6].strip().split()[0]
    raise AssertionError(f"docs/api.md does not name {name}")


def _names(field: str) -> list[str]:
    alias: Any = ChatRequest.model_fields[field].validation_alias
    return [str(choice) for choice in alias.choices] if isinstance(alias, AliasChoices) else [field]


@pytest.mark.parametrize("field", sorted(set(ChatRequest.model_fields) - {"stream_options"}))
def test_every_field_is_named_in_its_class(field: str) -> None:
    from larksong.api.openai_chat.sampler_fields import unless

    refused = any(
        getattr(each, "func", None) is not None and each.func.__qualname__.startswith(unless.__name__)
        for each in ChatRequest.model_fields[field].metadata
    )
    for name in _names(field):
        assert _class_of(name) == ("400" if refused else "✓"), name


@pytest.mark.parametrize(
    "name",
    [
        name
        for row in ROWS
        if row.split("|")[6].strip().startswith("–")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ],
)
def test_what_is_harmless_is_taken(name: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    for value in (None, True, "x", {"a": [1]}):
        try:
            assert not hasattr(ChatRequest.model_validate({**body, name: value}), name)
        except ValidationError as error:
            raise AssertionError(name) from error
