"""The readings that the page looks at; the oldest give way."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict

from larksong.api.errors import ApiError
from larksong.api.inspector.live import LiveTurn
from larksong.api.inspector.turn_reading import TurnReading

_MOST = 16
_MOST_TOKENS = 500_000
"""of all readings but the newest"""


class Sessions:
    """Readings by their ids, and the live turns that they follow. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[TurnReading, LiveTurn | None]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, reading: TurnReading, turn: LiveTurn | None = None) -> str:
        """Keep a reading; its id."""
        id = secrets.token_urlsafe(12)
        with self._lock:
            self._known[id] = (reading, turn)
            while len(self._known) > 1 and (len(self._known) > _MOST or self._tokens() > _MOST_TOKENS):
                self._known.popitem(last=False)
        return id

    def get(self, id: str) -> TurnReading:
        """A reading, as far as its turn has come. Raises ApiError."""
        with self._lock:
            if id not in self._known:
                raise ApiError(
                    "This reading is not kept any more; read the text again.",
                    status=404,
                    param="session",
                    code="session_gone",
                )
            self._known.move_to_end(id)
            reading, turn = self._known[id]
        if turn is not None:
            ended = turn.ended is not None
            reading.feed_up_to(turn.tokens)
            if ended:
                reading.end()
        return reading

    def _tokens(self) -> int:
        return sum(len(reading) for reading, _ in self._known.values())
