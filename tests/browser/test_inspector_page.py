"""The inspector's page in a real browser: make test-browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from larksong.api.offline.parse import parse_record
from larksong.grammars import wire_format
from tests.api.serving import Served, serving

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from tests.browser.page import InspectorPage

pytestmark = pytest.mark.browser
STRING = {"type": "string"}
EVIL = "<script>window.stolen = 1</script><img src=x onerror='window.stolen = 1'>"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("Hello.", settings={"inspector": True}) as running:
        yield running


@pytest.fixture
def page(chrome: Chrome, served: Served) -> Iterator[InspectorPage]:
    from tests.browser.page import InspectorPage

    opened = InspectorPage(chrome, str(served.client.base_url)).ready()
    yield opened
    assert opened.troubles() == []


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def call(name: str, **arguments: Any) -> str:
    return wire_format("qwen3_coder").render_call(name, arguments)


def test_a_whole_session_by_keyboard_alone(page: InspectorPage) -> None:
    from tests.browser.page import END, HOME, LEFT, RIGHT

    _, count = page.place()
    page.element("strip").click()
    page.keys(HOME)
    assert page.place() == (1, count)
    page.keys(RIGHT, RIGHT, LEFT)
    assert page.place() == (2, count)
    page.keys(END)
    assert page.place() == (count, count)
    assert "a whole turn" in page.text("verdict")
    assert '{"city": "Reykjavik", "days": 3, "unit": "celsius"}' in page.text("assembled")
    events = []
    page.keys(HOME)
    for _ in range(count):
        events += [page.text("events")]
        page.keys(RIGHT)
    told = "".join(events)
    assert told.count("function_open") == told.count("call_close") == 1
    assert told.count("parameter_open") == 3
    # Typing goes into the text, and the reading follows it.
    from selenium.webdriver.common.by import By

    box = page.element("text")
    box.clear()
    for piece in ("<tool_call>\n<function=get_weather>\n", "<parameter=unit>\nkel"):
        box.send_keys(piece)
    page.wait(lambda: "refused" in page.text("verdict"))
    assert 'enum is ["celsius", "fahrenheit"]' in page.text("verdict")
    assert page.chrome.find_elements(By.CSS_SELECTOR, "#strip .refused")
    page.chrome.execute_script("document.getElementById('grammar').open = true")
    page.wait(lambda: "get_weather_parameters" in page.text("lark"))
    assert page.chrome.find_elements(By.CSS_SELECTOR, "#lark .terminal")


def test_every_control_can_be_reached_with_tab(page: InspectorPage) -> None:
    from selenium.webdriver import ActionChains, Keys

    page.chrome.execute_script("document.activeElement.blur()")
    reached = set()
    for _ in range(30):
        ActionChains(page.chrome).send_keys(Keys.TAB).perform()
        reached.add(page.chrome.execute_script("return document.activeElement.id"))
    assert {
        "format",
        "mode",
        "tokenizer",
        "choice",
        "reasoning",
        "tools",
        "text",
        "example",
        "save",
        "open",
    } <= reached
    assert {"first", "back", "forward", "last", "place", "strip"} <= reached


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_width_in_dark_and_light(page: InspectorPage, width: int, scheme: str) -> None:
    page.chrome.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    page.chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    wide, background, size = page.chrome.execute_script(
        "const body = getComputedStyle(document.body);"
        "return [document.documentElement.scrollWidth, body.backgroundColor, parseFloat(body.fontSize)]"
    )
    assert wide <= width
    assert size >= 15
    assert (sum(map(int, background[4:-1].split(","))) < 200) == (scheme == "dark")


@pytest.mark.parametrize(
    ("tools", "error"),
    [
        ("[{", "The tools are not JSON"),
        ([tool("f", a={"type": "strung"})], "tools[0].function.parameters#/properties/a/type"),
        ([{"type": "function", "function": {"parameters": {}}}], "tools[0].function.name"),
        ("[]", "schema mode needs tools"),
        ("5", "tools"),
    ],
)
def test_a_malformed_question_is_told_and_the_page_goes_on(
    page: InspectorPage, tools: Any, error: str
) -> None:
    page.ask(tools, "x")
    assert error in page.error()
    page.ask([tool("f", a=STRING)], call("f", a="x"))
    assert page.error() == ""
    assert "a whole turn" in page.text("verdict")


def test_the_refused_token_is_shown_with_what_might_have_come(page: InspectorPage) -> None:
    named = [tool("f", unit={"enum": ["celsius", "fahrenheit"]})]
    page.ask(named, call("f", unit="kelvin"), tokenizer="single bytes")
    place, count = page.place()
    assert place == count - 1
    assert page.text("allowed").startswith("2 of 257")
    assert page.text("few") == "c  f"
    assert 'enum is ["celsius", "fahrenheit"] (f /properties/unit/enum)' in page.text("verdict")
    page.element("last").click()
    assert "nothing was read from here on" in page.text("allowed")


def test_the_reading_of_an_earlier_question_is_faint(page: InspectorPage) -> None:
    page.ask("[{", "x")
    assert "stale" in (page.element("steps").get_attribute("class") or "")
    page.ask([tool("f", a=STRING)], call("f", a="x"))
    assert page.element("steps").get_attribute("class") == ""


def test_nothing_that_a_model_or_a_user_wrote_is_markup(page: InspectorPage) -> None:
    named = [tool("f", **{EVIL: {"enum": [EVIL, "x"]}}), {**tool("g"), "description": EVIL}]
    arguments = {EVIL: EVIL}
    hermes = wire_format("hermes").render_call("f", arguments)
    for mode in ("schema", "open", "compat"):
        page.ask(named, f"{EVIL}\n{hermes}", format="hermes", mode=mode)
        page.chrome.execute_script("document.getElementById('grammar').open = true")
        page.wait(lambda: EVIL[:8] in page.text("strip").replace("…", "") or page.text("strip"))
        assert EVIL in page.text("assembled")
    # A name with a script in it is refused by formats that cannot carry it, in words.
    page.ask([tool(EVIL, a=STRING)], EVIL, mode="schema", format="qwen3_coder")
    assert "<script>" in page.error() + page.text("choice")
    found = page.chrome.execute_script(
        "return [document.scripts.length, document.images.length, window.stolen === undefined]"
    )
    assert found == [1, 0, True]


def test_two_hundred_tools(page: InspectorPage) -> None:
    tools = [tool(f"tool_{i}", city=STRING, days={"type": "integer"}) for i in range(200)]
    page.ask(tools, call("tool_150", city="Oslo", days=3))
    assert "a whole turn" in page.text("verdict")
    assert "tool_150" in page.text("assembled")
    page.chrome.execute_script("document.getElementById('grammar').open = true")
    page.wait(lambda: "tool_199" in page.text("lark"))


IN_SIGHT = """
const token = document.querySelector("#strip [aria-current]");
const [here, box] = [token, document.getElementById("strip")].map((each) => each?.getBoundingClientRect());
return here && here.top >= box.top && here.bottom <= box.bottom ? Number(token.dataset.place) : null;
"""

STEPS = """
const [count, done] = arguments;
const number = document.getElementById("number");
const times = [];
const key = () => document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
const next = () => {
  if (times.length === count) return done(times);
  const start = performance.now();
  key();
  document.body.offsetHeight; // the layout counts, too
  times.push(performance.now() - start);
  setTimeout(next); // as keys come: one after the other, with room for what was fetched
};
document.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
setTimeout(next, 500);
"""


def test_a_turn_of_two_thousand_tokens_is_followed_at_under_16_ms_a_step(page: InspectorPage) -> None:
    text = call("write", path="a.py", content="def f(x):\n    return x + 1\n\n" * 150)
    page.ask([tool("write", path=STRING, content=STRING)], text)
    _, count = page.place()
    assert count > 2000
    for place in (1400, count):  # the current token is in sight
        page.put("place", str(place - 1))
        page.wait(lambda place=place: page.chrome.execute_script(IN_SIGHT) == place - 1)
    rounds = []
    for _ in range(3):  # on a busy machine the best round says what the page takes
        times = sorted(page.chrome.execute_async_script(STEPS, count - 1))
        assert page.place() == (count, count)
        rounds.append(times[len(times) * 99 // 100])
        print(f"a step: median {median(times):.1f} ms, p99 {rounds[-1]:.1f}, max {times[-1]:.1f}")
        if rounds[-1] < 16:
            break
    assert "return x + 1" in page.text("assembled")
    assert min(rounds) < 16


def test_a_megabyte_of_output(page: InspectorPage) -> None:
    from tests.browser.page import HOME

    text = call("write", path="a.txt", content="0123456789abcde\n" * 70_000)
    assert len(text) > 1_000_000
    page.ask([tool("write", path=STRING, content=STRING)], text, seconds=240)
    _, count = page.place()
    page.element("last").click()
    page.wait(
        lambda: "a whole turn" in page.text("verdict") and "characters before" in page.text("assembled")
    )
    page.element("strip").click()
    page.keys(HOME)
    assert page.place() == (1, count)
    assert page.chrome.execute_script("return document.querySelectorAll('*').length") < 3000


def test_a_case_is_saved_so_that_parse_reads_it_and_opened_again(page: InspectorPage, tmp_path: Any) -> None:
    page.chrome.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    text = call("f", a="x\ny")
    page.ask([tool("f", a=STRING)], text, mode="schema", format="qwen3_coder")
    page.element("save").click()
    file = tmp_path / "case.jsonl"
    page.wait(file.exists)
    found = parse_record(json.loads(file.read_text(encoding="utf-8")))
    assert found["tool_calls"][0]["function"]["arguments"] == '{"a": "x\\ny"}'
    page.put("text", "")
    page.element("open").send_keys(str(file))
    page.wait(lambda: page.value("text") == text)
    page.wait(lambda: '{"a": "x\\ny"}' in page.text("assembled"))


CASES: list[tuple[str, str]] = [
    (json.dumps({"format": "hermes", "chunks": ["Hel", "lo"]}, indent=2), "Hello"),
    ('{"format": "hermes", "chunks_hex": ["c3", "a9"]}\n{"format": "hermes", "text": "second"}\n', "é"),
    ('{"format": "hermes", "token_ids": [1], "tokenizer": "t.json"}', "it has no text, chunks or chunks_hex"),
    ('{"format": "pidgin", "text": "x"}', "there is no format pidgin"),
    ("[]", "it is no object"),
    ("not JSON", "The case cannot be read"),
]


@pytest.mark.parametrize(("written", "shown"), CASES)
def test_any_case_of_parse_is_opened_or_refused_in_words(
    page: InspectorPage, tmp_path: Any, written: str, shown: str
) -> None:
    file = tmp_path / "case.jsonl"
    file.write_text(written, encoding="utf-8")
    before = page.value("text")
    page.element("open").send_keys(str(file))
    page.wait(lambda: shown in page.error() or page.value("text") == shown)
    assert page.value("text") == (before if page.error() else shown)


def test_a_prompt_that_opens_no_reasoning_is_opened_as_such(page: InspectorPage, tmp_path: Any) -> None:
    for tail, inside in (("<|im_start|>assistant\n", False), ("<|im_start|>assistant\n<think>\n", True)):
        file = tmp_path / "case.jsonl"
        file.write_text(json.dumps({"format": "hermes", "text": f"{inside}", "prompt_tail": tail}))
        page.element("open").send_keys(str(file))
        page.wait(lambda inside=inside: page.value("text") == f"{inside}")
        assert page.element("reasoning").is_selected() == inside


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}],
        [{"type": "function", "name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}],
        {"functions": [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}]},
        tool("f", a={"type": "integer"}),
    ],
)
def test_tools_may_have_any_shape_that_requests_have(page: InspectorPage, tools: Any) -> None:
    page.ask(tools, call("f", a="no number"))
    page.wait(lambda: 'type is "integer" (f /properties/a/type)' in page.text("verdict"))
    assert "f" in page.text("choice")


def test_the_current_token_is_said_with_its_id(page: InspectorPage, served: Served) -> None:
    from tests.browser.page import HOME

    page.element("strip").click()
    page.keys(HOME)
    first = served.backend.tokenizer.encode("<", add_special_tokens=False).ids[0]
    assert page.text("token").endswith(f": <  (token {first})")
    said = page.chrome.execute_script("return document.getElementById('token').parentElement.ariaLive")
    assert said == "polite"


def test_a_server_that_ends_and_a_key_that_changes_are_told(chrome: Chrome, tmp_path: Any) -> None:
    from tests.browser.page import InspectorPage

    keys = tmp_path / "keys"
    keys.write_text("one\n", encoding="utf-8")
    with serving("Hello.", settings={"inspector": True, "api_key_file": keys}) as served:
        page = InspectorPage(chrome, str(served.client.base_url))
        page.wait(lambda: "needs an API key" in page.error())
        for key, told in (("sesame", "does not take this API key"), ("ключ", "ASCII"), (" one ", "")):
            page.element("key-value").clear()
            page.element("key-value").send_keys(f"{key}\n")
            page.wait(lambda told=told: told in page.error() if told else page.text("number"))
        keys.write_text("another\n", encoding="utf-8")
        page.choose("mode", "open")
        page.wait(lambda: asked_again(page))
        assert page.element("key").is_displayed()
        page.element("key-value").clear()
        page.element("key-value").send_keys("another\n")
        page.wait(lambda: not page.element("key").is_displayed())
        assert page.value("mode") == "open"  # the question stays
        chrome.execute_script("document.getElementById('live').open = true")
        page.wait(lambda: "none yet" in page.text("turns"))
    page.wait(lambda: "does not answer" in page.text("turns"))
    page.put("text", "Hello")
    page.wait(lambda: "does not answer" in page.error())
    chrome.execute_script("sessionStorage.clear()")
    page.troubles()


def asked_again(page: InspectorPage) -> bool:
    """Asks until the server has read its keys anew: it looks once a second."""
    page.choose("mode", "schema" if page.value("mode") == "open" else "open")
    return "does not take this API key" in page.error() and page.value("mode") == "open"


def test_a_running_turn_is_followed_and_keys_are_asked_for(chrome: Chrome) -> None:
    from tests.browser.page import InspectorPage

    text = call("f", a="a long text " * 40)
    settings = {"inspector": True, "api_key": "secret"}
    with serving(text, tokens_per_second=60, settings=settings) as served:
        page = InspectorPage(chrome, str(served.client.base_url))
        page.wait(lambda: "API key" in page.error())
        page.element("key-value").send_keys("secret\n")
        page.ready()
        client = served.client.with_options(api_key="secret")
        asking = threading.Thread(
            target=lambda: client.chat.completions.create(
                model=served.model.name,
                messages=[{"role": "user", "content": "?"}],
                tools=[tool("f", a=STRING)],  # type: ignore[list-item]
            )
        )
        asking.start()
        chrome.execute_script("document.getElementById('live').open = true")
        page.wait(lambda: "running" in page.text("turns"))
        chrome.execute_script("document.querySelector('#turns button').click()")
        page.wait(lambda: page.text("verdict") == "running")
        seen = page.place()[1]
        page.wait(lambda: page.text("verdict") == "running" and page.place()[1] > seen)
        page.wait(lambda: page.text("verdict") == "a whole turn")
        asking.join()
        assert page.place()[0] == page.place()[1]
        assert "a long text" in page.text("assembled")
        chrome.execute_script("sessionStorage.clear()")
