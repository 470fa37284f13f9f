"""Readers of the wire formats' texts, written from their documentation: what a turn's text says by itself."""

import json
from collections.abc import Mapping
from typing import Any

PYTHON_WORDS = {"True": True, "False": False, "None": None}


OPENINGS = {
    "hermes": ('<tool_call>\n{"name": "', '<tool_call>{"name": "'),
    "qwen3_coder": ("<tool_call>\n<function=", "<tool_call><function="),
}


def read_turn(name: str, text: str) -> tuple[str, str, list[tuple[str, Any]]]:
    """The content and the reasoning of a turn in letters, and its calls: (name, arguments).

    The arguments are JSON text for hermes; for qwen3_coder the raw texts by parameter.
    """
    text = text.removeprefix("\n").removeprefix("\n")
    begins = min((at for opening in OPENINGS[name] if (at := text.find(opening)) >= 0), default=len(text))
    reasoning = ""
    if text.startswith("<think>"):
        text = text.removeprefix("<think>").removeprefix("\n").removeprefix("\n")
        begins = min((at for opening in OPENINGS[name] if (at := text.find(opening)) >= 0), default=len(text))
        closes = text.find("</think>")
        if 0 <= closes < begins:
            reasoning, text = text[:closes], text[closes + len("</think>") :]
            text = text.removeprefix("\n").removeprefix("\n")
        else:
            reasoning, text = text[:begins], text[begins:]
        begins = min((at for opening in OPENINGS[name] if (at := text.find(opening)) >= 0), default=len(text))
    content, rest = text[:begins], text[begins:]
    calls: list[tuple[str, Any]] = []
    while rest:
        rest = _skip(rest, "<tool_call>")
        called, arguments, rest = {"hermes": _hermes, "qwen3_coder": _qwen3_coder}[name](rest)
        calls.append((called, arguments))
        rest = _skip(rest, "</tool_call>")
        rest = rest.removeprefix("\n")
    return content, reasoning, calls


def _skip(text: str, expected: str) -> str:
    assert text.startswith(expected), f"{expected!r} expected at {text[:40]!r}"
    return text.removeprefix(expected)


def _hermes(text: str) -> tuple[str, str, str]:
    text = text.removeprefix("\n")
    call, end = json.JSONDecoder(strict=True).raw_decode(text)
    assert list(call) == ["name", "arguments"]
    written = text[:end]
    arguments = written[written.index(', "arguments": ') + len(', "arguments": ') : -1]
    return call["name"], arguments, text[end:].removeprefix("\n")


def _qwen3_coder(text: str) -> tuple[str, dict[str, str], str]:
    text = _skip(text.removeprefix("\n"), "<function=")
    name, _, text = text.partition(">\n")
    parameters: dict[str, str] = {}
    while text.startswith("<parameter="):
        key, _, text = text.removeprefix("<parameter=").partition(">")
        # The value begins after the line break, which is also the first byte of the marker of an empty one.
        ends = [
            at for stop in ("<parameter=", "</function>") if (at := text.find("\n</parameter>\n" + stop)) >= 0
        ]
        assert ends, f"no end of {key!r} in {text[:60]!r}"
        assert key not in parameters
        parameters[key] = text[1 : min(ends)] if min(ends) else ""
        text = text[min(ends) + len("\n</parameter>\n") :]
    return name, parameters, _skip(text, "</function>\n")


def readings(raw: str) -> list[Any]:
    """What a raw parameter text may stand for: the JSON value, if it is one, before the text itself."""
    if raw in PYTHON_WORDS:
        return [PYTHON_WORDS[raw], raw]
    try:
        return [json.loads(raw), raw]
    except ValueError:
        return [raw]


def check_raw(raw: Mapping[str, str], told: Mapping[str, Any]) -> None:
    """The arguments that the events told are readings of the raw texts, in the same order."""
    assert list(raw) == list(told)
    for key, text in raw.items():
        assert any(same(told[key], reading) for reading in readings(text)), (key, text, told[key])


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return json.dumps(left) == json.dumps(right)
