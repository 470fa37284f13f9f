"""What tabbyAPI's end parse makes of the tool text of each format (see `larksong.api.turns.compat`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple


class NoCompat(ValueError):
    """A format that compat mode does not know."""


class FoundCall(NamedTuple):
    """A call: its name, and its arguments as JSON text."""

    name: str
    arguments: str


def coerce(raw: str) -> Any:
    """A parameter's text as JSON where it is JSON, else as it is; blanks around it do not count."""
    text = raw.strip()
    if not text:
        return ""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _dumped(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


_FUNCTION = re.compile(r"<function=([^>\s]+)[^>]*>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)[^>]*>(.*?)</parameter>", re.DOTALL)
_INVOKE = re.compile(r'<invoke\s+name="([^"]+)"[^>]*>(.*?)</invoke>', re.DOTALL)
_NAMED = re.compile(r'<parameter\s+name="([^"]+)"[^>]*>(.*?)</parameter>', re.DOTALL)
_KEY = re.compile(r"<arg_key>(.*?)</arg_key>", re.DOTALL)
_VALUE = re.compile(r"<arg_value>(.*?)</arg_value>", re.DOTALL)
_DSML_INVOKE = re.compile(r'<｜DSML｜invoke name="([^"]*)">(.*?)</｜DSML｜invoke>', re.DOTALL)
_DSML_PARAMETER = re.compile(
    r'<｜DSML｜parameter name="([^"]*)" string="(true|false)">(.*?)</｜DSML｜parameter>', re.DOTALL
)
_GEMMA = re.compile(r"<\|tool_call>call:([A-Za-z0-9_.-]+)\{(.*?)\}<tool_call\|>", re.DOTALL)
_GEMMA_STRING = re.compile(r'<\|"\|>(.*?)<\|"\|>|"(?:\\.|[^"\\])*"', re.DOTALL)
_GEMMA_KEY = re.compile(r"([A-Za-z0-9_]+):")
_MISTRAL = re.compile(r"\[TOOL_CALLS\](\S+?)\[ARGS\](\{.*?)(?=\[TOOL_CALLS\]|\Z)", re.DOTALL)
RECIPIENT = re.compile(r"to=([^\s<]+)")


def _qwen_functions(block: str) -> Iterator[FoundCall]:
    for function in _FUNCTION.finditer(block):
        found = {key.strip(): coerce(value) for key, value in _PARAMETER.findall(function[2])}
        yield FoundCall(function[1], _dumped(found))


def _minimax_invokes(block: str) -> Iterator[FoundCall]:
    for invoke in _INVOKE.finditer(block):
        found = {key.strip(): coerce(value) for key, value in _NAMED.findall(invoke[2])}
        yield FoundCall(invoke[1], _dumped(found))


def _glm_call(block: str) -> Iterator[FoundCall]:
    name = block.partition("<arg_key>")[0].strip()
    if name:
        pairs = zip_longest(_KEY.findall(block), _VALUE.findall(block))
        found = {None if key is None else key.strip(): coerce(value) for key, value in pairs}
        yield FoundCall(name, _dumped(found))


def _dsml_invokes(text: str) -> Iterator[FoundCall]:
    for invoke in _DSML_INVOKE.finditer(text):
        name = invoke[1].strip()
        if not name:
            continue
        found: dict[str, Any] = {}
        for key, is_string, value in _DSML_PARAMETER.findall(invoke[2]):
            found[key] = value
            if is_string == "false":
                with suppress(ValueError):
                    found[key] = json.loads(value)
        yield FoundCall(name, _dumped(found))


def _gemma_calls(text: str) -> Iterator[FoundCall]:
    for call in _GEMMA.finditer(text):
        yield FoundCall(call[1], _dumped(_gemma_arguments(call[2])))


def _gemma_arguments(body: str) -> Any:
    strings: list[str] = []

    def keep(match: re.Match[str]) -> str:
        strings.append(match[0] if match[1] is None else json.dumps(match[1], ensure_ascii=False))
        return f"\0{len(strings) - 1}\0"

    written = _GEMMA_KEY.sub(r'"\1":', _GEMMA_STRING.sub(keep, body))
    written = re.sub(r"\0(\d+)\0", lambda match: strings[int(match[1])], written)
    try:
        return json.loads("{" + written + "}")
    except (ValueError, IndexError):
        return {}


def _mistral_calls(text: str) -> Iterator[FoundCall]:
    for call in _MISTRAL.finditer(text):
        try:
            found = json.loads(call[2])
        except ValueError:
            continue
        if isinstance(found, dict):
            yield FoundCall(call[1], _dumped(found))


def _harmony_calls(text: str) -> Iterator[FoundCall]:
    for segment in text.split("<|call|>"):
        header, marker, body = segment.partition("<|message|>")
        recipient = RECIPIENT.search(header)
        if marker and recipient is not None:
            written = body.strip()
            with suppress(ValueError):
                written = _dumped(json.loads(written))
            yield FoundCall(recipient[1].removeprefix("functions."), written)


@dataclass(frozen=True)
class CompatRules:
    """How a format's tool text is cut into pieces that are certain, and what they hold.

    `closed`: such a piece, its content as the first group or the whole; `otherwise`: what the whole text
    holds where there was no such piece.
    """

    opener: str
    closer: str
    reasoning: tuple[str, str]
    closed: re.Pattern[str]
    calls: Callable[[str], Iterator[FoundCall]]
    otherwise: Callable[[str], Iterator[FoundCall]] | None = None


def _between(opener: str, closer: str) -> re.Pattern[str]:
    return re.compile(re.escape(opener) + "(.*?)" + re.escape(closer), re.DOTALL)


_THINK = ("<think>", "</think>")
_GLM = CompatRules("<tool_call>", "</tool_call>", _THINK, _between("<tool_call>", "</tool_call>"), _glm_call)
_MISTRAL_RULES = CompatRules(
    "[TOOL_CALLS]",
    "",
    ("[THINK]", "[/THINK]"),
    re.compile(r"(\[TOOL_CALLS\]\S+?\[ARGS\]\{.*?)(?=\[TOOL_CALLS\])", re.DOTALL),
    _mistral_calls,
)
_FORMATS: dict[str, CompatRules] = {
    "qwen3_coder": CompatRules(
        "<tool_call>", "</tool_call>", _THINK,
        _between("<tool_call>", "</tool_call>"), _qwen_functions, _qwen_functions,
    ),
    "glm_4_5": _GLM,
    "glm_4_7": _GLM,
    "minimax_m2": CompatRules(
        "<minimax:tool_call>", "</minimax:tool_call>", _THINK,
        _between("<minimax:tool_call>", "</minimax:tool_call>"), _minimax_invokes,
    ),
    "deepseek_v4": CompatRules(
        "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", _THINK,
        re.compile(f"({_DSML_INVOKE.pattern})", re.DOTALL), _dsml_invokes,
    ),
    "gemma4": CompatRules(
        "<|tool_call>", "<tool_call|>", ("<|channel>thought", "<channel|>"),
        re.compile(f"({_GEMMA.pattern})", re.DOTALL), _gemma_calls,
    ),
    "mistral_v11": _MISTRAL_RULES,
    "mistral_v13": _MISTRAL_RULES,
    "harmony": CompatRules("", "<|call|>", ("", ""), _between("", "<|call|>"), _harmony_calls),
}  # fmt: skip
FINAL_PIECES = {"mistral_v11", "mistral_v13"}


def compat_formats() -> tuple[str, ...]:
    """The names of the formats that compat mode knows."""
    return tuple(_FORMATS)


def require_compat(format: str) -> None:
    """Raises NoCompat for a format that compat mode does not know."""
    rules_of(format)


def rules_of(format: str) -> CompatRules:
    try:
        return _FORMATS[format]
    except KeyError:
        raise NoCompat(f"compat mode knows {', '.join(_FORMATS)}, not {format!r}") from None
