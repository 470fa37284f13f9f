"""What the demo shows: the answer while it grows, then every delta with the step that made it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from larksong.api.openai_chat.schemas import StepInfo
from larksong.api.runtime.printable import printable


@dataclass
class CallRecord:
    """A call as far as it has come."""

    id: str
    name: str
    arguments: str = ""


@dataclass(frozen=True)
class DeltaRecord:
    """A delta, when it came (milliseconds since the request was sent) and the step that made it."""

    delta: ChoiceDelta
    came: float
    step: StepInfo


@dataclass
class StreamRecord:
    """What has come of a stream so far."""

    started: float = field(default_factory=time.perf_counter)
    content: str = ""
    reasoning: str = ""
    calls: dict[int, CallRecord] = field(default_factory=dict)
    deltas: list[DeltaRecord] = field(default_factory=list)
    summary: str = ""
    is_cut: bool = False
    """there were no tokens left for the rest"""

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Takes in the next chunk."""
        came = (time.perf_counter() - self.started) * 1000
        if chunk.usage is not None:
            self.summary += f", {chunk.usage.prompt_tokens} tokens read"
            self.summary += f", {chunk.usage.completion_tokens} written"
        for choice in chunk.choices:
            self._grow(choice.delta)
            step: StepInfo | None = (chunk.model_extra or {}).get("larksong")
            if step is not None:
                self.deltas.append(DeltaRecord(choice.delta, came, step))
            if choice.finish_reason is not None:
                self.summary = f"finish_reason {choice.finish_reason}"
                self.is_cut = choice.finish_reason == "length"

    def _grow(self, delta: ChoiceDelta) -> None:
        self.content += delta.content or ""
        extra = delta.model_extra or {}
        self.reasoning += extra.get("reasoning_content") or extra.get("reasoning") or ""
        for piece in delta.tool_calls or ():
            assert piece.function is not None
            if piece.index not in self.calls:
                self.calls[piece.index] = CallRecord(piece.id or "", piece.function.name or "")
            self.calls[piece.index].arguments += piece.function.arguments or ""


def growing_answer(record: StreamRecord) -> RenderableType:
    """The text and the calls so far."""
    parts: list[RenderableType] = []
    if record.reasoning:
        parts.append(Text(printable(record.reasoning), style="dim italic"))
    if record.content:
        parts.append(Text(printable(record.content)))
    for index, call in record.calls.items():
        title = Text(printable(f"{index}  {call.name}  {call.id}"))
        parts.append(Panel(Text(printable(call.arguments)), title=title, title_align="left"))
    return Group(*parts)


@dataclass(frozen=True)
class LastLines:
    """As much of the end of `content` as the terminal has room for: what has left it cannot be drawn anew."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines; see rich's console protocol."""
        lines = console.render_lines(self.content, options, pad=False)
        for number, line in enumerate(lines[-max(options.size.height - 1, 1) :]):
            if number:
                yield Segment.line()
            yield from line


def delta_table(record: StreamRecord) -> Table:
    """One row a delta: when it came, the token that decided it, how many tokens the mask allowed there."""
    table = Table("came (ms)", "token", "allowed", "call", "delta")
    table.columns[0].justify = table.columns[2].justify = table.columns[3].justify = "right"
    for row in record.deltas:
        call, shown = _shown(row.delta)
        token = Text(json.dumps(row.step["token"], ensure_ascii=False))
        table.add_row(f"{row.came:.0f}", token, f"{row.step['allowed']:,}", call, Text(shown))
    return table


def _shown(delta: ChoiceDelta) -> tuple[str, str]:
    """The index of the delta's call, and the member that it adds to the answer."""
    if not delta.tool_calls:
        return "", f'"content": {json.dumps(delta.content, ensure_ascii=False)}'
    [piece] = delta.tool_calls
    assert piece.function is not None
    if piece.function.name:
        return str(piece.index), f'"name": {json.dumps(piece.function.name, ensure_ascii=False)}'
    return str(piece.index), f'"arguments": {json.dumps(piece.function.arguments, ensure_ascii=False)}'
