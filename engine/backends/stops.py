"""Stop strings: texts that end an answer where they come in what a reader sees of it.

They are looked for in the visible text alone. Inside a call's arguments the same letters are data, and
markup and reasoning are no text of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from larksong.engine.events import Content, Events, ParseEvent


class StopTexts:
    """Cuts a turn's events before the first of `stops`; holds back what could be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop.encode() for stop in stops if stop]
        self._held = b""
        self.found = False
        """A stop has come: everything from it on is left out."""

    def feed(self, events: Events) -> Events:
        """The events that are certain not to belong to a stop."""
        if not self._stops or not events:
            return events
        kept: list[ParseEvent] = []
        for event in events:
            if self.found:
                break
            if isinstance(event, Content):
                kept += self._text(event.data)
            else:
                kept += self._release()
                kept.append(event)
        return tuple(kept)

    def finish(self, events: Iterable[ParseEvent] = ()) -> Events:
        """The last events; what was held back is text after all."""
        kept = self.feed(tuple(events))
        return kept if self.found else (*kept, *self._release())

    def _text(self, data: bytes) -> list[ParseEvent]:
        text = self._held + data
        places = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if places:
            self.found, self._held = True, b""
            text = text[: min(places)]
        else:
            size = max(_overlap(text, stop) for stop in self._stops)
            text, self._held = text[: len(text) - size], text[len(text) - size :]
        return [Content(text)] if text else []

    def _release(self) -> list[ParseEvent]:
        held, self._held = self._held, b""
        return [Content(held)] if held else []


def _overlap(text: bytes, stop: bytes) -> int:
    """How many bytes at the end of `text` are the beginning of `stop`."""
    sizes = range(min(len(stop) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(stop[:size])), 0)
