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
        (["--schema", "-"], '{"a":\n1,}', "standard input is not JSON: Expecting property name"),
        (["--schema", "-"], "{", "at line 1, column 2"),
        (["--schema", "-"], "[" * 100_000, "nested too deeply"),
        (["--schema", "-"], '{"model": "m", "messages": []}', "response_format"),
        (["--schema", "-"], '{"type": "json_schema", "json_schema": {}}', "json_schema.schema"),
        (["--schema", "-"], "[]", "not a list"),
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
    *logged, line = result.stderr.strip().splitlines()
    assert all("loading the model" in each for each in logged)
    assert line.startswith("larksong: ")
    assert all(word in line for word in words)


def test_help_names_the_environments_variables_and_fills_its_lines() -> None:
    shown = RUNNER.invoke(app, ["serve", "--help"]).stdout
    assert "LARKSONG_PORT" in shown
    assert all(f"{flag} <int>" in " ".join(shown.split()) for flag in ("--port", "--draft-tokens"))
    paragraph = RUNNER.invoke(app, ["parse", "--help"], env={"COLUMNS": "80"}).stdout
    assert '"token_ids" with "tokenizer", "build": "open"' in paragraph


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "standard input is not JSON"),
        ('["f"]', "[0]: "),
        ('{"tools": ["f"]}', "tools[0]: "),
        ('{"tools": {}}', "tools: a list of tools"),
        ('{"type": "object"}', "--schema"),
        ("3", "a list of tools"),
        ('[{"type": "function"}]', "[0].function: Field required"),
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
    "given",
    [
        {"model": "m", "messages": [], "tools": TOOLS},
        {"functions": [TOOLS[0]["function"]]},
        TOOLS[0],
        TOOLS[0]["function"],
        [{"name": "get_weather", "input_schema": TOOLS[0]["function"]["parameters"]}],
    ],
    ids=["a request", "functions", "one tool", "one function", "Anthropic's"],
)
def test_grammar_finds_the_tools_wherever_they_are(given: object) -> None:
    plain = RUNNER.invoke(app, ["grammar", "-"], input=json.dumps(TOOLS))
    found = RUNNER.invoke(app, ["grammar", "-"], input=json.dumps(given))
    assert (found.exit_code, found.stdout) == (0, plain.stdout)


def test_the_tool_choice_of_a_request_holds() -> None:
    given = json.dumps({"tools": TOOLS, "tool_choice": "required"})
    required = RUNNER.invoke(app, ["grammar", "-", "--required"], input=json.dumps(TOOLS))
    assert RUNNER.invoke(app, ["grammar", "-"], input=given).stdout == required.stdout


def test_grammar_finds_the_schema_of_a_response_format() -> None:
    schema = {"type": "integer"}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    plain = RUNNER.invoke(app, ["grammar", "--schema", "-"], input=json.dumps(schema))
    for given in (form, {"messages": [], "response_format": form}):
        assert (
            RUNNER.invoke(app, ["grammar", "--schema", "-"], input=json.dumps(given)).stdout == plain.stdout
        )


def test_grammar_says_what_is_not_enforced() -> None:
    schema = {"type": "string", "pattern": r"^(a|b)\1$"}
    function = {"name": "f", "parameters": {"type": "object", "properties": {"code": schema}}}
    result = RUNNER.invoke(app, ["grammar", "-"], input=json.dumps([function]))
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "larksong: not enforced: tool 'f', '/properties/code/pattern': back reference"
    )
    given = json.dumps(schema)
    assert RUNNER.invoke(app, ["grammar", "--schema", "-"], input=given).exit_code == 2
    widened = RUNNER.invoke(app, ["grammar", "--schema", "-", "--unenforceable", "widen"], input=given)
    assert (widened.exit_code, "'/pattern'" in widened.stderr) == (0, True)


def test_parse_answers_each_line_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    lines = [
        "{",
        json.dumps({"format": "morse", "text": ""}),
        json.dumps({"format": "hermes", "text": "Hi."}),
        json.dumps({"format": "hermes", "text": "Hi.", "tools": [5]}),
        json.dumps({"format": "hermes", "text": "Hi.", "id": "\ud800"}),
    ]
    result = RUNNER.invoke(app, ["parse"], input="\n".join(lines).encode() + b"\n\xff\n")
    assert result.exit_code == 0
    broken, unknown, right, odd, half, bytes_ = map(json.loads, result.stdout.splitlines())
    assert broken["error"].startswith("the line is not JSON: ")
    assert "'tools'" in odd["error"]
    assert half["id"] == "\ud800"
    assert "error" in bytes_
    assert "morse" in unknown["error"]
    assert right["content"] == "Hi."
    assert RUNNER.invoke(app, ["parse", "--format", "morse"], input="").exit_code == 2
    (tmp_path / "tools.json").write_text("{")
    wrong = RUNNER.invoke(app, ["parse", "--tools", str(tmp_path / "tools.json")], input="")
    assert (wrong.exit_code, "is not JSON" in wrong.stderr) == (2, True)


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
