"""The programs in examples/ do what they say, without a real model."""

import ast
import json
import os
import runpy
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tokenizers import Tokenizer

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.turns.model import Model
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.model_store import DEFAULT_MODEL
from larksong.grammars import wire_format
from tests.api.serving import Recorded
from tests.support.tokenizers import EOS

EXAMPLES = Path(__file__).parent.parent / "examples"
CITIES = ({"city": "Amsterdam", "unit": "celsius"}, {"city": "Tokyo", "unit": "fahrenheit"})


def program(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name), run_name="example")


@pytest.fixture
def url() -> Iterator[str]:
    """A server with the name of the default model, which writes two calls and then a text."""
    render = wire_format("qwen3_coder").render_call
    calls = "\n".join(render("get_weather", city) for city in CITIES)
    model = Model(Recorded(calls, "It rains."), wire_format("qwen3_coder"), name=DEFAULT_MODEL)
    with BackgroundServer(create_app([model])) as server:
        yield server.url.removesuffix("/v1")


@pytest.mark.parametrize("seed", range(5))
def test_the_library_program_writes_a_valid_call_by_dice(
    seed: int, byte_tokenizer: Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tokenizer.json"
    byte_tokenizer.save(str(file))
    library = program("library.py")
    library["main"](str(file), EOS, seed)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "FunctionOpen(name='get_weather')"
    assert lines[-1] == "CallClose()"
    pieces = [line.removeprefix("Json(data=").removesuffix(")") for line in lines[1:-1]]
    arguments = b"".join(ast.literal_eval(piece) for piece in pieces)
    jsonschema.validate(json.loads(arguments), library["WEATHER"].parameters)


def test_the_replay_program_streams_what_was_recorded(
    smollm2: ModelFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    program("replay.py")["main"](None)
    deltas = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    functions = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert functions[0]["name"] == "write_file"
    assert len(functions) > 10
    assert json.loads("".join(function["arguments"] for function in functions)) == {
        "path": "notes.md",
        "text": "# Notes\n\nA line that says </parameter> is data.",
    }


def test_the_weather_program_makes_a_round_trip(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LARKSONG_URL", url)
    main: Callable[[], None] = program("weather.py")["main"]
    main()
    lines = capsys.readouterr().out.splitlines()
    assert '0 get_weather {"city": "Amsterdam", "unit": "celsius"}' in lines
    assert '1 get_weather {"city": "Tokyo", "unit": "fahrenheit"}' in lines
    assert lines[-1] == "It rains."


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_weather_script_shows_the_chunks(url: str) -> None:
    done = subprocess.run(
        ["sh", str(EXAMPLES / "weather.sh")],
        env={**os.environ, "LARKSONG_URL": url},
        capture_output=True,
        text=True,
        check=True,
    )
    chunks = [line.removeprefix("data: ") for line in done.stdout.splitlines() if line.startswith("data: ")]
    assert chunks.pop() == "[DONE]"
    assert sum('"name":"get_weather"' in chunk.replace(": ", ":") for chunk in chunks) == 2
