"""Text that nobody constrained is read whole, the same for every cut, and never raises."""

import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import reading
from larksong.api.offline.parse import filter_deltas, parse_record
from larksong.api.turns.deltas import ArgumentsDelta
from larksong.grammars import UnknownFormat, wire_format
from tests.support.examples import examples, times
from tests.support.formats import ALL, every_format
from tests.support.markers import MARKERS
from tests.support.turns import CALLS, TOOLS

LISTED = [{"type": "function", "function": {"name": t.name, "parameters": t.parameters}} for t in TOOLS]
FRAGMENTS = (
    *MARKERS,
    *("\n", "\n\n", " ", "a", "Hello", "日本", "😀", '"', "{", "}", "[", "]", ",", ":", "1", "true", "None", "\\"),
    *("<function=", "<function=f>\n", "</function>", "<parameter=a>\n", "\n</parameter>\n", "<parameter="),
    *('\n<invoke name="', 'f">\n', '<parameter name="', '">', "</parameter>\n", "</invoke>"),
    *("<｜DSML｜tool_calls>\n", '<｜DSML｜invoke name="', '<｜DSML｜parameter name="', '" string="true">', "</｜DSML｜parameter>\n"),
    *("</｜DSML｜invoke>", "\n</｜DSML｜tool_calls>"),
    *('{"name": "', '", "arguments": ', ', "parameters": ', '{"a": 1}', "}\n", "functions.", "f", ":0", "get_weather"),
    *("assistant", "analysis", "commentary", " to=functions.", "final", " json", "call:", "thought\n", "; "),
)  # fmt: skip
TAG = re.compile(
    "|".join(
        [*map(re.escape, MARKERS), "</?[^\\s<>=]+[=>]", "</?｜DSML｜[^<>]*>", '"name": "', '"arguments": ']
    ).encode()
)
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)


def answer(record: dict[str, Any]) -> dict[str, Any]:
    """The answer without what differs from run to run, and how it was cut."""
    found = parse_record(record)
    for call in found["tool_calls"]:
        assert call.pop("id").startswith("call_")
    del found["deltas"]
    return found


def cuts(data: bytes, marks: int = 20, step: int = 1) -> list[list[bytes]]:
    """Whole, in steps of 1, 2, 3, 5, 8 and 13 bytes, around the ends of all markers, at every `step`-th of these
    places alone, and at random `marks` times."""
    found = [
        [data],
        *([data[i : i + step] for i in range(0, len(data), step)] for step in (1, 2, 3, 5, 8, 13)),
    ]
    ends = [at for marker in TAG.finditer(data) for at in marker.span()]
    around = [sorted({min(max(at + by, 0), len(data)) for at in ends}) for by in (-1, 0, 1)]
    for places in [*around, *([at] for at in sorted({at for each in around for at in each})[::step])]:
        found.append([data[i:j] for i, j in zip([0, *places], [*places, len(data)], strict=True)])
    rng = Random(len(data))
    for _ in range(times(marks)):
        points = (
            sorted(rng.sample(range(1, len(data)), min(len(data) - 1, rng.randint(1, 9))))
            if len(data) > 1
            else []
        )
        found.append([data[i:j] for i, j in zip([0, *points], [*points, len(data)], strict=True)])
    return found


def for_every_cut(record: dict[str, Any], data: bytes, marks: int = 20, step: int = 1) -> dict[str, Any]:
    first = answer({**record, "chunks_hex": [data.hex()]})
    for pieces in cuts(data, marks, step):
        assert answer({**record, "chunks_hex": [piece.hex() for piece in pieces]}) == first
    return first


def calls_of(run: Callable[[], object]) -> int:
    """How many functions it calls, those in C too."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def arguments(found: dict[str, Any]) -> list[tuple[str, Any]]:
    calls = [call["function"] for call in found["tool_calls"]]
    return [(call["name"], json.loads(call["arguments"])) for call in calls]


@every_format
@pytest.mark.parametrize("tools", [LISTED, []], ids=["with tools", "without"])
@pytest.mark.parametrize("calls", [CALLS[:2], CALLS[2:4], CALLS[4:]], ids=["numbers", "texts", "nested"])
def test_turns_as_the_families_write_them_are_read_for_every_cut(
    name: str, tools: list[Any], calls: list[Any]
) -> None:
    text = wire_format(name).render_calls(calls)
    # A marker's end, the byte before and the byte behind it take turns.
    found = for_every_cut({"format": name, "tools": tools}, text.encode(), marks=5, step=1 if ALL else 4)
    if tools or name not in ("qwen3_coder", "glm_4_5", "glm_4_7", "minimax_m2"):
        assert arguments(found) == calls
    assert [called for called, _ in arguments(found)] == [called for called, _ in calls]
    assert found["content"] == found["reasoning_content"] == ""
    assert found["finish_reason"] == "tool_calls"
    assert found["warnings"] == []


@every_format
@given(texts)
@examples(25)
def test_no_text_raises_and_how_it_is_cut_does_not_matter(name: str, text: str) -> None:
    record = {"format": name, "tools": LISTED}
    whole = answer({**record, "text": text})
    assert answer({**record, "chunks": list(text)}) == whole
    pieces = [text[i : i + 7] for i in range(0, len(text), 7)]
    assert answer({**record, "chunks": pieces}) == whole
    for call in whole["tool_calls"]:
        assert isinstance(call["function"]["arguments"], str)


@every_format
@given(st.text(st.sampled_from('ab <>|{}[]"\n=/:日'), max_size=40))
@examples(30)
def test_text_without_markers_is_content(name: str, text: str) -> None:
    assert parse_record({"format": name, "text": text})["content"] == text.lstrip("\n") or name == "harmony"


@every_format
def test_content_may_stand_before_between_and_after_calls(name: str) -> None:
    if name == "harmony":
        pytest.skip("content has a channel of its own")
    wire = wire_format(name)
    one, two = wire.render_call("ping", {}), wire.render_call("get_weather", {"city": "x"})
    found = answer({"format": name, "tools": LISTED, "text": f"Before\n{one}\nBetween {two}\n\nAfter"})
    assert arguments(found) == [("ping", {}), ("get_weather", {"city": "x"})]
    assert found["content"].split() == ["Before", "Between", "After"]


@every_format
def test_what_the_tools_do_not_allow_is_delivered_with_a_warning(name: str) -> None:
    wire = wire_format(name)
    text = wire.render_calls([("unknown", {"a": "b"}), ("get_weather", {"days": "many", "other": "x"})])
    found = answer({"format": name, "tools": LISTED, "text": text})
    assert arguments(found) == [("unknown", {"a": "b"}), ("get_weather", {"days": "many", "other": "x"})]
    assert any("'unknown'" in warning for warning in found["warnings"])
    assert any("city" in warning for warning in found["warnings"])
    assert any("$.days" in warning for warning in found["warnings"])


@every_format
def test_a_call_that_was_cut_off_stays_open_and_nothing_is_invented(name: str) -> None:
    text = wire_format(name).render_call("write_file", {"path": "a", "content": "hello wor"})
    cut = text[: text.index("wor") + 1]
    found = parse_record({"format": name, "tools": LISTED, "text": cut, "finish": "length"})
    (call,) = found["tool_calls"]
    assert call["function"]["arguments"].startswith('{"path": "a", "content": "hello')
    assert not call["function"]["arguments"].endswith('"}')
    assert found["finish_reason"] == "length"


@every_format
def test_a_byte_costs_the_same_few_calls_however_long_the_value_is(name: str) -> None:
    """Calls of functions are counted, which other work on the machine does not change."""
    for kind, most in (("text", 0.2), ("objects", 4), ("prose", 0.2)):
        reading.seconds_a_byte(name, kind, 1_000)  # makes the grammar
        assert calls_of(lambda kind=kind: reading.seconds_a_byte(name, kind, 1_000)) < 5 * 1_000
        assert calls_of(lambda kind=kind: reading.seconds_a_byte(name, kind, 100_000)) < most * 100_000
    # Nor is the value copied again and again: 0.04 µs a byte on idle cores.
    assert reading.seconds_a_byte(name, "text", 1_000_000) < 1e-6


async def test_any_stream_of_pieces_can_be_filtered() -> None:
    async def pieces() -> AsyncIterator[str | bytes]:
        for piece in wire_format("hermes").render_call("f", {"x": "é"}).encode():
            yield bytes([piece])

    deltas = [delta async for delta in filter_deltas(pieces(), "hermes")]
    written = "".join(delta.fragment for delta in deltas if isinstance(delta, ArgumentsDelta))
    assert written == '{"x": "é"}'


def test_the_strict_build_reads_what_it_allows_and_warns_of_the_rest() -> None:
    record = {"format": "qwen3_coder", "tools": LISTED, "build": "strict"}
    text = wire_format("qwen3_coder").render_call("ping", {})
    assert arguments(answer({**record, "text": text})) == [("ping", {})]
    found = answer({**record, "text": text.replace("ping", "unknown")})
    assert found["tool_calls"] == []
    assert "not allowed" in found["warnings"][0]


@pytest.mark.parametrize(
    ("tail", "reasoning", "content"),
    [
        ("<think>\n", "Hm.", "Yes"),
        ("<think></think>", "", "Hm.</think>\n\nYes"),
        ("", "", "Hm.</think>\n\nYes"),
    ],
)
def test_the_prompts_tail_says_whether_reasoning_has_begun(tail: str, reasoning: str, content: str) -> None:
    found = answer({"format": "hermes", "text": "Hm.</think>\n\nYes", "prompt_tail": tail})
    assert (found["reasoning_content"], found["content"]) == (reasoning, content)


def test_bad_records_are_refused() -> None:
    with pytest.raises(UnknownFormat):
        parse_record({"format": "x", "text": ""})
    with pytest.raises(ValueError, match="'text'"):
        parse_record({"format": "hermes"})


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "an object"),
        ({"text": "x"}, "'format'"),
        ({"text": 5}, "'text' must be a string"),
        ({"chunks": ["a", 5]}, "'chunks' must be a list of strings"),
        ({"token_ids": ["a"]}, "'token_ids' must be a list of numbers"),
        ({"token_ids": [1]}, "'token_ids' need a 'tokenizer'"),
        ({"chunks_hex": ["zz"]}, "hex"),
        ({"text": "x", "mode": "loose"}, "'mode' must be one of schema, compat, not 'loose'"),
        ({"text": "x", "build": 1}, "'build' must be one of open, strict"),
        ({"text": "x", "finish": "end"}, "'finish'"),
        ({"text": "x", "tools": [5]}, "each with a name"),
        ({"text": "x", "tools": [{"function": {}}]}, "each with a name"),
        ({"text": "x", "tools": {}}, "'tools' must be a list"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_by_its_key(record: Any, message: str) -> None:
    whole = {"format": "hermes", **record} if record and record != {"text": "x"} else record
    with pytest.raises(ValueError, match=message):
        parse_record(whole)


def test_what_is_null_is_not_there() -> None:
    names = ("tools", "build", "mode", "finish", "chunks", "token_ids", "tokenizer", "prompt_tail")
    assert parse_record({"format": "hermes", "text": "Hi.", **dict.fromkeys(names)})["content"] == "Hi."


def reports(kind: str) -> list[dict[str, Any]]:
    folder = os.environ.get("LARKSONG_CASES")
    if not folder:
        return []
    lines = (Path(folder) / "bug_reports.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [report for report in found if report["kind"] == kind and known(report["format"])]


def known(name: str) -> bool:
    try:
        wire_format(name)
    except UnknownFormat:
        return False
    return True


@pytest.mark.skipif(
    not os.environ.get("LARKSONG_CASES"), reason="LARKSONG_CASES names no folder of recorded cases"
)
def test_every_report_about_text_is_read_but_those_of_formats_that_are_not_known() -> None:
    folder = Path(os.environ["LARKSONG_CASES"])
    listed = [json.loads(line) for line in (folder / "bug_reports.jsonl").read_text().splitlines()]
    assert {each["kind"] for each in listed} == {*READ, "grammar_reject", "grammar_accept", "compile"}
    unread = {each["format"] for each in listed if not known(each["format"])}
    # `any JSON`: schemas that are tried in several formats (`test_reported_grammars`).
    assert unread <= {"functiongemma", "pythonic", "xlam", "any JSON"}


READ = ("stream", "mask")


@pytest.mark.skipif(
    not os.environ.get("LARKSONG_CASES"), reason="LARKSONG_CASES names no folder of recorded cases"
)
@pytest.mark.parametrize(
    "report", [r for kind in READ for r in reports(kind)], ids=lambda report: report["id"]
)
def test_reported_turns_are_read_as_they_were_meant_for_every_cut(report: dict[str, Any]) -> None:
    output, expected = report["model_output"], report["expected"]
    if isinstance(output, dict):
        data = b"".join(bytes.fromhex(piece) for piece in output["bytes_hex"])
    else:
        data = "".join(output).encode()
    record = {"format": report["format"], "tools": report["tools"]}
    if expected.get("finish_reason") == "length":
        record["finish"] = "length"
    if "reasoning" in expected:
        record["prompt_tail"] = "<think>\n"
    found = for_every_cut(record, data)
    if "tool_calls" in expected:
        assert arguments(found) == [(call["name"], call["arguments"]) for call in expected["tool_calls"]]
        assert found["warnings"] == []
    for key, told in (("content", "content"), ("reasoning", "reasoning_content")):
        if key in expected:
            assert found[told] == expected[key]


@pytest.mark.skipif(
    not os.environ.get("LARKSONG_CASES"), reason="LARKSONG_CASES names no folder of recorded cases"
)
@pytest.mark.parametrize("report", reports("grammar_reject"), ids=lambda report: report["id"])
def test_reported_turns_that_no_grammar_allows_are_refused_and_read_for_every_cut(
    report: dict[str, Any],
) -> None:
    output = report["model_output"]
    text = output if isinstance(output, str) else "".join(output)
    record = {"format": report["format"], "tools": report["tools"]}
    for pieces in cuts(text.encode()):
        refused = answer({**record, "build": "strict", "chunks_hex": [piece.hex() for piece in pieces]})
        assert "not allowed" in refused["warnings"][0]
    found = for_every_cut(record, text.encode())
    if any("broken off" in warning for warning in found["warnings"]):
        return
    for call in found["tool_calls"]:
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


PARIS = '{"city": "Paris"}'
KIMI = ("<|tool_call_begin|>", "<|tool_call_argument_begin|>" + PARIS + "<|tool_call_end|>")
SLOPPY = [
    ("kimi_k2", f"{KIMI[0]}functions.get_weather:0{KIMI[1]}"),
    ("kimi_k2", f"<|tool_calls_section_begin|>{KIMI[0]}functions.get_weather:0{KIMI[1]}"),
    ("kimi_k2", f"<|tool_calls_section_begin|>{KIMI[0]}get_weather:12{KIMI[1]}<|tool_calls_section_end|>"),
    ("mistral_v11", f"[TOOL_CALLS]get_weather{PARIS}"),
    ("mistral_v13", f"[TOOL_CALLS]get_weather[ARGS] {PARIS}\n"),
    ("mistral_v3", f'[TOOL_CALLS] [ {{"name":"get_weather", "arguments":{PARIS}}} ]'),
    ("llama3_json", f'<|python_tag|>{{"name": "get_weather", "parameters": {PARIS}}}'),
    ("llama3_json", f'{{"name":"get_weather","arguments":{PARIS}}}'),
    ("hermes", f'<tool_call>{{"name":"get_weather","arguments":{PARIS}}}</tool_call>'),
    ("gemma4", '<|tool_call>call:get_weather{city:"Paris"}<tool_call|>'),
    ("gemma4", '<|tool_call>call:get_weather{ city: <|"|>Paris<|"|>}<tool_call|>'),
    ("qwen3_coder", "<tool_call><function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), SLOPPY)
@pytest.mark.parametrize("tools", [LISTED, []], ids=["with tools", "without"])
def test_what_models_write_sloppily_is_a_call_all_the_same(name: str, text: str, tools: list[Any]) -> None:
    found = for_every_cut({"format": name, "tools": tools}, text.encode(), marks=3)
    assert arguments(found) == [("get_weather", {"city": "Paris"})]
    assert (found["content"], found["warnings"]) == ("", [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>\n{"name": "ping"}\n</tool_call>'),
        ("llama3_json", '{"name": "ping"}'),
    ],
)
def test_a_call_without_arguments_has_none(name: str, text: str) -> None:
    found = for_every_cut({"format": name, "tools": LISTED}, text.encode(), marks=3)
    assert (arguments(found), found["content"]) == ([("ping", {})], "")
