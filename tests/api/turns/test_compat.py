"""Compat mode: the stream gives the bytes of the end parse, for every text and every cut."""

import json
import os
from random import Random
from typing import Any

import pytest

from larksong.api.offline.parse import collected, parse_record
from larksong.api.turns.compat import CompatStream, end_parse, fails, split
from larksong.api.turns.compat_formats import FoundCall, NoCompat, coerce, compat_formats
from larksong.grammars import wire_format

FORMATS = pytest.mark.parametrize("name", compat_formats())
TEXTS = int(os.environ.get("LARKSONG_COMPAT_TEXTS", "2000"))
VALUES = (
    *(
        "1.10",
        "1e5",
        "-0",
        "-0.0",
        "1E3",
        "0.1e-7",
        "1e16",
        "12345678901234567890",
        "007",
        "+1",
        "1.",
        ".5",
        "1_000",
    ),
    *(
        "True",
        "'hi'",
        "[1,2",
        '{"a":1,}',
        "1 2",
        '"x" y',
        "true",
        "false",
        "null",
        '"hi"',
        '{"a":1,"a":2}',
        "[ ]",
        "{ }",
    ),
    *(
        '"a\nb"',
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        '{"k":NaN}',
        "",
        " ",
        "\n",
        " x ",
        "\u00a0y\u3000",
        "\ufeff1",
    ),
    *(
        "  indented\n    more\n",
        "</parameter>",
        "</function>",
        "</tool_call>",
        "<arg_key>",
        "}<tool_call|>",
        "é😀",
        '"',
        "\\",
    ),
    *('"\\ud83d\\ude00"', "<think>x</think>", "a<b", "2024-01-02", "9" * 4301),
)
PIECES = {
    "qwen3_coder": (
        *("<tool_call>", "</tool_call>", "<function=f>", "<function=g\n", "</function>", "<parameter=a>", "<parameter=b c>"),
        *("</parameter>", "<tool_call>\n<function=f>\n<parameter=a>\n", "\n</parameter>\n</function>\n</tool_call>"),
    ),
    "glm": ("<tool_call>", "</tool_call>", "f", "\n", "<arg_key>", "a</arg_key>", "<arg_value>", "</arg_value>",
            "<tool_call>f<arg_key>a</arg_key><arg_value>", "</arg_value></tool_call>"),
    "minimax_m2": ("<minimax:tool_call>", "</minimax:tool_call>", '<invoke name="f">', '<invoke name=" g" x="y">', "</invoke>",
                   '<parameter name="a">', "</parameter>", '<minimax:tool_call><invoke name="f"><parameter name="a">',
                   "</parameter></invoke></minimax:tool_call>"),
    "deepseek_v4": ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", '<｜DSML｜invoke name="f">', "</｜DSML｜invoke>",
                    '<｜DSML｜parameter name="a" string="true">', '<｜DSML｜parameter name="b" string="false">',
                    '<｜DSML｜parameter name="c">', "</｜DSML｜parameter>"),
    "gemma4": ("<|tool_call>", "<tool_call|>", "call:f{", "}", "a:", "b-c:", ",", '<|"|>', "<|channel>thought", "<channel|>",
               '<|tool_call>call:f{a:<|"|>', '<|"|>}<tool_call|>', "<|tool_call>call:g{a:"),
    "mistral": ("[TOOL_CALLS]", "f", "[ARGS]", "{", "}", '{"a": ', "[CALL_ID]x", "[THINK]", "[/THINK]", " ",
                '[TOOL_CALLS]f[ARGS]{"a": 1}', '[TOOL_CALLS]f[ARGS]{"a": '),
    "harmony": ("<|channel|>", "<|message|>", "<|call|>", "<|end|>", "<|return|>", "<|start|>assistant", "analysis", "final",
                "commentary", " to=functions.f", " to=browser.search ", '{"a": 1}', "[1]",
                "<|channel|>commentary to=functions.f<|message|>"),
}  # fmt: skip


def pieces_of(name: str) -> tuple[str, ...]:
    kind = "glm" if name.startswith("glm") else "mistral" if name.startswith("mistral") else name
    return (*PIECES[kind], *(("<think>", "</think>") if kind not in ("gemma4", "mistral", "harmony") else ()))


def text(name: str, rng: Random) -> str:
    """A turn: well formed, or anything that pieces of the format and values make; often cut off."""
    if rng.random() < 0.3:
        wire = wire_format(name)
        calls = [
            ("f", {"a": rng.choice(VALUES), "b": rng.choice((1, True, None, "x"))})
            for _ in range(rng.randint(1, 3))
        ]
        made = (
            rng.choice(("", "Hi ", "<think>x</think>\n\n"))
            + wire.render_calls(calls)
            + rng.choice(("", "\n", " Bye"))
        )
    else:
        made = ""
        for _ in range(rng.randint(1, 14)):
            made += rng.choice(VALUES) if rng.random() < 0.35 else rng.choice(pieces_of(name))
    return made[: rng.randrange(len(made) + 1)] if rng.random() < 0.2 else made


def streamed(
    name: str, text: str, rng: Random, in_reasoning: bool
) -> tuple[str, str, list[FoundCall], list[str]]:
    stream = CompatStream(name, in_reasoning=in_reasoning)
    deltas = []
    at = 0
    while at < len(text):
        size = rng.choice((1, 1, 2, 3, 5, 8, 13, 1000))
        deltas += stream.feed(text[at : at + size])
        at += size
    found = collected([*deltas, *stream.finish()])
    calls = [
        FoundCall(call["function"]["name"], call["function"]["arguments"]) for call in found["tool_calls"]
    ]
    return found["content"], found["reasoning_content"], calls, stream.warnings


@FORMATS
def test_the_stream_gives_the_bytes_of_the_end_parse(name: str) -> None:
    for seed in range(TEXTS):
        rng = Random(seed)
        written = text(name, rng)
        in_reasoning = rng.random() < 0.2 and name != "harmony"
        content, reasoning, tool = split(name, written, in_reasoning=in_reasoning)
        told = streamed(name, written, rng, in_reasoning)
        assert told[:2] == (content, reasoning), (seed, written)
        if fails(name, tool):
            # What was delivered before the failure stays, and a warning says so.
            assert end_parse(name, tool) == []
            assert told[3], (seed, written)
        else:
            assert told[2] == end_parse(name, tool), (seed, written)
            assert not told[3]


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("1.10", "1.1"), ("1e5", "100000.0"), ("-0", "0"), ("-0.0", "-0.0"), ("0.1e-7", "1e-08"), ("1e16", "1e+16"),
        ("007", '"007"'), ("+1", '"+1"'), ("True", '"True"'), ("[1,2", '"[1,2"'), ("true", "true"), ('"hi"', '"hi"'),
        ('{"a":1,"a":2}', '{"a": 2}'), ("[ ]", "[]"), ("NaN", "NaN"), ("1e400", "Infinity"), ("", '""'), (" x ", '"x"'),
        ("\ufeff1", '"\ufeff1"'), ("\x85 1\u2003", "1"), ("9" * 4301, f'"{"9" * 4301}"'),
    ],
)  # fmt: skip
def test_a_value_is_json_where_its_text_is(raw: str, value: str) -> None:
    assert json.dumps(coerce(raw), ensure_ascii=False) == value


QUIRKS: list[tuple[str, str, list[Any]]] = [
    ("qwen3_coder", "<tool_call><function=f><parameter=a>1</parameter></function></tool_call><tool_call><function=g></function>", [("f", '{"a": 1}')]),
    ("qwen3_coder", "<tool_call><function=f></function>", [("f", "{}")]),
    ("qwen3_coder", "<tool_call><function=f\n<parameter=a>1</parameter></function></tool_call>", [("f", "{}")]),
    ("qwen3_coder", "<tool_call><function=f><parameter=a>1<parameter=b>2</parameter></function></tool_call>", [("f", '{"a": "1<parameter=b>2"}')]),
    ("qwen3_coder", '<tool_call>{"name": "f"}</tool_call>', []),
    ("glm_4_5", "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value><arg_value>2</arg_value></tool_call>", [("f", '{"a": 1, "null": 2}')]),
    ("glm_4_7", "<tool_call>f<arg_key>a</arg_key></tool_call>", []),
    ("glm_4_7", "<tool_call>f", []),
    ("minimax_m2", '<minimax:tool_call><invoke name=" f"><parameter name=" a ">1</parameter></invoke></minimax:tool_call>', [(" f", '{"a": 1}')]),
    ("deepseek_v4", '<｜DSML｜tool_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="false">x</｜DSML｜parameter></｜DSML｜invoke>', [("f", '{"a": "x"}')]),
    ("gemma4", '<|tool_call>call:f{a-b:1}<tool_call|>', [("f", "{}")]),
    ("mistral_v13", '[TOOL_CALLS]f[ARGS]{"a": 1} and so on', []),
    ("mistral_v11", '[TOOL_CALLS]f[CALL_ID]x[ARGS]{}', [("f[CALL_ID]x", "{}")]),
    ("harmony", '<|channel|>commentary to=functions.f<|message|>{"a": "x', [("f", '{"a": "x')]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "written", "calls"), QUIRKS)
def test_the_quirks_are_kept(name: str, written: str, calls: list[Any]) -> None:
    found = parse_record({"format": name, "mode": "compat", "text": written})
    assert [
        (call["function"]["name"], call["function"]["arguments"]) for call in found["tool_calls"]
    ] == calls


def test_too_deep_values_lose_all_calls() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    written = f"<tool_call><function=f><parameter=a>{deep}</parameter></function></tool_call>"
    assert end_parse("qwen3_coder", written) == []
    assert parse_record({"format": "qwen3_coder", "mode": "compat", "text": written})["tool_calls"] == []


def test_a_call_is_delivered_when_it_is_closed() -> None:
    stream = CompatStream("qwen3_coder")
    assert stream.feed("<tool_call><function=f></function></tool_cal") == []
    assert [type(delta).__name__ for delta in stream.feed("l>")] == ["CallDelta", "ArgumentsDelta"]


def test_other_formats_are_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(NoCompat, match="qwen3_coder"):
        CompatStream("hermes")
