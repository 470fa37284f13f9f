"""Web pages of other origins: which may ask, and that they can read every kind of answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from larksong.api.cli import app
from larksong.api.settings.settings import Settings
from larksong.api.turns.model import Model
from tests.api.serving import Served, serving

PAGE = "https://chat.example.org"
ASKED = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
}


def ask(server: Served, origin: str = PAGE, key: str = "one", **fields: Any) -> httpx.Response:
    body = {"model": "recorded", "messages": [{"role": "user", "content": "hi"}], **fields}
    headers = {"Origin": origin, "Authorization": f"Bearer {key}"}
    return httpx.post(f"{server.client.base_url}chat/completions", json=body, headers=headers, timeout=30)


def test_a_page_may_ask_with_its_key_and_read_answers_streams_and_errors() -> None:
    origins = f"{PAGE}/, http://localhost:3000"
    settings = {"cors_origins": origins, "api_key": "one", "max_body_bytes": 1 << 20}
    with serving("Hi.", settings=settings) as server:
        before = httpx.options(f"{server.client.base_url}chat/completions", headers=ASKED)
        assert before.status_code == 200
        assert before.headers["access-control-allow-origin"] == PAGE
        assert "POST" in before.headers["access-control-allow-methods"]
        assert before.headers["access-control-allow-headers"] == ASKED["Access-Control-Request-Headers"]
        answers = {
            200: ask(server),
            401: ask(server, key="two"),
            404: ask(server, model="none"),
            400: ask(server, audio={}),
            413: ask(server, user="x" * (2 << 20)),
        }
        stream = ask(server, stream=True)
        assert stream.text.endswith("data: [DONE]\n\n")
        for status, answer in (*answers.items(), (200, stream)):
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert "x-request-id" in answer.headers["access-control-expose-headers"]


def test_a_page_can_read_of_faults_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with serving("Hi.", settings={"cors_origins": "*"}) as server:
        monkeypatch.setattr(Model, "prepare", fail)
        answer = ask(server)
        figures = httpx.get(str(server.client.base_url).removesuffix("/v1/") + "/metrics").text
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["x-request-id"].startswith("req_")
    assert 'larksong_requests_total{path="/v1/chat/completions",status="500"} 1.0' in figures


@pytest.mark.parametrize("origins", [None, "http://localhost:3000"])
def test_pages_of_other_origins_may_not(origins: str | None) -> None:
    with serving("Hi.", settings={"cors_origins": origins}) as server:
        before = httpx.options(f"{server.client.base_url}chat/completions", headers=ASKED)
        assert before.status_code in (400, 405)
        for answer in (before, ask(server)):
            assert "access-control-allow-origin" not in answer.headers


def test_a_file_may_list_the_origins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "larksong.toml"
    file.write_text(f'cors_origins = ["{PAGE}", "http://localhost:3000"]\n')
    monkeypatch.setenv("LARKSONG_CONFIG", str(file))
    assert Settings.load().cors_origins == f"{PAGE},http://localhost:3000"
    shown = CliRunner().invoke(app, ["config", "--cors-origins", "*"]).output
    assert "flag --cors-origins" in shown


@pytest.mark.parametrize("wrong", ["localhost:3000", f"{PAGE}/page", "http://*.example.org", "http://a b"])
def test_what_is_no_origin_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError, match="is no origin"):
        Settings(cors_origins=wrong)
