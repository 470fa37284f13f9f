"""Compat mode: the calls that tabbyAPI's end parse finds, from documented behaviour alone.

tabbyAPI reads a turn's tool text once, at its end, without the tools' schemas. `end_parse` does so;
`CompatStream` gives the same bytes in a stream. A call that is not closed may yet be dropped by the rules, so
a call is delivered when its closing marker has come: the first moment at which it is certain.

What a stream cannot follow: where a later call makes the whole end parse fail (a key of GLM without a value,
values nested too deeply), no call of the turn counts for it. Calls that were delivered before stay, none
follow, and a warning says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from larksong.api.turns.compat_formats import (
    FINAL_PIECES,
    RECIPIENT,
    CompatRules,
    FoundCall,
    NoCompat,
    rules_of,
)
from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from larksong.api.turns.emitter import new_call_id


def end_parse(format: str, tool_text: str) -> list[FoundCall]:
    """The calls of a turn's tool text; none where reading one of them fails. Raises NoCompat."""
    try:
        return list(_every_call(format, tool_text))
    except NoCompat:
        raise
    except Exception:  # the rules: any failure loses all calls
        return []


def fails(format: str, tool_text: str) -> bool:
    """Whether the end parse finds no call because reading one of them fails."""
    try:
        list(_every_call(format, tool_text))
    except Exception:
        return True
    return False


def _every_call(format: str, text: str) -> Iterator[FoundCall]:
    rules = rules_of(format)
    if format in ("qwen3_coder", "glm_4_5", "glm_4_7", "minimax_m2"):
        blocks = rules.closed.findall(text)
        for block in blocks:
            yield from rules.calls(block)
        if not blocks and rules.otherwise is not None:
            yield from rules.otherwise(text)
    else:
        yield from rules.calls(text)


def _tags(rules: CompatRules, tools: bool) -> list[str]:
    """The tags that part the channels, the longest first."""
    of_calls = {rules.opener, rules.closer} if tools else set()
    return sorted({*rules.reasoning, *of_calls} - {""}, key=lambda tag: (-len(tag), tag))


def split(format: str, text: str, *, in_reasoning: bool = False, tools: bool = True) -> tuple[str, str, str]:
    """The content, the reasoning and the tool text of a whole turn; see `CompatStream`. Raises NoCompat."""
    rules = rules_of(format)
    if format == "harmony":
        return _split_harmony(text)
    parts = {"content": "", "reasoning": "", "tool": ""}
    channel = resumed = "reasoning" if in_reasoning else "content"
    blanks: str | None = None
    tags = _tags(rules, tools)
    for piece in re.split("(" + "|".join(map(re.escape, tags)) + ")", text):
        if piece in (rules.opener, rules.closer) and piece in tags:
            if channel != "tool":
                resumed, channel = channel, "tool"
                parts["tool"] += piece
            else:
                parts["tool"] += piece
                if piece == rules.closer:
                    channel = resumed
        elif piece in rules.reasoning and piece:
            if channel != "tool":
                channel = "reasoning" if piece == rules.reasoning[0] else "content"
                blanks = None if channel == "reasoning" else ""
        elif channel == "content" and blanks is not None:
            blanks += piece
            if blanks.strip():
                parts["content"] += blanks
                blanks = None
        else:
            parts[channel] += piece
    return parts["content"], parts["reasoning"], parts["tool"]


def _split_harmony(text: str) -> tuple[str, str, str]:
    content = reasoning = tool = ""
    for message in re.split(r"<\|(?:end|call|return)\|>", text):
        header, marker, body = message.partition("<|message|>")
        if not marker:
            continue
        if RECIPIENT.search(header):
            tool += f"{header}<|message|>{body}<|call|>"
        elif "analysis" in header:
            reasoning += body
        else:
            content += body
    return content, reasoning, tool


class CompatStream:
    """The deltas of one turn, for any way of cutting its text. Raises NoCompat.

    `tools`: False for `tool_choice: none`, with which the tags of calls are text.
    """

    def __init__(
        self,
        format: str,
        *,
        in_reasoning: bool = False,
        tools: bool = True,
        call_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._format, self._rules, self._call_id = format, rules_of(format), call_id
        self._tags = _tags(self._rules, tools)
        if format == "harmony":
            self._tags = ["<|message|>", "<|end|>", "<|call|>", "<|return|>"]
        self._tag = re.compile("|".join(map(re.escape, self._tags)))
        self._channel = self._resumed = "reasoning" if in_reasoning else "content"
        if format == "harmony":
            self._channel = "header"
        self._blanks: str | None = None
        self._held = ""
        self._header = ""
        self._tool: list[str] = []
        """tool text that is not cut into calls yet"""
        self._tail = ""
        """its last characters, in which a closing marker may have begun"""
        self._all_tool: list[str] | None = [] if self._rules.otherwise is not None else None
        self._any_closed = False
        self.calls = 0
        """how many calls were delivered"""
        self.warnings: list[str] = []

    def feed(self, text: str) -> list[Delta]:
        """The deltas of one piece."""
        deltas: list[Delta] = []
        text = self._held + text
        at = 0
        while (match := self._tag.search(text, at)) is not None:
            # A longer tag may still be coming.
            if self._longer(text, match):
                break
            self._text(text[at : match.start()], deltas)
            self._met(match[0], deltas)
            at = match.end()
        rest = text[at:]
        keep = next(
            (
                n
                for n in range(min(len(rest), max(map(len, self._tags))), 0, -1)
                if self._may_begin(rest[-n:])
            ),
            0,
        )
        self._text(rest[: len(rest) - keep], deltas)
        self._held = rest[len(rest) - keep :]
        return deltas

    def _longer(self, text: str, match: re.Match[str]) -> bool:
        found = text[match.start() :]
        return any(tag != found and tag.startswith(found) for tag in self._tags)

    def _may_begin(self, text: str) -> bool:
        return any(tag.startswith(text) for tag in self._tags)

    def _text(self, text: str, deltas: list[Delta]) -> None:
        if not text:
            return
        if self._channel == "tool":
            self._add_tool(text, deltas)
        elif self._channel == "header":
            self._header += text
        elif self._channel == "reasoning":
            deltas.append(ReasoningDelta(text))
        elif self._blanks is not None and not (self._blanks + text).strip():
            self._blanks += text
        else:
            deltas.append(ContentDelta((self._blanks or "") + text))
            self._blanks = None

    def _met(self, tag: str, deltas: list[Delta]) -> None:
        if self._format == "harmony":
            self._met_harmony(tag, deltas)
        elif tag in (self._rules.opener, self._rules.closer):
            if self._channel != "tool":
                self._resumed, self._channel = self._channel, "tool"
                self._add_tool(tag, deltas)
            else:
                self._add_tool(tag, deltas)
                if tag == self._rules.closer:
                    self._channel = self._resumed
        elif self._channel != "tool":
            self._channel = "reasoning" if tag == self._rules.reasoning[0] else "content"
            self._blanks = None if self._channel == "reasoning" else ""

    def _met_harmony(self, tag: str, deltas: list[Delta]) -> None:
        if tag == "<|message|>":
            if self._channel != "header":
                self._text(tag, deltas)
            elif RECIPIENT.search(self._header):
                self._channel = "tool"
                self._add_tool(f"{self._header}{tag}", deltas)
            else:
                self._channel = "reasoning" if "analysis" in self._header else "content"
        else:
            if self._channel == "tool":
                self._add_tool("<|call|>", deltas)
            self._channel, self._header = "header", ""

    def _add_tool(self, text: str, deltas: list[Delta]) -> None:
        self._tool.append(text)
        if self._all_tool is not None:
            self._all_tool.append(text)
        closer = {"deepseek_v4": "</｜DSML｜invoke>"}.get(
            self._format, self._rules.closer or self._rules.opener
        )
        seen = self._tail + text
        self._tail = seen[-len(closer) :]
        if closer in seen:
            self._cut(deltas)

    def _cut(self, deltas: list[Delta]) -> None:
        """Deliver the calls of the pieces that are closed by now."""
        text = "".join(self._tool)
        at = 0
        for piece in self._rules.closed.finditer(text):
            self._any_closed, self._all_tool = True, None
            self._deliver(self._rules.calls(self._piece(piece)), deltas)
            at = piece.end()
        self._tool = [text[at:]]

    def _piece(self, piece: re.Match[str]) -> str:
        return piece[0] if self._format == "harmony" else piece[1]

    def _deliver(self, calls: Iterator[FoundCall], deltas: list[Delta]) -> None:
        if self.warnings:
            return
        try:
            for name, arguments in calls:
                deltas.append(CallDelta(self.calls, self._call_id(), name))
                deltas.append(ArgumentsDelta(self.calls, arguments))
                self.calls += 1
        except Exception as error:  # as the rules: whatever it is, no call counts from here on
            self.warnings.append(
                f"the end parse fails and would find no calls: {type(error).__name__}: {error}"
            )

    def finish(self, *, cut: bool = False) -> list[Delta]:
        """The last deltas. How the turn ended makes no difference to the rules."""
        deltas: list[Delta] = []
        held, self._held = self._held, ""
        match = self._tag.fullmatch(held)
        if match is not None:
            self._met(held, deltas)
        else:
            self._text(held, deltas)
        if self._format == "harmony" and self._channel == "tool":
            self._add_tool("<|call|>", deltas)
        if self._format in FINAL_PIECES:
            self._deliver(self._rules.calls("".join(self._tool)), deltas)
        elif self._all_tool is not None and self._rules.otherwise is not None:
            self._deliver(self._rules.otherwise("".join(self._all_tool)), deltas)
        return deltas
