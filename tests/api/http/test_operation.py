"""Keys, limits, the queue, logs, health, figures, shutdown, settings."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from larksong.api.cli import app
from larksong.api.errors import QueueFull
from larksong.api.http import logs
from larksong.api.http.admission import Admission
from larksong.api.http.auth import ApiKeys
from larksong.api.http.metrics import Metrics
from larksong.engine.backends.base import Finish, Step
from larksong.grammars import wire_format
from tests.api.serving import Served, serving
from tests.support.waiting import wait_until


def url(server: Served, path: str) -> str:
    return str(server.client.base_url).removesuffix("/v1/") + path


def ask(server: Served, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    body = {"model": "recorded", "messages": [{"role": "user", "content": "hi"}], **fields}
    return httpx.post(url(server, "/v1/chat/completions"), json=body, headers=headers, timeout=30)


# --- keys ---


def test_a_key_is_needed_everywhere_but_for_health() -> None:
    with serving("Hi.", settings={"api_key": "one, two"}) as server:
        assert ask(server).json()["error"]["code"] == "invalid_api_key"
        for headers in ({"Authorization": "Bearer three"}, {"Authorization": "Basic one"}):
            assert ask(server, headers).status_code == 401
        for key in ("one", "two"):
            assert ask(server, {"Authorization": f"Bearer {key}"}).status_code == 200
        assert httpx.get(url(server, "/v1/models")).status_code == 401
        assert httpx.get(url(server, "/metrics")).status_code == 401
        assert httpx.get(url(server, "/health/live")).status_code == 200


def test_a_file_of_keys_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# whose\nfirst\n")
    keys = ApiKeys([], file)
    assert keys.accept(b"Bearer first")
    file.write_text("second key\n")
    assert keys.accept(b"Bearer second key")
    assert not keys.accept(b"Bearer first")
    file.unlink()
    assert not keys.accept(b"Bearer second key")
    assert keys.needed


# --- limits ---


def test_a_body_above_the_limit_is_refused_and_read_to_its_end() -> None:
    with serving("Hi.", settings={"max_body_bytes": 1 << 20}) as server:
        answer = httpx.post(url(server, "/v1/chat/completions"), content=b"x" * (100 << 20), timeout=60)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
        assert ask(server).status_code == 200


def test_a_compressed_body_is_refused_in_the_shape_of_each_api() -> None:
    body = gzip.compress(json.dumps({"model": "recorded"}).encode())
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    with serving("Hi.") as server:
        for path in ("/v1/chat/completions", "/v1/messages"):
            answer = httpx.post(url(server, path), content=body, headers=headers)
            assert answer.status_code == 415
            assert "Content-Encoding: gzip" in answer.json()["error"]["message"]


def test_more_tools_or_larger_schemas_than_allowed_are_refused() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"description": "x" * 2000}}}
    with serving("Hi.", settings={"max_tools": 2, "max_schema_bytes": 1024}) as server:
        few = [{"type": "function", "function": {"name": name}} for name in "abc"]
        assert ask(server, tools=few[:2]).status_code == 200
        error = ask(server, tools=few).json()["error"]
        assert (error["param"], error["code"]) == ("tools", "too_many_tools")
        error = ask(server, tools=[few[0], tool]).json()["error"]
        assert (error["param"], error["code"]) == ("tools[1].function.parameters", "schema_too_large")
        error = ask(server, guided_json={"description": "x" * 2000}).json()["error"]
        assert (error["param"], error["code"]) == ("guided_json", "schema_too_large")


def test_a_full_queue_sends_requests_away_with_advice() -> None:
    settings = {"max_running": 1, "max_waiting": 1}
    with serving("word " * 40, tokens_per_second=60, settings=settings) as server:
        answers: list[httpx.Response] = []
        threads = [threading.Thread(target=lambda: answers.append(ask(server))) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(answers) == 2)  # those that were sent away
        ready = httpx.get(url(server, "/health/ready"))
        for thread in threads:
            thread.join()
        assert ready.status_code == 503
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) == 2
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert refused[0].json()["error"]["type"] == "rate_limit_error"
        assert httpx.get(url(server, "/health/ready")).status_code == 200


def test_a_client_that_leaves_the_queue_gives_up_its_place() -> None:
    body = {"model": "recorded", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    with serving("word " * 1000, tokens_per_second=50, settings={"max_running": 1}) as server:
        where = url(server, "/v1/chat/completions")

        def waiting(count: int) -> bool:
            figures = httpx.get(url(server, "/metrics"), timeout=30).text
            return f"larksong_waiting_requests {count}.0" in figures

        with httpx.stream("POST", where, json=body, timeout=30), socket.socket() as leaving:
            leaving.connect(("127.0.0.1", server.client.base_url.port))
            sent = json.dumps(body).encode()
            head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            leaving.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
            wait_until(lambda: waiting(1))
            leaving.close()
            wait_until(lambda: waiting(0))
            assert len(server.backend.prompts) == 1


async def test_places_in_the_queue_are_given_in_order() -> None:
    admission = Admission(1, 2)
    entered = await admission.enter()
    order: list[int] = []

    async def wait(number: int) -> None:
        mine = await admission.enter()
        order.append(number)
        admission.leave(mine)

    waiting = [asyncio.create_task(wait(number)) for number in (1, 2)]
    await asyncio.sleep(0)
    with pytest.raises(QueueFull):
        await admission.enter()
    admission.leave(entered)
    await asyncio.gather(*waiting)
    assert order == [1, 2]
    assert (admission.running, admission.waiting) == (0, 0)


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_that_takes_too_long_is_ended(stream: bool) -> None:
    with serving("word " * 100, tokens_per_second=20, settings={"max_seconds": 0.3}) as server:
        answer = ask(server, stream=stream)
        assert server.backend.closed.wait(5)
    if stream:
        *_, error, done = [line for line in answer.text.splitlines() if line]
        assert done == "data: [DONE]"
        assert json.loads(error.removeprefix("data: "))["error"]["code"] == "timeout"
    else:
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")


# --- logs ---


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logs.set_up("json", "info")
    yield lambda: capsys.readouterr().err
    root.handlers[:], root.level = before
    logging.getLogger("uvicorn.access").disabled = False


def test_a_line_a_request_without_what_was_asked(logged: Callable[[], str]) -> None:
    with serving("A secret answer.") as server:
        answer = ask(server, {"X-Request-Id": "mine-1"}, messages=[{"role": "user", "content": "A secret."}])
        made = ask(server).headers["x-request-id"]
    assert answer.headers["x-request-id"] == "mine-1"
    text = logged()
    lines = map(json.loads, text.splitlines())
    found = [line for line in lines if line["logger"] == "larksong.access"]
    assert [line["request_id"] for line in found] == ["mine-1", made]
    assert found[0]["path"] == "/v1/chat/completions"
    assert found[0]["status"] == 200
    assert found[0]["completion_tokens"] > 0
    assert found[0]["finish"] == ["stop"]
    assert "secret" not in text


def test_a_client_that_leaves_is_logged_with_what_was_written(logged: Callable[[], str]) -> None:
    with serving("word " * 400, tokens_per_second=50) as server:
        body = {"model": "recorded", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        with httpx.stream("POST", url(server, "/v1/chat/completions"), json=body) as answer:
            lines = answer.iter_lines()
            for _ in range(8):
                next(lines)
        wait_until(lambda: 'reason="left"' in httpx.get(url(server, "/metrics"), timeout=30).text, pause=0.05)
        figures = httpx.get(url(server, "/metrics")).text
    lines = map(json.loads, logged().splitlines())
    (found,) = [line for line in lines if line.get("path") == "/v1/chat/completions"]
    assert found["status"] == 499
    assert 0 < found["completion_tokens"] < 1000
    assert found["finish"] == []
    assert 'larksong_requests_total{path="/v1/chat/completions",status="499"} 1.0' in figures
    assert 'larksong_turns_total{format="qwen3_coder",model="recorded",reason="left"} 1.0' in figures


def test_what_was_asked_is_logged_on_request(logged: Callable[[], str]) -> None:
    with serving("Hi.", settings={"log_prompts": True}) as server:
        ask(server, messages=[{"role": "user", "content": "A secret."}])
    assert "A secret." in logged()


# --- start ---


def test_a_port_in_use_is_refused_before_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "larksong.api.commands.model.load_model", lambda settings: pytest.fail("it was loaded")
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "--port", str(port)])
    assert result.exit_code == 2
    assert f"port {port}" in result.output
    assert "--port" in result.output


def test_a_missing_model_is_refused_before_torch_is_imported() -> None:
    command = "import sys; from larksong.api.cli import app; sys.argv = ['larksong', 'serve', '--model', 'no/such']\n"
    command += "try: app()\nexcept SystemExit as end: print(end.code, 'torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["2", "False"]
    assert "no model 'no/such'" in found.stderr


# --- figures ---


def test_the_figures_count_what_happened() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    text = wire_format("hermes").render_calls([("f", {})])
    with serving(text, format="hermes") as server:
        ask(server, tools=tools)
        ask(server, model="gpt-7")
        figures = httpx.get(url(server, "/metrics")).text
    for line in (
        'larksong_requests_total{path="/v1/chat/completions",status="200"} 1.0',
        'larksong_requests_total{path="/v1/chat/completions",status="404"} 1.0',
        'larksong_turns_total{format="hermes",model="recorded",reason="stop"} 1.0',
        'larksong_time_to_first_token_seconds_count{model="recorded"} 1.0',
        "larksong_running_requests 0.0",
    ):
        assert line in figures
    written = next(
        line for line in figures.splitlines() if line.startswith("larksong_completion_tokens_total")
    )
    masks = next(line for line in figures.splitlines() if line.startswith("larksong_mask_seconds_count"))
    assert float(written.split()[-1]) == float(masks.split()[-1]) > 5


def test_a_mask_that_fights_the_model_is_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics(low_mass=0.01)
    watch = metrics.watch("m", "hermes", 10)
    for kept in (0.001, 0.9, 0.0001):
        watch(Step(1, b"a", (), 5, 0.1, kept=kept))
    watch(Finish("stop", (), cached_tokens=4))
    figures = metrics.text().decode()
    assert 'larksong_low_mass_tokens_total{format="hermes",model="m"} 2.0' in figures
    assert 'larksong_mask_removed_probability_bucket{format="hermes",le="0.5",model="m"} 1.0' in figures
    assert 'larksong_cached_prompt_tokens_total{model="m"} 4.0' in figures
    assert 'larksong_prefix_cache_hits_total{model="m"} 1.0' in figures
    assert "low mass: at 2 of 3 tokens" in caplog.text


# --- settings ---


def test_config_says_where_each_value_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "larksong.toml"
    file.write_text('port = 9000\nformat = "hermes"\napi_key = "secret"\n')
    monkeypatch.setenv("LARKSONG_CONFIG", str(file))
    monkeypatch.setenv("LARKSONG_FORMAT", "glm_4_7")
    done = CliRunner().invoke(app, ["config", "--log-level", "debug"])
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line for line in done.output.splitlines() if line.strip()}
    assert "9000" in rows["port"]
    assert f"file {file}" in rows["port"]
    assert "glm_4_7" in rows["format"]
    assert "environment LARKSONG_FORMAT" in rows["format"]
    assert "flag --log-level" in rows["log_level"]
    assert "default" in rows["host"]
    assert "secret" not in done.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 'x'\n", "port: Input should be a valid integer"),
        ("prot = 1\n", "prot is no setting"),
        ("port = = 1\n", "not TOML"),
        (None, "no such file"),
    ],
)
def test_a_wrong_file_of_settings_is_refused(
    text: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "larksong.toml"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("LARKSONG_CONFIG", str(file))
    done = CliRunner().invoke(app, ["config"])
    assert done.exit_code == 2
    assert said in done.output
    assert str(file) in done.output


def test_an_unknown_setting_is_told_with_the_one_that_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "larksong.toml"
    monkeypatch.setenv("LARKSONG_CONFIG", str(file))
    for name, said in (("prot", "did you mean port?"), ("nonsense", "`larksong config` lists them")):
        file.write_text(f"{name} = 1\n")
        assert said in CliRunner().invoke(app, ["config"]).output


def test_a_wrong_setting_is_told_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "(flag --port)" in CliRunner().invoke(app, ["config", "--port", "70000"]).output
    monkeypatch.setenv("LARKSONG_PORT", "x")
    assert "(environment LARKSONG_PORT)" in CliRunner().invoke(app, ["config"]).output


# --- shutdown ---

_SERVER = """
import sys, uvicorn
from larksong.api.turns.model import Model
from larksong.api.server import create_app
from larksong.api.settings.settings import Settings
from larksong.grammars import wire_format
from tests.api.serving import Recorded
model = Model(Recorded("word " * 30, tokens_per_second=30), wire_format("hermes"))
settings = Settings(shutdown_seconds=60)
uvicorn.run(create_app([model], settings), port=int(sys.argv[1]), timeout_graceful_shutdown=61)
"""


def _answers(address: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(address, timeout=30).is_success
    return False


def test_running_answers_go_on_when_the_server_is_told_to_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(port)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(f"{address}/health"), pause=0.1)
        body = {"model": "recorded", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        lines: list[str] = []
        with httpx.stream("POST", f"{address}/v1/chat/completions", json=body, timeout=30) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                if len(lines) == 5:
                    process.send_signal(signal.SIGTERM)
        assert "data: [DONE]" in lines
        assert "error" not in lines[-4]
        text = "".join(
            choice["delta"].get("content", "")
            for line in lines
            if line.startswith("data: {")
            for choice in json.loads(line.removeprefix("data: "))["choices"]
        )
        assert text == "word " * 30
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()


_ASKED = {"model": "recorded", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1000}


@pytest.mark.parametrize(
    ("path", "body", "last"),
    [
        ("chat/completions", _ASKED, ['"code":"shutting_down"}}', "data: [DONE]"]),
        ("completions", {"model": "recorded", "prompt": "hi", "max_tokens": 1000}, ["data: [DONE]"]),
        ("messages", _ASKED, ["event: error", '"type":"overloaded_error"']),
        ("responses", {"model": "recorded", "input": "hi"}, ["event: response.failed", "shutting down"]),
    ],
)
def test_answers_that_take_too_long_are_told_that_the_server_ends(
    path: str, body: dict[str, Any], last: list[str]
) -> None:
    answers: dict[bool, httpx.Response] = {}

    def ask(stream: bool) -> None:
        url = f"{server.client.base_url}{path}"
        answers[stream] = httpx.post(url, json={**body, "stream": stream}, timeout=30)

    settings = {"shutdown_seconds": 0.5}
    with serving("word " * 300, format="hermes", tokens_per_second=30, settings=settings) as server:
        threads = [threading.Thread(target=ask, args=[stream]) for stream in (True, False)]
        for thread in threads:
            thread.start()
        wait_until(lambda: server.backend.written >= 10)
    for thread in threads:
        thread.join()
    assert answers[False].status_code == 503
    assert "shutting down" in answers[False].json()["error"]["message"]
    end = answers[True].text[-1000:]
    assert [each for each in last if each not in end] == [], end
