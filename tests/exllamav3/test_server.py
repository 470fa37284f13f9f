"""The server over exllamav3: many streams at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.exllamav3.folder import MARKERS, write_folder
from tests.exllamav3.load import measure
from tests.exllamav3.serving import ask_all, eager, serving

FORMATS = ("hermes", "qwen3_coder", "glm_4_5", "kimi_k2")
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer"},
        "hourly": {"type": "boolean"},
        "places": {"type": "array", "items": {"type": "string", "maxLength": 6}, "maxItems": 3},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
    for name in ("get_weather", "get_forecast")
]


def requests(count: int) -> list[dict[str, Any]]:
    """Four formats, with calls that must come, with calls that may, and without tools."""
    made = []
    for number in range(count):
        request: dict[str, Any] = {
            "model": "small",
            "messages": [{"role": "user", "content": f"question {number}"}],
            "tool_format": FORMATS[number % 4],
            "seed": number,
            "max_tokens": 300,
        }
        kind = (number // 4) % 4
        if kind != 3:
            request |= {"tools": TOOLS, "tool_choice": "auto" if kind == 2 else "required"}
        if kind == 0:
            request["parallel_tool_calls"] = False
        made.append(request)
    return made


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the markers of all four formats."""
    more = (
        *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
        *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>"),
        *("<|tool_call_argument_begin|>", "<|tool_call_end|>"),
    )
    return write_folder(tmp_path_factory.mktemp("models") / "marked", markers=(*MARKERS, *more))


@pytest.mark.parametrize("drafts", [{}, {"ngram_draft": 2}], ids=["forced", "n-gram"])
async def test_16_streams_at_once_write_what_they_write_one_by_one(
    marked: Path, drafts: dict[str, Any]
) -> None:
    with serving(marked, **drafts) as served:
        served.model.policy = eager(served.model, served.backend)
        asked = requests(16)
        together = await ask_all(served.url, asked, together=True)
        alone = await ask_all(served.url, asked, together=False)
        assert [(one.content, one.calls, one.reason) for one in together] == [
            (one.content, one.calls, one.reason) for one in alone
        ]
        finished = [one for one in together if one.reason == "tool_calls"]
        assert len(finished) >= 8
        for one in finished:
            for name, arguments in one.calls:
                assert name in ("get_weather", "get_forecast")
                jsonschema.validate(json.loads(arguments), PARAMETERS)
        assert any(one.reason in ("stop", "length") and not one.calls for one in together)
        assert served.model.threads == {"larksong-exllamav3"}


def test_attached_streams_leave_the_steps_alone() -> None:
    """A small run of `tests/exllamav3/load.py`; the best of its runs, since other work is measured too."""
    found = measure(streams=8, runs=3, blocks=2)
    assert len(found["with_ms"]) == 3
    assert min(found["without_ms"]) >= 10
    assert min(found["raised_each"]) < 0.25, found
