"""larksong check: every line of questions has one line of answer."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from larksong.api.cli import app
from larksong.api.commands.check import check
from larksong.api.turns.schema_policy import DEFAULT_POLICY, OnUnenforceable, SchemaPolicy
from larksong.grammars import format_names, wire_format

RUNNER = CliRunner()
BACK_REFERENCE = {"type": "string", "pattern": r"^(a|b)\1$"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "code": BACK_REFERENCE},
                "required": ["city"],
            },
        },
    }
]


def ask(question: Any, schemas: SchemaPolicy = DEFAULT_POLICY) -> dict[str, Any]:
    line = question if isinstance(question, str) else json.dumps(question)
    (answer,) = check([line], schemas)
    found: dict[str, Any] = json.loads(answer)
    assert set(found) == {"accepts", "offset", "expected", "widened", "error"}
    return found


def test_a_text_that_follows_the_schema_is_accepted() -> None:
    answer = ask({"schema": {"type": "integer", "minimum": 3}, "text": "3"})
    assert answer == {"accepts": True, "offset": None, "expected": [], "widened": [], "error": None}


@pytest.mark.parametrize(
    ("text", "offset"),
    [('{"a": "é"}', 8), ('{"a"', 4), ('{"a": 1', 7), ('{"b": 1}', 2), ("", 0), ('{"a": 1} ', 8)],
)
def test_a_text_that_does_not_is_refused_at_the_byte(text: str, offset: int) -> None:
    schema = {
        "properties": {"a": {"enum": [1, "è"]}},
        "required": ["a"],
        "additionalProperties": False,
        "type": "object",
    }
    answer = ask({"schema": schema, "text": text})
    assert (answer["accepts"], answer["offset"]) == (False, offset)
    assert answer["expected"]
    assert answer["error"] is None


@pytest.mark.parametrize("format", format_names())
def test_calls_are_checked_as_the_format_writes_them(format: str) -> None:
    question = {"format": format, "tools": TOOLS, "tool_choice": "required"}
    right = wire_format(format).render_call("get_weather", {"city": "Rome"})
    wrong = wire_format(format).render_call("get_weather", {"town": "Rome"})
    answer = ask({**question, "text": right})
    assert answer["accepts"]
    assert answer["widened"] == [{"pointer": "/get_weather/properties/code/pattern", "keyword": "pattern"}]
    assert right.encode()[: ask({**question, "text": wrong})["offset"]] == wrong.partition("town")[0].encode()


@pytest.mark.parametrize(
    ("strict", "unenforceable", "refused"),
    [
        (None, None, False),
        (False, None, False),
        (True, None, True),
        (True, "widen", False),
        (False, "refuse", True),
    ],
)
def test_strict_refuses_unless_the_flag_says_otherwise(
    strict: bool | None, unenforceable: OnUnenforceable | None, refused: bool
) -> None:
    answer = ask({"schema": BACK_REFERENCE, "strict": strict, "text": '"ab"'}, SchemaPolicy(unenforceable))
    assert answer["accepts"] != refused
    if refused:
        assert (answer["error"]["pointer"], answer["error"]["keyword"]) == ("/pattern", "pattern")
    else:
        assert answer["widened"] == [{"pointer": "/pattern", "keyword": "pattern"}]


def test_formats_are_asserted_unless_they_are_off() -> None:
    question = {"schema": {"type": "string", "format": "date"}, "text": '"today"'}
    assert not ask(question)["accepts"]
    assert ask(question, SchemaPolicy(formats=False))["accepts"]


@pytest.mark.parametrize(
    "question",
    [
        "{",
        "[]",
        "3",
        '{"text": 3}',
        '{"text": ""}',
        '{"schema": {"type": "texts"}, "text": ""}',
        '{"schema": {"$ref": "https://example.com/x"}, "text": ""}',
        '{"format": "morse", "tools": [], "text": ""}',
        '{"format": "hermes", "tools": [], "text": ""}',
        '{"format": "hermes", "tools": [3], "text": ""}',
        '{"format": "hermes", "tools": [{"name": "f"}], "tool_choice": "none", "text": ""}',
        "[" * 100_000,
    ],
)
def test_what_is_wrong_with_a_question_is_an_answer(question: str) -> None:
    answer = ask(question)
    assert not answer["accepts"]
    assert answer["error"]["message"]


def test_the_command_reads_and_writes_lines() -> None:
    lines = [{"schema": {"const": 1}, "text": text} for text in ("1", "2")]
    given = "\n\n".join(map(json.dumps, lines))
    result = RUNNER.invoke(app, ["check"], input=given)
    assert result.exit_code == 0
    assert [json.loads(line)["accepts"] for line in result.stdout.splitlines()] == [True, False]


def test_errors_are_answers_and_no_exit_status() -> None:
    lines = [
        "{",
        json.dumps({"schema": {"type": "strng"}, "text": ""}),
        json.dumps({"schema": {}, "text": "1"}),
    ]
    result = RUNNER.invoke(app, ["check"], input="\n".join(lines))
    assert result.exit_code == 0
    broken, wrong, right = map(json.loads, result.stdout.splitlines())
    assert "at character 2" in broken["error"]["message"]
    assert (wrong["error"]["pointer"], wrong["error"]["keyword"]) == ("/type", "type")
    assert right["accepts"]


def test_the_limits_are_flags_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"schema": {"enum": [1, 2, 3]}, "text": "1"})
    result = RUNNER.invoke(app, ["check", "--max-enum-values", "2"], input=line)
    assert "more than 2 values" in json.loads(result.stdout)["error"]["message"]
    monkeypatch.setenv("LARKSONG_MAX_ENUM_VALUES", "1")
    assert (
        "more than 1 values"
        in json.loads(RUNNER.invoke(app, ["check"], input=line).stdout)["error"]["message"]
    )
    assert RUNNER.invoke(app, ["check", "--max-enum-values", "0"], input=line).exit_code == 2


def test_the_command_has_the_flags() -> None:
    line = json.dumps({"schema": {"type": "string", "format": "date"}, "text": '"today"'})
    result = RUNNER.invoke(app, ["check", "--no-formats", "--unenforceable", "refuse"], input=line)
    assert json.loads(result.stdout)["accepts"]
    assert RUNNER.invoke(app, ["check", "--unenforceable", "maybe"], input=line).exit_code == 2
