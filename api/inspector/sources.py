"""What reads the tokens of a turn: a matcher, the open build, compat mode."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from larksong.api.offline.parse import TurnParser
from larksong.api.openai_chat.parse_events import EventWriter
from larksong.api.openai_chat.schemas import EventInfo
from larksong.api.turns.compat import CompatStream
from larksong.api.turns.deltas import Delta
from larksong.api.turns.emitter import DeltaEmitter
from larksong.api.turns.turn import TurnEnd
from larksong.engine.engine import Engine
from larksong.engine.events import Events, ParseEvent
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import Tool, WireFormat

Read = tuple[Sequence[EventInfo], Sequence[Delta]]


class Source(Protocol):
    """Reads one turn."""

    @property
    def fault(self) -> str | None:
        """Why the last token was refused."""

    @property
    def complete(self) -> bool:
        """Whether what was read is a whole turn."""

    def feed(self, token: int) -> Read:
        """What a token made certain."""

    def finish(self) -> Read:
        """What the end of the text makes certain."""

    def at(self, place: int) -> Matcher | None:
        """A cursor before the token at `place`; None where there are no masks."""

    def is_special(self, token: int) -> bool:
        """Whether a token is a marker."""


class Masked:
    """Reads by the grammar of a request. `start`: a cursor at the turn's beginning."""

    def __init__(self, start: Matcher, tools: Sequence[Tool], vocabulary: Vocabulary) -> None:
        self._matcher = start
        self._read = 0
        self._vocabulary = vocabulary
        self._emitter = DeltaEmitter()
        self._writer = EventWriter(tools)

    @property
    def fault(self) -> str | None:
        """See Source."""
        return self._matcher.fault

    @property
    def complete(self) -> bool:
        """See Source."""
        return self._matcher.complete

    def feed(self, token: int) -> Read:
        """See Source."""
        self._read += 1
        return self._written(self._matcher.advance(token))

    def finish(self) -> Read:
        """See Source."""
        if self._matcher.finished or not self._matcher.complete:
            return self._written(self._matcher.finish())
        last = self._matcher.fork()
        events = last.advance(min(self._vocabulary.eos_ids))
        return self._written((*events, *last.finish()))

    def at(self, place: int) -> Matcher | None:
        """See Source."""
        cursor = self._matcher.fork()
        cursor.rollback(self._read - place)
        return cursor

    def is_special(self, token: int) -> bool:
        """See Source."""
        return _is_special(self._vocabulary, token)

    def _written(self, events: Events) -> Read:
        return _events(self._writer, events), self._emitter.feed(events)


class Loose:
    """Reads what nobody constrained, by the open build of a format."""

    fault = None
    complete = True

    def __init__(
        self, format: WireFormat, tools: Sequence[Tool], engine: Engine, *, in_reasoning: bool
    ) -> None:
        self._vocabulary = engine.vocabulary
        self._heard = _Heard(EventWriter(tools))
        self._parser = TurnParser(
            format, tools, in_reasoning=in_reasoning, engine=engine, emitter=self._heard
        )

    def feed(self, token: int) -> Read:
        """See Source."""
        return self._heard.of(lambda: self._parser.token(token))

    def finish(self) -> Read:
        """See Source."""
        return self._heard.of(self._parser.finish)

    def at(self, place: int) -> Matcher | None:
        """See Source."""
        return None

    def is_special(self, token: int) -> bool:
        """See Source."""
        return _is_special(self._vocabulary, token)


class Compat:
    """Reads as tabbyAPI's end parse does. Raises NoCompat."""

    fault = None
    complete = True

    def __init__(self, format: str, vocabulary: Vocabulary, *, in_reasoning: bool) -> None:
        self._stream = CompatStream(format, in_reasoning=in_reasoning)
        self._vocabulary = vocabulary
        self._markers = {id: text for text, id in vocabulary.special.items()}
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, token: int) -> Read:
        """See Source."""
        data = self._vocabulary.text(token)
        return (), self._stream.feed(self._decoder.decode(data) if data else self._markers.get(token, ""))

    def finish(self) -> Read:
        """See Source."""
        return (), [*self._stream.feed(self._decoder.decode(b"", True)), *self._stream.finish()]

    def at(self, place: int) -> Matcher | None:
        """See Source."""
        return None

    def is_special(self, token: int) -> bool:
        """See Source."""
        return _is_special(self._vocabulary, token)


class _Heard(DeltaEmitter):
    """An emitter that keeps the events that it is given."""

    def __init__(self, writer: EventWriter) -> None:
        super().__init__()
        self._writer = writer
        self._told: list[EventInfo] = []

    def feed(self, events: Iterable[ParseEvent]) -> list[Delta]:
        """See DeltaEmitter."""
        told = tuple(events)
        self._told += _events(self._writer, told)
        return super().feed(told)

    def of(self, work: Callable[[], list[Delta]]) -> Read:
        """The events and deltas of a piece of reading."""
        self._told = []
        deltas = work()
        return self._told, deltas


def _events(writer: EventWriter, events: Events) -> list[EventInfo]:
    return writer.write(TurnEnd((), "stop", 0, events=events)) if events else []


def _is_special(vocabulary: Vocabulary, token: int) -> bool:
    return not vocabulary.text(token)
