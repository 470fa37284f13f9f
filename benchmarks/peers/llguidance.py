"""llguidance: a lexer of derivatives and an Earley parser, in Rust.

Grammars are its own Lark dialect with JSON Schema inside. A JSON value goes through `%json`. For raw text up
to `</parameter>` it has two ways: a lazy terminal (`suffix=`), whose masks walk the whole vocabulary whenever
the lexer's state changed, and lines as greedy terminals. Lines are used here, since they are faster.
"""

from __future__ import annotations

import json
from functools import partial

import numpy as np
from llguidance import LLMatcher, LLTokenizer, get_version

from benchmarks.contender import Forced, Words
from benchmarks.workload import Workload
from larksong.api.commands.bench.timing import Cursor
from larksong.api.commands.bench.workload import Request, Schema
from larksong.grammars import Tool

_KNOWN = 1024


class LLGuidance:
    """One tokenizer with the default slices; a grammar seen before is a matcher to be copied."""

    name = "llguidance"
    learns = False

    def __init__(self, workload: Workload) -> None:
        text = workload.file.read_text(encoding="utf-8")
        self._tokenizer = LLTokenizer(text, n_vocab=workload.width, eos_token=workload.eos_id)
        marker = workload.tokenizer.token_to_id("<tool_call>")
        self._marker_is_token = marker is not None and self._tokenizer.is_special_token(marker)
        self._words = np.zeros(workload.words, np.int32)
        self._place = (self._words.ctypes.data, self._words.nbytes)
        self._known: dict[str, LLMatcher] = {}

    def version(self) -> str:
        return str(get_version())

    def compile(self, request: Request) -> LLMatcher:
        text = self._grammar(request)
        matcher = self._known.get(text)
        if matcher is None:
            matcher = LLMatcher(self._tokenizer, text, log_level=0)
            if matcher.is_error():
                raise ValueError(matcher.get_error())
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[text] = matcher
        return matcher

    def begin(self, grammar: LLMatcher) -> Cursor:
        matcher = grammar.deep_copy()

        def finished() -> bool:
            return bool(matcher.is_stopped()) and not matcher.is_error()

        return Cursor(
            partial(matcher.unsafe_compute_mask_ptr, *self._place), matcher.consume_token, finished, matcher
        )

    def packed(self, cursor: Cursor) -> Words:
        return self._words

    def forced(self, cursor: Cursor) -> Forced | None:
        forced: Forced = cursor.owner.compute_ff_tokens
        return forced

    def _grammar(self, request: Request) -> str:
        if request.schema is not None:
            return str(LLMatcher.grammar_from_json_schema(request.schema))
        opening, closing = (self._marker(text) for text in ("<tool_call>", "</tool_call>"))
        calls = {"hermes": _hermes, "qwen3_coder": _pseudo_xml}[request.format](request.tools)
        lines = [
            "%llguidance {}",
            r'start: call ("\n" call)*',
            rf'call: {opening} "\n" tool "\n" {closing}',
            "tool: " + " | ".join(f"tool_{number}" for number in range(len(request.tools))),
            *calls,
        ]
        return "\n".join(lines)

    def _marker(self, text: str) -> str:
        return text if self._marker_is_token else json.dumps(text)


def _hermes(tools: tuple[Tool, ...]) -> list[str]:
    lines = []
    for number, tool in enumerate(tools):
        call = {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": tool.parameters},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        lines.append(f"tool_{number}: %json {json.dumps(call)}")
    return lines


def _pseudo_xml(tools: tuple[Tool, ...]) -> list[str]:
    """Parameters in the order of the schema: any order would be a grammar of every permutation."""
    lines = [
        r"LINES: (/[^\n]*\n/ & ~/<\/parameter>\n/)+ /<\/parameter>\n/",
        "text: LINES",
        r'close: "\n</parameter>\n"',
    ]
    for number, tool in enumerate(tools):
        parts = [json.dumps(f"<function={tool.name}>\n")]
        for index, (name, schema) in enumerate(tool.parameters["properties"].items()):
            value = _value(schema, f"value_{number}_{index}", lines)
            part = f"{json.dumps(f'<parameter={name}>' + chr(10))} {value}"
            parts.append(part if name in tool.parameters["required"] else f"({part})?")
        lines.append(f"tool_{number}: {' '.join(parts)} " + json.dumps("</function>"))
    return lines


def _value(schema: Schema, rule: str, lines: list[str]) -> str:
    """The symbols of a parameter's value with its close marker; new rules are added to `lines`."""
    if schema.get("type") == "string":
        if "enum" not in schema:
            return "text"
        lines.append(f"{rule}: " + " | ".join(json.dumps(value) for value in schema["enum"]))
    elif {"type": "string"} in schema.get("anyOf", ()):
        return "text"
    else:
        lines.append(f"{rule}: %json {json.dumps(schema)}")
    return f"{rule} close"
