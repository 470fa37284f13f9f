"""larksong explain: an explanation for people, or as JSON, and an exit status."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from typer.testing import CliRunner

from larksong.api.cli import app
from larksong.grammars import wire_format
from tests.support.tokenizers import EOS

RUNNER = CliRunner()
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
WRONG = wire_format("hermes").render_call("get_weather", {"city": "Rome", "unit": "kelvin"})
RIGHT = wire_format("hermes").render_call("get_weather", {"city": "Rome", "unit": "celsius"})


@pytest.fixture
def tools(tmp_path: Path) -> str:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS), encoding="utf-8")
    return str(file)


def explain(text: str | bytes, *arguments: str, status: int = 1) -> str:
    done = RUNNER.invoke(app, ["explain", *arguments], input=text)
    assert done.exit_code == status, done.output
    return done.stdout


def as_json(text: str | bytes, *arguments: str, status: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(explain(text, "--json", *arguments, status=status))
    assert set(found) == {
        *("format", "calls", "allowed", "complete", "offset", "token", "live", "wanted", "nearest")
    }
    return found


def test_a_refusal_is_told_with_its_place_keyword_and_pointer(tools: str) -> None:
    shown = explain(WRONG, "--tools", tools, "--format", "hermes")
    offset = WRONG.encode().index(b"kelvin")
    assert f"refused at byte {offset} (hermes, 1 call)\n" in shown
    for part in (
        "get_weather /properties/unit/enum",
        'enum is ["celsius", "fahrenheit"]',
        "GET_WEATHER_1_ENUM",
    ):
        assert part in shown


def test_json_has_the_same(tools: str) -> None:
    found = as_json(WRONG, "--tools", tools, "--format", "hermes")
    assert found["offset"] == WRONG.encode().index(b"kelvin")
    assert found["wanted"] == [
        {
            "tool": "get_weather",
            "pointer": "/properties/unit/enum",
            "keyword": "enum",
            "value": ["celsius", "fahrenheit"],
            "message": 'enum is ["celsius", "fahrenheit"]',
            "in_request": False,
        }
    ]
    assert [each["text"] for each in found["nearest"]] == ["c", "f"]


def test_a_text_that_is_right_has_the_status_0(tools: str) -> None:
    found = as_json(RIGHT, "--tools", tools, "--format", "hermes", status=0)
    assert (found["allowed"], found["complete"], found["wanted"]) == (True, True, [])
    assert (found["format"], found["calls"]) == ("hermes", 1)
    # Text of another format is text: the answer says that nothing of it is a call.
    assert "a whole turn (qwen3_coder, 0 calls)" in explain(RIGHT, "--tools", tools, status=0)
    assert "a whole turn" in explain(RIGHT, "--tools", tools, "--format", "hermes", status=0)
    assert "not a whole turn" in explain(RIGHT[:-9], "--tools", tools, "--format", "hermes", status=0)


def test_the_commands_of_the_pages_print_what_stands_there(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[3]
    monkeypatch.chdir(root)
    asked = 0
    for page in (root / "README.md", root / "docs" / "debugging.md"):
        for block in re.findall(
            r"^    \$ larksong (.*\n(?:    .*\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE
        ):
            command, *lines = block.split("\n    ")
            done = RUNNER.invoke(app, shlex.split(command, comments=True), env={"COLUMNS": "120"})
            printed = [line.rstrip() for line in done.stdout.splitlines()]
            shown = [line.rstrip() for line in lines if line.strip() != "…"]
            assert printed[: len(shown)] == shown
            asked += 1
    assert asked == 2


def test_a_whole_request_says_what_of_calls_it_wants(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    other = {"type": "function", "function": {"name": "other"}}
    wanted: list[tuple[dict[str, Any], str, str | None]] = [
        ({}, "Hello", None),
        ({"tool_choice": "auto"}, "Hello", None),
        ({"tool_choice": "required"}, "Hello", "/tool_choice"),
        ({"tool_choice": {"type": "any"}}, "Hello", "/tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "other"}}}, RIGHT, "/tool_choice"),
        ({"tool_choice": {"type": "tool", "name": "other"}}, RIGHT, "/tool_choice"),
        ({"min_tool_calls": 2}, RIGHT, "/min_tool_calls"),
        ({"parallel_tool_calls": False}, f"{RIGHT}\n{RIGHT}", "/max_tool_calls"),
    ]
    for said, text, pointer in wanted:
        file.write_text(json.dumps({"model": "m", "messages": [], "tools": [*TOOLS, other], **said}), "utf-8")
        found = json.loads(
            RUNNER.invoke(
                app, ["explain", "--tools", str(file), "--format", "hermes", "--json"], input=text
            ).stdout
        )
        assert [each["pointer"] for each in found["wanted"]] == ([pointer] if pointer else []), said
    file.write_text(json.dumps({"tools": TOOLS, "tool_choice": "none"}), "utf-8")
    for command in (("grammar", str(file)), ("explain", "--tools", str(file))):
        done = RUNNER.invoke(app, command, input="Hello")
        assert (done.exit_code, "tool_choice is none" in done.output) == (2, True)
    file.write_text(json.dumps({"tools": TOOLS, "tool_choice": "nobody"}), "utf-8")
    assert RUNNER.invoke(app, ["grammar", str(file)]).exit_code == 2


def test_a_schema_is_asked_without_tools(tmp_path: Path) -> None:
    schema, text = tmp_path / "schema.json", tmp_path / "answer.json"
    schema.write_text(json.dumps(PARAMETERS), encoding="utf-8")
    text.write_text('{"unit": "celsius"}', encoding="utf-8")
    found = as_json("", "--schema", str(schema), str(text))
    assert [(each["tool"], each["pointer"]) for each in found["wanted"]] == [(None, "/required")]


def test_nothing_that_is_shown_commands_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b[31m\x9b2J\u202e"
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"properties": {hostile: {"enum": [hostile, "x"]}}}), encoding="utf-8")
    name = json.dumps(hostile, ensure_ascii=False)
    shown = explain(f'{{{name}: "{hostile[-1]}y"}}', "--schema", str(schema))
    assert "␛[31m\ufffd2J\ufffd/enum" in shown.replace("\n", "").replace(" ", "")
    assert not set(shown) & {"\x1b", "\x9b", "\u202e"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_files_last_line_end_is_not_the_models(tmp_path: Path, end: str) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(PARAMETERS), encoding="utf-8")
    found = as_json('{"city": "Rome"}' + end, "--schema", str(schema), status=0)
    assert (found["complete"], found["offset"]) == (True, 16)
    assert as_json('{"city": "Rome"}\n' + end, "--schema", str(schema))["offset"] == 16


def test_no_character_is_cut_in_two(tools: str) -> None:
    text = WRONG.replace("Rome", "é" * 40).replace("kelvin", "é" * 40)
    for city in ("", "x"):
        assert "\ufffd" not in explain(
            text.replace("éé", city + "éé", 1), "--tools", tools, "--format", "hermes"
        )


def test_a_tokenizer_tells_the_token(tools: str, tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    file = tmp_path / "tokenizer.json"
    byte_tokenizer.save(str(file))
    arguments = ("--tools", tools, "--format", "hermes", "--tokenizer", str(tmp_path), "--eos", EOS)
    found = as_json(WRONG, *arguments)
    ids = byte_tokenizer.encode(WRONG).ids
    before = byte_tokenizer.decode(ids[: found["token"]])
    assert WRONG.startswith(before)
    assert len(before) <= found["offset"] == WRONG.index("kelvin")
    assert f"in token {found['token']}" in explain(WRONG, *arguments)


def test_tool_choice_is_part_of_the_request(tools: str) -> None:
    found = as_json("Hello", "--tools", tools, "--tool-choice", "required")
    assert found["wanted"][0]["pointer"] == "/tool_choice"


def test_a_turn_that_began_in_reasoning_is_read_so(tools: str) -> None:
    arguments = ("--tools", tools, "--format", "hermes", "--tool-choice", "required")
    text = f"Hm.\n</think>\n\n{RIGHT}"
    assert as_json(text, *arguments)["offset"] == 0
    assert as_json(text, *arguments, "--in-reasoning", status=0)["complete"]


def test_nothing_of_a_text_is_markup_or_controls_the_terminal(tools: str) -> None:
    text = WRONG.replace("Rome", "[red]\x1b[31m[/red]").encode() + b"\xff"
    shown = explain(text, "--tools", tools, "--format", "hermes")
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --tools or --schema"),
        (("--tools", "{tools}", "--format", "no_such"), "unknown wire format"),
        (("--tools", "{tools}", "--tool-choice", "no_such"), "no_such"),
        (("--tools", "{tools}", "--unenforceable", "maybe"), "'refuse' or 'widen'"),
        (("--tools", "{tools}", "--tokenizer", "nowhere.json"), "nowhere.json"),
    ],
)
def test_what_is_wrong_with_the_question_is_said(
    tools: str, arguments: tuple[str, ...], message: str
) -> None:
    done = RUNNER.invoke(app, ["explain", *(each.format(tools=tools) for each in arguments)], input="")
    assert done.exit_code == 2
    assert message in done.output
