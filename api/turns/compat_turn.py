"""Compat mode for a turn that a backend generates: its tokens' text → the deltas of tabbyAPI's end parse."""

from __future__ import annotations

import codecs
from collections.abc import Mapping

from larksong.api.turns.compat import CompatStream
from larksong.api.turns.deltas import Delta
from larksong.engine.backends.base import Finish, Step
from larksong.engine.vocabulary import Vocabulary

SCHEMA_BLIND = (
    "compat mode: the mask kept to the tools' schemas, but the arguments are typed by their text alone, "
    "so they may differ from what the schemas say"
)


class CompatTurn:
    """Reads the steps of one turn.

    `calls`: whether calls may come; `masked`: whether a grammar decides which. Raises NoCompat.
    """

    def __init__(
        self, format: str, vocabulary: Vocabulary, *, in_reasoning: bool, calls: bool, masked: bool
    ) -> None:
        self._stream = CompatStream(format, in_reasoning=in_reasoning, tools=calls)
        self._markers: Mapping[int, str] = {id: text for text, id in vocabulary.special.items()}
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._masked = masked

    def feed(self, item: Step | Finish) -> list[Delta]:
        """The deltas of one token, or of the end."""
        if isinstance(item, Finish):
            rest = self._stream.feed(self._decoder.decode(b"", True))
            return [*rest, *self._stream.finish()]
        if item.text:
            return self._stream.feed(self._decoder.decode(item.text))
        return self._stream.feed(self._markers.get(item.token, ""))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the client should know of the whole turn, after its end."""
        blind = (SCHEMA_BLIND,) if self._masked and self._stream.calls else ()
        return (*blind, *self._stream.warnings)
