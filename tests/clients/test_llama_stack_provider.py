"""The provider remote::vllm of llama-stack 0.2.12 itself, in an environment of its own: `make test-llama-stack`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from larksong.grammars import wire_format
from tests.api.serving import serving
from tests.clients.round_trip import ANSWER, CALL

pytestmark = pytest.mark.llama_stack
SCRIPT = Path(__file__).parent / "provider" / "ask.py"
RESULT = "Rain, 19 °C"


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("format", ["qwen3_coder", "hermes"])
def test_the_provider_reads_several_calls_and_gives_them_back(format: str, way: str) -> None:
    calls = [CALL, ("ping", {}), CALL]
    text = "I look.\n" + wire_format(format).render_calls(calls)
    with serving(text, ANSWER, '{"days": 3}', format=format) as server:
        done = subprocess.run(
            [os.environ["LARKSONG_LLAMA_STACK"], "-I", SCRIPT, str(server.client.base_url), way],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found = json.loads(done.stdout.splitlines()[-1])
        prompts = server.backend.prompts
    assert found["health"] == "OK"
    assert [tuple(call) for call in found["calls"]] == calls
    assert len(set(found["ids"])) == 3
    assert (found["text"], found["answer"]) == ("I look.\n", ANSWER)
    assert found["json"] == {"days": 3}
    assert prompts[1].count(RESULT) == 3
