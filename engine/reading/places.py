"""Places: where a reader stands inside a call, with the bytes that only continue a value from there.

Most bytes of a call reveal nothing yet, or a piece of JSON, or a piece for each of the two readings of a
value whose type is still open. What such a byte does is known once it was read, whatever the turn.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from larksong.engine.events import Events, Json, Text
from larksong.engine.parsing.stack import Configuration, Edge, Reading
from larksong.engine.parsing.token_automaton import TokenAutomaton
from larksong.engine.parsing.transitions import Transitions
from larksong.engine.reading.self_loops import Run


class Step:
    """A byte that only continues a value: the place behind it, and what it tells as JSON and as raw text.

    Where the value's type is open these are its two readings; else one of them is empty.
    """

    __slots__ = ("json", "place", "tells", "text")

    def __init__(self, place: Place, json: bytes, text: bytes) -> None:
        self.place, self.json, self.text = place, json, text
        self.tells = bool(json or text)


class Place:
    """A configuration of an open grammar, read byte by byte. `steps`: None for a byte that does more."""

    __slots__ = ("_known", "_ways", "configuration", "is_open", "run", "run_is_text", "steps")

    def __init__(self, ways: Transitions, configuration: Configuration, run: Run | None) -> None:
        self._ways = ways
        self._known: dict[int, Edge | None] = {}
        self.configuration = configuration
        self.is_open = configuration.ambiguous
        """whether the value could still be a raw string or JSON"""
        self.run = run
        self.run_is_text = run is not None and run.event is Text
        self.steps: dict[int, Step | None] = {}

    def edge(self, byte: int) -> Edge | None:
        """Where a byte leads, whether or not it is a token of the vocabulary."""
        try:
            return self._known[byte]
        except KeyError:
            edge = self._ways.step(self.configuration, bytes((byte,)))
            return self._known.setdefault(byte, edge)


_PLACES: WeakKeyDictionary[TokenAutomaton, dict[Configuration, Place]] = WeakKeyDictionary()


def places_of(automaton: TokenAutomaton) -> dict[Configuration, Place]:
    """The known places of an automaton; they live as long as it does."""
    return _PLACES.setdefault(automaton, {})


def continues(edge: Edge) -> tuple[bytes, bytes] | None:
    """What an edge tells as JSON and as a string, if it does no more than continue a value; else None."""
    if not edge.branches:
        match edge.events:
            case ():
                return b"", b""
            # A string that opens inside JSON tells no more than its quote.
            case (Json(data),) | (Json(data), Text(b"")):
                return data, b""
            case (Text(data),) if data:
                return b"", data
        return None
    if edge.events or len(edge.branches) != 2:
        return None
    found: dict[Reading, bytes | None] = {}
    for before, after, events in edge.branches:
        if before is after and after in (Reading.JSON, Reading.TEXT):
            found[after] = _only(events, Text if after is Reading.TEXT else Json)
    json, text = found.get(Reading.JSON), found.get(Reading.TEXT)
    return None if json is None or text is None else (json, text)


def _only(events: Events, kind: type[Json] | type[Text]) -> bytes | None:
    """The bytes of at most one event, which must be of this kind."""
    if not events:
        return b""
    event, *more = events
    return event.data if isinstance(event, kind) and not more else None
