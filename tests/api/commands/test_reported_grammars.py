"""Public bug reports about grammars, through `larksong check`: what must be accepted, refused or compiled."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from larksong.api.commands.check import check
from larksong.api.turns.schema_policy import SchemaPolicy
from larksong.grammars import UnknownFormat, wire_format

JSON_FORMATS = ("hermes", "mistral", "qwen3_coder", "gemma4")

# Arguments that the reports ask for beside their own text: to be accepted, to be refused.
MORE: dict[str, tuple[list[Any], list[Any]]] = {
    "bug-055": ([{"ids": ["12"]}], [{"ids": ["x"]}, {"ids": []}, {"ids": ["12"] * 101}]),
    "bug-057": ([{"a": "hello there indeed!"}], [{"a": "hello there indeed"}]),
    "bug-058": ([{"a": 3}], [{"a": "x"}, {"a": None}]),
    "bug-060": (
        [{"a": 5e-07, "b": 2, "c": 0}],
        [{"a": 0, "b": 2, "c": -5}, {"a": 0.1, "b": 1, "c": -5}, {"a": 0.1, "b": 2, "c": -6}],
    ),
}
# Where the others must be refused: before this text.
REFUSED_AT = {
    "bug-012": "=a>\ntwo",
    "bug-015": ".0\n",
    "bug-042": "Paris",
    "bug-064": "unknown",
}


def reports() -> list[dict[str, Any]]:
    folder = os.environ.get("LARKSONG_CASES")
    if not folder:
        return []
    lines = (Path(folder) / "bug_reports.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [each for each in found if each["kind"] in ("grammar_accept", "grammar_reject", "compile")]


needs_cases = pytest.mark.skipif(
    not os.environ.get("LARKSONG_CASES"), reason="LARKSONG_CASES names no folder of recorded cases"
)


def asked(format: str, tools: list[Any], text: str) -> dict[str, Any]:
    question = {"format": format, "tools": tools, "tool_choice": "required", "text": text}
    (answer,) = check([json.dumps(question)], SchemaPolicy("refuse"))
    found: dict[str, Any] = json.loads(answer)
    assert found["error"] is None
    return found


@needs_cases
@pytest.mark.parametrize("report", [r for r in reports() if r["id"] in REFUSED_AT], ids=lambda r: r["id"])
def test_a_reported_turn_is_refused_where_it_goes_wrong(report: dict[str, Any]) -> None:
    try:
        wire_format(report["format"])
    except UnknownFormat:
        pytest.skip(f"there is no format {report['format']!r}")
    text = report["model_output"]
    answer = asked(report["format"], report["tools"], text)
    assert not answer["accepts"]
    assert answer["offset"] == len(text[: text.index(REFUSED_AT[report["id"]])].encode())


@needs_cases
@pytest.mark.parametrize("format", JSON_FORMATS)
@pytest.mark.parametrize("report", [r for r in reports() if r["format"] == "any JSON"], ids=lambda r: r["id"])
def test_reported_schemas_are_enforced_in_every_format(report: dict[str, Any], format: str) -> None:
    (tool,) = report["tools"]
    name = tool["function"]["name"]
    good, bad = MORE[report["id"]]
    own = [json.loads(report["model_output"])] if report["model_output"] else []
    good, bad = (good, bad + own) if report["kind"] == "grammar_reject" else (good + own, bad)
    for arguments, right in [*((each, True) for each in good), *((each, False) for each in bad)]:
        text = wire_format(format).render_call(name, arguments)
        assert asked(format, [tool], text)["accepts"] is right, (arguments, text)


@needs_cases
def test_every_report_about_a_grammar_is_tried() -> None:
    assert {each["id"] for each in reports()} == {*MORE, *REFUSED_AT}
