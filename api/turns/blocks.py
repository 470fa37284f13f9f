"""Deltas → blocks: stretches of reasoning, of text, and calls, one after the other.

Anthropic's content blocks and the items of the Responses API are both such stretches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta

BlockKind = Literal["reasoning", "text", "call"]


@dataclass
class Block:
    """A stretch of the answer, counted from 0. `call`: the call that it is; `pieces`: what it has so far."""

    index: int
    kind: BlockKind
    call: CallDelta | None = None
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text so far; of a call its arguments."""
        return "".join(self.pieces)


@dataclass(frozen=True)
class BlockOpened:
    """A block begins."""

    block: Block


@dataclass(frozen=True)
class BlockGrown:
    """A block got longer."""

    block: Block
    piece: str


@dataclass(frozen=True)
class BlockClosed:
    """A block is over. `complete` is false where the answer was cut short in it."""

    block: Block
    complete: bool = True


BlockEvent = BlockOpened | BlockGrown | BlockClosed


class BlockWriter:
    """Gathers the deltas of one turn in blocks. Blank text makes none: the APIs take no such blocks back."""

    def __init__(self) -> None:
        self._open: Block | None = None
        self._blank: tuple[BlockKind, str] = ("text", "")
        self._count = 0

    def feed(self, deltas: Iterable[Delta]) -> list[BlockEvent]:
        """What deltas do to the blocks."""
        events: list[BlockEvent] = []
        for delta in deltas:
            match delta:
                case ContentDelta(text):
                    self._grow("text", text, events)
                case ReasoningDelta(text):
                    self._grow("reasoning", text, events)
                case CallDelta():
                    self._begin("call", events, delta)
                case ArgumentsDelta(_, fragment):
                    self._add(fragment, events)
        return events

    def end(self, *, complete: bool) -> list[BlockEvent]:
        """The end of the answer; `complete`: it was not cut short."""
        events: list[BlockEvent] = []
        self._close(events, complete=complete)
        return events

    def _grow(self, kind: BlockKind, text: str, events: list[BlockEvent]) -> None:
        if self._open is None or self._open.kind != kind:
            held, blank = self._blank
            text = blank + text if held == kind else text
            if not text.strip():
                self._blank = (kind, text)
                return
            self._begin(kind, events)
        self._blank = ("text", "")
        self._add(text, events)

    def _begin(self, kind: BlockKind, events: list[BlockEvent], call: CallDelta | None = None) -> None:
        self._close(events)
        self._open = Block(self._count, kind, call)
        self._count += 1
        events.append(BlockOpened(self._open))

    def _add(self, piece: str, events: list[BlockEvent]) -> None:
        assert self._open is not None
        self._open.pieces.append(piece)
        events.append(BlockGrown(self._open, piece))

    def _close(self, events: list[BlockEvent], *, complete: bool = True) -> None:
        self._blank = ("text", "")
        if self._open is not None:
            events.append(BlockClosed(self._open, complete))
            self._open = None
