"""larksong chat: in a pseudo terminal against a real server whose model is recorded text."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import openai
import pexpect
import pytest
from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner

from larksong.api.cli import app
from larksong.api.commands.chat.talk import Talk
from larksong.api.commands.chat.tools import ToolsFileError, load_tools
from larksong.api.commands.demo_view import CallRecord, LastLines
from larksong.api.offline.parse import parse_record
from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.turns.model import Model
from larksong.grammars import wire_format
from tests.api.serving import Recorded, Served, serving

CALL = wire_format("qwen3_coder").render_call("get_weather", {"city": "Oslo", "days": 3})
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
FUNCTIONS = '''
from typing import Annotated, Literal
from pydantic import Field

def get_weather(city: str, days: Annotated[int, Field(ge=1, le=14)] = 1) -> dict[str, object]:
    """The weather of some days."""
    return {"sky": f"clear over {city}", "days": days}

def _helper() -> None: ...
'''
YOU, QUIT = "you ▸ ", "/quit\r"


@contextmanager
def chatting(served: Served, *arguments: str) -> Iterator[Any]:
    """`larksong chat` on a terminal of 100 columns."""
    command = [
        "-c",
        "from larksong.api.cli import main; main()",
        "chat",
        "--url",
        str(served.client.base_url),
    ]
    child = pexpect.spawn(
        sys.executable,
        [*command, *arguments],
        encoding="utf-8",
        timeout=90,
        dimensions=(50, 100),
        env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"},
        # Shells let what they start in the background ignore Ctrl-C, and children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        child.expect(YOU)
        yield child
        child.send(QUIT)
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0
    finally:
        child.close(force=True)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS), encoding="utf-8")
    return str(file)


@pytest.fixture
def functions(tmp_path: Path) -> str:
    file = tmp_path / "tools.py"
    file.write_text(FUNCTIONS, encoding="utf-8")
    return str(file)


def test_a_call_grows_and_its_result_is_typed_by_hand(tools: str) -> None:
    with serving(CALL, "It will be clear.", tokens_per_second=60) as served:
        with chatting(served, "--tools", tools) as child:
            child.send("Oslo, three days?\r")
            child.expect("get_weather")
            child.expect('{"city": "Os')  # before the call is complete
            child.expect("result of get_weather ▸ ")
            child.send("sunny all day\r")
            child.expect("It will be clear")
            child.expect("finish_reason stop")
            child.expect(YOU)
        assert "sunny all day" in served.backend.prompts[1]


def test_python_functions_are_tools_and_enter_runs_them(functions: str) -> None:
    with serving(CALL, "Clear.") as served:
        with chatting(served, "--tools", functions, "--tool-choice", "required") as child:
            child.send("Oslo?\r")
            child.expect("Enter runs get_weather, or type its result ▸ ")
            child.send("\r")
            child.expect('"sky":"clear over Oslo","days":3')
            child.expect("finish_reason stop")
            child.expect(YOU)
        assert "The weather of some days." in served.backend.prompts[0]
        assert "clear over Oslo" in served.backend.prompts[1]


def test_an_answer_can_be_stopped_and_leaves_no_trace(functions: str) -> None:
    with serving("A long answer. " * 200, "Short.", tokens_per_second=30) as served:
        with chatting(served, "--tools", functions, "--run") as child:
            child.send("What is FIRST?\r")
            child.expect("A long")
            child.sendintr()
            child.expect("stopped")
            child.expect(YOU)
            child.send("What is SECOND?\r")
            child.expect("Short")
            child.expect(YOU)
        assert served.backend.closed.wait(10)
        assert "FIRST" not in served.backend.prompts[1]


def test_commands_errors_and_control_characters(tools: str) -> None:
    coloured = "Look: \x1b[31mred\x1b]0;title\x07 [bold]plain[/bold]"
    with serving("Hello.", coloured) as served:
        with chatting(served, "--tools", tools, "--system", f"Be BRIEF. {'0123456789' * 100}") as child:
            for line, shown in (
                ("/help", "forget the conversation"),
                ("/tools", '"properties"'),
                ("/choice maybe", "auto, required, none, get_weather; it is auto"),
                ("Hi FIRST", "finish_reason stop"),
                ("/new", "a new conversation"),
                ("/choice none", "tool_choice none"),
                ("/nothing", "there is no command /nothing"),
                (f"THIRD {'0123456789' * 330}", "(?i)context"),  # the server refuses, the chat goes on
                ("Hi SECOND", "␛\\[31mred␛\\]0;title␇ \\[bold\\]plain"),
            ):
                child.send(f"{line}\r")
                child.expect(shown)
                child.expect(YOU)
        (_, last) = served.backend.prompts
        assert "BRIEF" in last
        assert "FIRST" not in last
        assert "THIRD" not in last


@pytest.mark.parametrize(
    "shape",
    [
        [{"name": "get_weather", "input_schema": PARAMETERS}],  # Anthropic's
        [{"type": "function", "name": "get_weather", "parameters": PARAMETERS}],  # of the responses API
        {"functions": [{"name": "get_weather", "parameters": PARAMETERS}]},
        {"messages": [], "tools": TOOLS},
        TOOLS[0],
    ],
)
def test_tools_may_have_any_shape_that_requests_have(tmp_path: Path, shape: Any) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(shape), encoding="utf-8")
    assert [tool.spec["function"]["parameters"] for tool in load_tools(file)] == [PARAMETERS]
    line = {"format": "qwen3_coder", "tools": shape if isinstance(shape, list) else TOOLS, "text": CALL}
    found = parse_record({**line, "build": "strict"})
    assert json.loads(found["tool_calls"][0]["function"]["arguments"]) == {"city": "Oslo", "days": 3}
    done = CliRunner().invoke(app, ["parse", "--format", "qwen3_coder", "--tools", str(file)], input=CALL)
    assert '"days\\": 3' in done.stdout


def test_an_async_function_is_awaited(tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text("async def twice(x: int) -> int:\n    return 2 * x\n", encoding="utf-8")
    (tool,) = load_tools(file)
    assert tool.run('{"x": 3}') == "6"


def chat(served_at: str, *arguments: str, said: str) -> str:
    """What `larksong chat` prints where no terminal is."""
    done = CliRunner().invoke(app, ["chat", "--url", served_at, *arguments], input=said)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_servers_model_is_chosen_by_its_name(tools: str) -> None:
    models = [
        Model(Recorded("I am the " + name), wire_format("qwen3_coder"), name=name)
        for name in ("first", "second")
    ]
    with BackgroundServer(create_app(models)) as server:
        assert "I am the first" in chat(server.url, "--tools", tools, said="Who?\n")
        assert "I am the second" in chat(server.url, "--tools", tools, "--model", "second", said="Who?\n")
        unknown = chat(server.url, "--tools", tools, "--model", "third", said="Who?\n")
        assert "lists other models: first, second" in unknown
        assert "'third' does not exist here" in unknown


def test_a_call_that_is_cut_is_not_run(functions: str) -> None:
    with serving(CALL, "Hello.") as served:
        told = chat(
            str(served.client.base_url),
            "--tools",
            functions,
            "--run",
            "--max-tokens",
            "40",
            said="FIRST\nSECOND\n",
        )
        assert "ended in the middle of a call" in told
        assert "Hello." in told
        assert "FIRST" not in served.backend.prompts[1]


def test_the_result_of_a_tool_that_nobody_has_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: f"typed at: {prompt}")
    talk = Talk(openai.OpenAI(base_url="http://127.0.0.1:9", api_key="none"), "m", [], Console())
    assert talk.result(CallRecord("call_1", "unheard_of", "{}")) == "typed at: result of unheard_of ▸ "


def test_what_grows_stays_within_the_terminal() -> None:
    told = io.StringIO()
    Console(file=told, width=40, height=6).print(LastLines(Text("\n".join(map(str, range(20))))))
    assert told.getvalue().split() == ["15", "16", "17", "18", "19"]


def test_a_function_that_fails_is_a_result(functions: str) -> None:
    (tool,) = load_tools(Path(functions))
    assert "less than or equal to 14" in tool.run('{"city": "Oslo", "days": 15}')
    assert tool.run('{"city": "Rom"}') == '{"sky":"clear over Rom","days":1}'
    schema = tool.spec["function"]["parameters"]
    assert (schema["required"], schema["properties"]["days"]["maximum"]) == (["city"], 14)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.json", "{}", "an object without 'tools' is neither tools nor a request"),
        ("a.json", "[]", "has no tools"),
        ("a.json", '{"tools": 5}', "tools: a list of tools is wanted"),
        ("a.json", '[{"type": "function", "function": {}}]', "name"),
        ("a.py", "1 / 0", "ZeroDivisionError"),
        ("a.py", "import sys; sys.exit(3)", "cannot be imported: SystemExit: 3"),
        ("a.py", "x = 1", "has no functions"),
        ("a.py", "def f(x: object()) -> None: ...", "f: "),
    ],
)
def test_what_is_wrong_with_a_file_of_tools_is_said(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ToolsFileError, match=message):
        load_tools(file)
    done = CliRunner().invoke(app, ["chat", "--tools", str(file)])
    assert (done.exit_code, message in done.output) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tools", "nowhere.json"), "there is no file nowhere.json"),
        (("--tool-choice", "fly"), "auto, required, none or a tool (roll_dice"),
        (("--url", "http://127.0.0.1:9/v1"), "no answer from http://127.0.0.1:9/v1"),
        (("--url", "127.0.0.1:9/v1"), "--url must be like http://127.0.0.1:8000/v1"),
    ],
)
def test_what_is_wrong_with_a_flag_is_said(arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["chat", *arguments])
    assert (done.exit_code, message in done.output) == (2, True), done.output
