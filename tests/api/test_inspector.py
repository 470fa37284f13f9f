"""The inspector's endpoints: what the page is told of a text, of a live turn, and what it is refused."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from larksong.api.inspector.routes import PAGE
from larksong.api.offline.parse import parse_record
from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.settings.settings import Settings
from larksong.api.turns.generation import Model
from larksong.engine.backends.encoding import text_ids
from larksong.engine.packed import count_ids
from larksong.grammars import CallPolicy, Tool, format_names, wire_format
from tests.api.serving import Recorded, Served, serving

STATIC = Path(__file__).parents[2] / "api" / "inspector" / "static"
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "note": {"type": "string"},
    },
    "required": ["city"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
CALL = {"city": "Ærøskøbing", "unit": "celsius"}


class Inspector:
    """The endpoints of a served model, as the page asks them."""

    def __init__(self, served: Served, key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        base = str(served.client.base_url).removesuffix("/v1/")
        self.http = httpx.Client(base_url=f"{base}/inspector/api", headers=headers, timeout=120)
        self.model = served.model.name

    def question(self, text: str, **more: Any) -> dict[str, Any]:
        request = {"model": self.model, "messages": [{"role": "user", "content": "?"}], "tools": TOOLS}
        request |= more.pop("request", {})
        return {"request": request, "text": text, **more}

    def read(self, text: str, **more: Any) -> dict[str, Any]:
        return self.answer(self.http.post("read", json=self.question(text, **more)))

    def refused(self, path: str, body: Any) -> dict[str, Any]:
        answer = self.http.post(path, json=body)
        assert answer.status_code == 400, answer.text
        error: dict[str, Any] = answer.json()["error"]
        return error

    def steps(self, session: str, start: int) -> dict[str, Any]:
        return self.answer(self.http.get("steps", params={"session": session, "start": start}))

    def case(self, session: str) -> dict[str, Any]:
        return self.answer(self.http.get("case", params={"session": session}))

    @staticmethod
    def answer(response: httpx.Response) -> Any:
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("Hello.", settings={"inspector": True}) as running:
        yield running


@pytest.fixture(scope="module")
def inspector(served: Served) -> Inspector:
    return Inspector(served)


def assembled(page: dict[str, Any]) -> dict[str, Any]:
    """What the page's steps make of what was before them."""
    calls = [[call["name"], call["text"]] for call in page["before"]["calls"]]
    said = {kind: page["before"][kind]["text"] for kind in ("content", "reasoning")}
    for delta in (delta for step in page["steps"] for delta in step["deltas"]):
        if delta["kind"] == "call":
            calls.append([delta["name"], ""])
        elif delta["kind"] == "arguments":
            calls[delta["index"]][1] += delta["text"]
        else:
            said[delta["kind"]] += delta["text"]
    return {"calls": calls, **said}


def test_a_case_with_half_a_character_is_a_line_too(inspector: Inspector) -> None:
    function = {"name": "f", "parameters": {"title": "\ud800"}}
    body = json.dumps(
        inspector.question("x", request={"tools": [{"type": "function", "function": function}]})
    )
    found = inspector.answer(
        inspector.http.post("read", content=body, headers={"Content-Type": "application/json"})
    )
    assert inspector.case(found["session"])["tools"][0]["parameters"] == {"title": "\ud800"}


def test_a_text_is_cut_by_the_tokenizer_that_is_chosen(inspector: Inspector) -> None:
    text = wire_format("qwen3_coder").render_call("get_weather", CALL)
    found = inspector.read(text, tokenizer="single bytes")
    assert (found["count"], found["tokens"]) == (len(text.encode()) + 1, 257)
    assert [step["text"] for step in found["steps"][:5]] == ["<", "t", "o", "o", "l"]
    assert "\\xc3" in [step["text"] for step in found["steps"]]  # of "Æ"
    named = inspector.read(text, tokenizer=inspector.model)
    assert named["count"] == inspector.read(text)["count"]
    assert inspector.case(found["session"]) == inspector.case(named["session"])
    answer = inspector.http.post("read", json=inspector.question(text, tokenizer="no_such"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


def test_it_is_off_by_default() -> None:
    with serving("Hello.") as served:
        base = str(served.client.base_url).removesuffix("/v1/")
        for path in ("/inspector", "/inspector/", "/inspector/api/about"):
            assert httpx.get(f"{base}{path}").status_code == 404
        assert served.client.chat.completions.create(
            model=served.model.name, messages=[{"role": "user", "content": "?"}]
        )


def test_the_page_is_open_and_its_data_needs_the_key() -> None:
    with serving("Hello.", settings={"inspector": True, "api_key": "secret"}) as served:
        base = str(served.client.base_url).removesuffix("/v1/")
        for path in ("/inspector/", *(f"/inspector/static/{file.name}" for file in STATIC.iterdir())):
            answer = httpx.get(f"{base}{path}")
            assert answer.status_code == 200 or path.endswith(".html")
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        for method, path in (("GET", "about"), ("GET", "live"), ("POST", "read"), ("GET", "steps")):
            assert httpx.request(method, f"{base}/inspector/api/{path}").status_code == 401
        assert Inspector(served, "secret").http.get("about").json()["model"] == "recorded"


def test_the_page_has_nothing_from_elsewhere_and_makes_no_markup() -> None:
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//cdn|@import", text), file
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text), file


def test_each_step_tells_mask_terminals_events_and_deltas(served: Served, inspector: Inspector) -> None:
    text = wire_format("qwen3_coder").render_call("get_weather", CALL)
    page = inspector.read(text)
    assert (page["complete"], page["growing"], page["unread"]) == (True, False, 0)
    vocabulary = served.backend.vocabulary
    ids = text_ids(served.backend.tokenizer, vocabulary, text)
    assert [step["token"] for step in page["steps"]] == [*ids, None]
    grammar = wire_format("qwen3_coder").grammar(
        [Tool("get_weather", parameters=PARAMETERS)], CallPolicy(), vocabulary
    )
    matcher = served.model.engine.matcher(grammar)
    for token, step in zip(ids, page["steps"], strict=False):
        assert step["allowed"] == count_ids(matcher.mask())
        assert ("few" in step) == (step["allowed"] <= 12)
        assert step["live"]
        matcher.advance(token)
    assert assembled(page)["calls"] == [["get_weather", '{"city": "Ærøskøbing", "unit": "celsius"}']]
    kinds = [event["event"] for step in page["steps"] for event in step["events"]]
    assert kinds[:2] == ["function_open", "parameter_open"]
    assert kinds[-1] == "call_close"


def test_a_refusal_is_traced_to_its_keyword(inspector: Inspector) -> None:
    text = wire_format("qwen3_coder").render_call("get_weather", {"city": "Oslo", "unit": "kelvin"})
    page = inspector.read(text)
    assert [step["refused"] for step in page["steps"]].count(True) == 1
    assert page["unread"] > 0
    assert page["complete"] is False
    (wanted,) = page["refusal"]["wanted"]
    assert (wanted["keyword"], wanted["pointer"]) == ("enum", "/properties/unit/enum")
    assert "few" in page["steps"][-2]
    assert "allowed" not in page["steps"][-1]


def test_pages_carry_what_was_before_them(inspector: Inspector) -> None:
    note = " ".join(f"word{i} \\ ø" for i in range(400))
    page = inspector.read(
        wire_format("hermes").render_call("get_weather", {"city": "Oslo", "note": note}),
        request={"tools": TOOLS, "tool_format": "hermes"},
    )
    assert page["count"] > 3 * PAGE
    session, made, start = page["session"], [], 0
    while start < page["count"]:
        part = inspector.steps(session, start)
        made.append(assembled(part))
        start += PAGE
    whole = parse_record(inspector.case(session))["tool_calls"][0]["function"]["arguments"]
    assert made[-1]["calls"] == [["get_weather", whole]]
    for one, other in pairwise(made):
        assert other["calls"][0][1].startswith(one["calls"][0][1])


@pytest.mark.parametrize("mode", ["schema", "open"])
@pytest.mark.parametrize("format", format_names())
def test_a_saved_case_is_read_by_parse_as_the_page_read_it(
    inspector: Inspector, format: str, mode: str
) -> None:
    text = wire_format(format).render_call("get_weather", CALL)
    page = inspector.read(text, mode=mode, request={"tool_format": format})
    case = inspector.case(page["session"])
    assert (case["text"], case["format"]) == (text, format)
    found = parse_record(case)
    calls = [[call["function"]["name"], call["function"]["arguments"]] for call in found["tool_calls"]]
    assert assembled(page)["calls"] == calls
    assert calls[0][0] == "get_weather"
    assert found["warnings"] == []


def test_compat_mode_and_reasoning_are_read_as_parse_reads_them(inspector: Inspector) -> None:
    text = "Hm.\n</think>\n\n" + wire_format("qwen3_coder").render_call("get_weather", CALL)
    for mode in ("schema", "open", "compat"):
        page = inspector.read(text, mode=mode, in_reasoning=True)
        found = parse_record(inspector.case(page["session"]))
        made = assembled(page)
        assert made["reasoning"] == found["reasoning_content"]
        assert "Hm." in made["reasoning"]
        assert made["calls"][0][1] == found["tool_calls"][0]["function"]["arguments"]


def test_the_prompt_of_a_case_ends_in_reasoning_in_every_format_that_has_it(inspector: Inspector) -> None:
    tails = inspector.answer(inspector.http.get("about"))["reasoning"]
    assert {name for name, tail in tails.items() if tail is None} == {"llama3_json", "mistral_v3"}
    for name, tail in tails.items():
        page = inspector.read("Hm.", mode="open", in_reasoning=True, request={"tool_format": name})
        case = inspector.case(page["session"])
        assert case.get("prompt_tail") == tail
        assert wire_format(name).ends_in_reasoning(tail or "") == (tail is not None)
        assert parse_record(case)["reasoning_content"] == ("Hm." if tail else "")


def test_the_grammar_is_lark_text(inspector: Inspector) -> None:
    for mode in ("schema", "open"):
        body = inspector.question("", mode=mode)
        found = inspector.answer(inspector.http.post("grammar", json=body))
        assert "start: " in found["lark"]


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": 5}}}]},
            "tools[0].function.parameters#/type",
        ),
        ({"tools": {"name": "f"}}, "request.tools"),
        ({"tools": [{"type": "function", "function": {}}]}, "request.tools[0].function.name"),
        ({"tools": None}, "request.tools"),
        ({"tool_format": "no_such"}, "tool_format"),
        ({"tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice.function.name"),
    ],
)
def test_a_malformed_question_is_refused_with_its_place(
    inspector: Inspector, request_: dict[str, Any], param: str
) -> None:
    body = inspector.question("x", request=request_)
    assert inspector.refused("read", body)["param"] == param
    assert inspector.refused("grammar", body)["param"] == param


def test_a_live_turn_is_read_while_it_runs() -> None:
    text = wire_format("qwen3_coder").render_call("get_weather", CALL)
    with serving(text, tokens_per_second=60, settings={"inspector": True}) as served:
        inspector = Inspector(served)
        assert inspector.http.get("live").json() == []

        def ask() -> None:
            served.client.chat.completions.create(
                model=served.model.name,
                messages=[{"role": "user", "content": "?"}],
                tools=TOOLS,  # type: ignore[arg-type]
            )

        asking = threading.Thread(target=ask)
        asking.start()
        while not (turns := inspector.http.get("live").json()):
            pass
        page = inspector.answer(inspector.http.post(f"live/{turns[0]['id']}"))
        counts = [page["count"]]
        while page["growing"]:
            page = inspector.steps(page["session"], 0)
            counts.append(page["count"])
        asking.join()
        assert counts == sorted(counts)
        assert len(set(counts)) > 3
        assert page["complete"]
        assert assembled(page)["calls"] == [["get_weather", '{"city": "Ærøskøbing", "unit": "celsius"}']]
        case = inspector.case(page["session"])
        assert case["text"] == text
        assert parse_record(case)["warnings"] == []
        (turn,) = inspector.http.get("live").json()
        assert (turn["ended"], turn["tools"], turn["format"]) == ("stop", ["get_weather"], "qwen3_coder")


@pytest.mark.parametrize(
    "wanted",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": PARAMETERS}}},
        {"guided_choice": ['{"city": "Oslo"}', "no"]},
        {},
    ],
)
def test_an_answer_without_tools_is_a_case_for_parse_too(wanted: dict[str, Any]) -> None:
    with serving('{"city": "Oslo"}', settings={"inspector": True}) as served:
        inspector = Inspector(served)
        served.client.chat.completions.create(
            model=inspector.model, messages=[{"role": "user", "content": "?"}], extra_body=wanted
        )
        (turn,) = inspector.answer(inspector.http.get("live"))
        page = inspector.answer(inspector.http.post(f"live/{turn['id']}", json={}))
        assert ("allowed" in page["steps"][0]) == bool(wanted)
        assert parse_record(inspector.case(page["session"]))["content"] == '{"city": "Oslo"}'


def test_a_live_turn_is_read_by_its_own_models_tokens() -> None:
    """The second model has a token that the first has not."""
    text = wire_format("qwen3_coder").render_call("get_weather", {"city": "Oslo"})
    models = [
        Model(Recorded(text, markers=markers), wire_format("qwen3_coder"), name=name)
        for name, markers in (("first", ()), ("second", ("<tool_call>", "</tool_call>")))
    ]
    with BackgroundServer(create_app(models, Settings(inspector=True))) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        inspector = Inspector(Served(client, models[0], models[0].backend))  # type: ignore[arg-type]
        for name in ("first", "second"):
            client.chat.completions.create(
                model=name,
                messages=[{"role": "user", "content": "?"}],
                tools=TOOLS,  # type: ignore[arg-type]
            )
        turns = inspector.answer(inspector.http.get("live"))
        assert [turn["model"] for turn in turns] == ["second", "first"]
        pages = [inspector.answer(inspector.http.post(f"live/{turn['id']}", json={})) for turn in turns]
        assert [page["tokenizer"] for page in pages] == ["second", "first"]
        assert [page["steps"][0]["text"] for page in pages] == ["<tool_call>", "<"]
        for page in pages:
            assert assembled(page)["calls"] == [["get_weather", '{"city": "Oslo"}']]


def test_a_refusal_is_explained_by_what_comes_behind_the_token(inspector: Inspector) -> None:
    days = {"type": "integer", "minimum": 30, "maximum": 79}
    function = {"name": "f", "parameters": {"type": "object", "properties": {"days": days}}}
    text = wire_format("qwen3_coder").render_call("f", {"days": 85})
    page = inspector.read(
        text, tokenizer="single bytes", request={"tools": [{"type": "function", "function": function}]}
    )
    assert [each["keyword"] for each in page["refusal"]["wanted"]] == ["maximum"]


def test_two_hundred_tools_and_a_long_output(inspector: Inspector) -> None:
    tools = [
        {"type": "function", "function": {"name": f"tool_{i}", "parameters": PARAMETERS}} for i in range(200)
    ]
    text = wire_format("qwen3_coder").render_call("tool_150", {"city": "Oslo", "note": "row 1;\n" * 20_000})
    page = inspector.read(text, request={"tools": tools})
    assert page["complete"]
    last = inspector.steps(page["session"], page["count"] - 1 - (page["count"] - 1) % PAGE)
    (call,) = last["before"]["calls"]
    assert call["length"] > len(text)
    assert len(call["text"]) < 30_000


def test_readings_that_are_not_kept_any_more_are_said_to_be(inspector: Inspector) -> None:
    first = inspector.read("x")["session"]
    for _ in range(16):
        inspector.read("y")
    answer = inspector.http.get("steps", params={"session": first})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "session_gone")
    assert inspector.http.post("live/none").status_code == 404
