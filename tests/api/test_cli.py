import json
from pathlib import Path

import pytest
from lark import Lark
from typer.testing import CliRunner

from larksong.api.cli import app

RUNNER = CliRunner()
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


@pytest.mark.parametrize(
    "command", [[], ["serve"], ["demo"], ["grammar"], ["check"], ["model"], ["model", "fetch"]]
)
def test_every_command_explains_itself(command: list[str]) -> None:
    result = RUNNER.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


@pytest.mark.parametrize("format", ["qwen3_coder", "hermes"])
def test_grammar_prints_lark_text(format: str) -> None:
    result = RUNNER.invoke(app, ["grammar", "-", "--format", format, "--required"], input=json.dumps(TOOLS))
    assert result.exit_code == 0
    assert result.output.startswith(f"// {format}: get_weather\n")
    assert "// in any order, none twice" in result.output
    assert "get_weather__city" in result.output.lower()
    Lark(result.output, parser="lalr")


def test_grammar_prints_lark_text_of_a_schema(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}))
    printed = RUNNER.invoke(app, ["grammar", "--schema", str(file)])
    assert printed.exit_code == 0
    assert RUNNER.invoke(app, ["grammar", "--schema", "-"], input=file.read_text()).output == printed.output
    assert "required: a" in printed.output
    Lark(printed.output, parser="lalr")


@pytest.mark.parametrize(
    ("arguments", "text", "word"),
    [
        ([], "", "--schema"),
        (["-", "--schema", "-"], "[]", "--schema"),
        (["--schema", "-"], "{", "Expecting"),
        (["--schema", "-"], '{"type": "text"}', "'text' is not a type"),
        (["--schema", "-"], '{"pattern": "(a)\\\\1"}', "pattern"),
    ],
)
def test_grammar_says_in_one_line_what_is_wrong(arguments: list[str], text: str, word: str) -> None:
    result = RUNNER.invoke(app, ["grammar", *arguments], input=text)
    assert result.exit_code == 2
    [line] = result.stderr.strip().splitlines()
    assert word in line


@pytest.mark.parametrize("command", ["serve", "demo"])
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--format", "morse"], ["morse", "hermes", "qwen3_coder"]),
        (["--model", "no/such/place"], ["no/such/place"]),
        (["--model", "EMPTY"], ["EMPTY", "config.json"]),
    ],
)
def test_what_cannot_be_served_is_one_line_and_exit_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, flags: list[str], words: list[str]
) -> None:
    (tmp_path / "EMPTY").mkdir()
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, [command, *flags])
    assert result.exit_code == 2
    [line] = result.stderr.strip().splitlines()
    assert line.startswith("larksong: ")
    assert all(word in line for word in words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "Invalid JSON"),
        ('["f"]', "[0]: "),
        ('[{"function": {"name": "f", "parameters": {"type": "object", "allOf": []}}}]', "allOf"),
        ("[]", "no tools"),
    ],
)
def test_tools_that_make_no_grammar_are_one_line_and_exit_status_2(content: str, words: str) -> None:
    result = RUNNER.invoke(app, ["grammar", "-"], input=content)
    assert result.exit_code == 2
    [line] = result.stderr.strip().splitlines()
    assert words in line


@pytest.mark.parametrize(
    ("target", "start"), [("kbnf", "start ::="), ("gbnf", "root ::="), ("llguidance", "start:")]
)
def test_the_grammar_is_written_for_other_engines(tmp_path: Path, target: str, start: str) -> None:
    file = tmp_path / "tools.json"
    function = {"name": "get", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    file.write_text(json.dumps([{"type": "function", "function": function}]))
    result = RUNNER.invoke(app, ["grammar", str(file), "--format", "hermes", "--to", target])
    assert result.exit_code == 0, result.output
    assert start in result.output
    assert "order in which they are declared" in result.output
