"""A marker that models write inside raw strings for want of a text, and that text in its place."""

from __future__ import annotations

from larksong.engine.events import ParseEvent, Text


class Substitution:
    """Puts a text in the place of a marker inside raw strings, however they are cut."""

    def __init__(self, marker: bytes, text: bytes) -> None:
        self._marker, self._text = marker, text
        self.held = b""

    def take(self, event: ParseEvent, found: list[ParseEvent]) -> ParseEvent:
        """`event` as it is to be told; what was held back before it goes to `found`."""
        if not isinstance(event, Text):
            if self.held:
                found.append(Text(self.held))
                self.held = b""
            return event
        if not self.held and self._marker[:1] not in event.data:
            return event
        data = (self.held + event.data).replace(self._marker, self._text)
        held = next((n for n in range(len(self._marker) - 1, 0, -1) if data.endswith(self._marker[:n])), 0)
        self.held = data[len(data) - held :]
        return Text(data[: len(data) - held])
