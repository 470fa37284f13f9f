"""Text that a model wrote → deltas, wherever it comes from: logs, other servers, recorded turns.

`TurnParser` reads a turn piece by piece, `filter_deltas` does so for any stream of pieces, and `parse_record`
is one line of `larksong parse`. None of them raises on text, whatever it holds.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from larksong.api.offline.byte_vocabulary import byte_engine
from larksong.api.offline.parse_input import check_record
from larksong.api.offline.tool_function import tool_function
from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from larksong.api.turns.emitter import DeltaEmitter
from larksong.engine.engine import Engine
from larksong.engine.events import Events
from larksong.engine.matcher import Matcher
from larksong.engine.reading.reader import TextReader
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, WireFormat, wire_format


@lru_cache(maxsize=4)
def _tokenizer_engine(path: str) -> Engine:
    return Engine(Vocabulary.from_tokenizer(path))


class TurnParser:
    """Reads one turn of text by the open build of a format.

    `in_reasoning`: the prompt ended inside reasoning. `warnings`: what is not as the tools say, after
    `finish`.
    """

    def __init__(
        self,
        format: WireFormat | str,
        tools: Sequence[Tool] = (),
        *,
        in_reasoning: bool = False,
        engine: Engine | None = None,
        emitter: DeltaEmitter | None = None,
    ) -> None:
        wire = wire_format(format) if isinstance(format, str) else format
        engine = engine or byte_engine()
        vocabulary = engine.vocabulary
        self._tokens = vocabulary.tokens
        first, again, on = (
            engine.byte_automaton(
                wire.open_grammar(tools, vocabulary, in_reasoning=inside, continued=continued)
            )
            for inside, continued in ((in_reasoning, False), (False, False), (False, True))
        )
        written = wire.substitution
        pair = (written[0].encode(), written[1].encode()) if written is not None else None
        self._reader = TextReader(first, again, on, pair)
        self._emitter = emitter or DeltaEmitter()
        self._checked = CheckedCalls(tools)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, piece: str | bytes) -> list[Delta]:
        """The deltas of one piece of text, cut anywhere; bytes may end inside a code point."""
        text = self._decoder.decode(piece) if isinstance(piece, bytes) else piece
        return self._deltas(self._reader.feed(text.encode(errors="replace")))

    def token(self, token: int) -> list[Delta]:
        """The deltas of one token of the engine's vocabulary."""
        data = self._tokens[token] if 0 <= token < len(self._tokens) else b""
        return self.feed(data) if data else self._deltas(self._reader.token(token))

    def finish(self, *, cut: bool = False) -> list[Delta]:
        """The last deltas. `cut`: the generation was broken off, so an open call stays open."""
        deltas = self._deltas(self._reader.feed(self._decoder.decode(b"", True).encode()))
        return [*deltas, *self._deltas(self._reader.finish(cut=cut))]

    @property
    def warnings(self) -> list[str]:
        """What was not as the format or the tools say."""
        return [*self._reader.warnings, *self._checked.warnings()]

    def _deltas(self, events: Events) -> list[Delta]:
        deltas = self._emitter.feed(events)
        self._checked.add(deltas)
        return deltas


async def filter_deltas(
    pieces: AsyncIterable[str | bytes],
    format: WireFormat | str,
    tools: Sequence[Tool] = (),
    *,
    in_reasoning: bool = False,
) -> AsyncIterator[Delta]:
    """The deltas of a stream of text pieces, each as early as the text allows."""
    parser = TurnParser(format, tools, in_reasoning=in_reasoning)
    async for piece in pieces:
        for delta in parser.feed(piece):
            yield delta
    for delta in parser.finish():
        yield delta


class CheckedCalls:
    """The calls of a turn beside the tools that were declared."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._calls: list[tuple[str, list[str]]] = []

    def add(self, deltas: Iterable[Delta]) -> None:
        """Take note of what was delivered."""
        for delta in deltas:
            if isinstance(delta, CallDelta):
                self._calls.append((delta.name, []))
            elif isinstance(delta, ArgumentsDelta):
                self._calls[delta.index][1].append(delta.fragment)

    def warnings(self) -> list[str]:
        """One line for each call of an unknown tool and for each place that the tool's schema refuses."""
        found: list[str] = []
        for index, (name, fragments) in enumerate(self._calls):
            tool = self._tools.get(name)
            if tool is None:
                found += [f"call {index}: there is no tool named {name!r}"] if self._tools else []
                continue
            try:
                arguments = json.loads("".join(fragments))
                errors = list(Draft202012Validator(dict(tool.parameters)).iter_errors(arguments))
            except Exception as error:  # a schema may be anything, and so may the text
                found.append(f"call {index} of {name!r}: the arguments cannot be checked: {error}")
                continue
            found += [f"call {index} of {name!r}: {error.json_path}: {error.message}" for error in errors]
        return found


def tools_of(listed: Iterable[Mapping[str, Any]]) -> list[Tool]:
    """Tools as requests write them."""
    functions = map(tool_function, listed)
    return [
        Tool(each["name"], each.get("description") or "", each.get("parameters") or {}) for each in functions
    ]


def parse_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """One line of `larksong parse`: what the turn of `record` says. Raises ValueError for a bad record.

    Keys: `format`; `tools`; one of `text`, `chunks`, `chunks_hex`, `token_ids` with `tokenizer`; `build`:
    "open" or "strict"; `mode`: "schema" or "compat"; `prompt_tail`; `finish`: "stop" or "length".
    """
    check_record(record)
    record = {key: value for key, value in record.items() if value is not None}
    wire = wire_format(record["format"])
    tools = tools_of(record.get("tools") or ())
    cut = record.get("finish", "stop") == "length"
    in_reasoning = wire.ends_in_reasoning(record.get("prompt_tail") or "")
    emitter = DeltaEmitter()
    if record.get("mode", "schema") == "compat":
        from larksong.api.turns.compat import CompatStream

        stream = CompatStream(wire.name, in_reasoning=in_reasoning)
        deltas = [delta for piece in _pieces(record) for delta in stream.feed(_text(piece))]
        deltas += stream.finish(cut=cut)
        warnings: list[str] = list(stream.warnings)
    elif record.get("build", "open") == "strict":
        deltas, warnings = _strict(record, wire, tools, in_reasoning, emitter)
    else:
        engine = _tokenizer_engine(record["tokenizer"]) if "token_ids" in record else None
        parser = TurnParser(wire, tools, in_reasoning=in_reasoning, engine=engine, emitter=emitter)
        deltas = []
        for piece in _pieces(record):
            deltas += parser.token(piece) if isinstance(piece, int) else parser.feed(piece)
        deltas += parser.finish(cut=cut)
        warnings = parser.warnings
    return {"id": record.get("id"), **collected(deltas, cut=cut), "warnings": warnings}


def _strict(
    record: Mapping[str, Any],
    wire: WireFormat,
    tools: Sequence[Tool],
    in_reasoning: bool,
    emitter: DeltaEmitter,
) -> tuple[list[Delta], list[str]]:
    engine = _tokenizer_engine(record["tokenizer"]) if "token_ids" in record else byte_engine()
    grammar = wire.grammar(tools, CallPolicy(), engine.vocabulary, in_reasoning=in_reasoning)
    matcher: Matcher = engine.matcher(grammar)
    deltas: list[Delta] = []
    for piece in _pieces(record):
        for token in (
            (piece,)
            if isinstance(piece, int)
            else (piece if isinstance(piece, bytes) else piece.encode(errors="replace"))
        ):
            deltas += emitter.feed(matcher.advance(token))
    complete = matcher.complete
    if complete:
        deltas += emitter.feed(matcher.advance(min(engine.vocabulary.eos_ids)))
    deltas += emitter.feed(matcher.finish())
    warnings = [matcher.fault] if matcher.fault else [] if complete else ["the turn is not complete"]
    return deltas, warnings


def _pieces(record: Mapping[str, Any]) -> Sequence[str | bytes | int]:
    if "token_ids" in record:
        ids: list[int] = record["token_ids"]
        return ids
    if "chunks_hex" in record:
        return [bytes.fromhex(piece) for piece in record["chunks_hex"]]
    if "chunks" in record:
        chunks: list[str] = record["chunks"]
        return chunks
    if "text" not in record:
        raise ValueError("a record needs 'text', 'chunks', 'chunks_hex' or 'token_ids'")
    return [record["text"]]


def _text(piece: str | bytes | int) -> str:
    if isinstance(piece, int):
        raise ValueError("compat mode reads text, not token ids")
    return piece if isinstance(piece, str) else piece.decode(errors="replace")


def collected(deltas: Iterable[Delta], *, cut: bool = False) -> dict[str, Any]:
    """The whole answer that deltas make: content, reasoning, calls, the deltas themselves, the finish
    reason.
    """
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for delta in deltas:
        match delta:
            case ContentDelta(text):
                content.append(text)
                shown.append({"content": text})
            case ReasoningDelta(text):
                reasoning.append(text)
                shown.append({"reasoning_content": text})
            case CallDelta(index, id, name):
                call = {
                    "index": index,
                    "id": id,
                    "type": "function",
                    "function": {"name": name, "arguments": ""},
                }
                shown.append({"tool_calls": [call]})
                calls.append({**call, "function": {"name": name, "arguments": ""}})
            case ArgumentsDelta(index, fragment):
                calls[index]["function"]["arguments"] += fragment
                shown.append({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
    return {
        "content": "".join(content),
        "reasoning_content": "".join(reasoning),
        "tool_calls": calls,
        "deltas": shown,
        "finish_reason": "length" if cut else "tool_calls" if calls else "stop",
    }
