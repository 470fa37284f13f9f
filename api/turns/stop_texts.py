"""Texts that end an answer: looked for in its visible text, never in reasoning or calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from larksong.api.turns.deltas import ContentDelta, Delta


class StopTexts:
    """Passes deltas on up to the first of `stops`; holds back text that may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stop = re.compile("|".join(map(re.escape, stops)))
        beginnings = {stop[:size] for stop in stops for size in range(1, len(stop))}
        ordered = sorted(beginnings, key=len, reverse=True)
        self._beginning = re.compile(f"(?:{'|'.join(map(re.escape, ordered))})\\Z") if ordered else None
        self._longest = max(map(len, stops))
        self._held = ""
        self.found: str | None = None
        """the stop that came"""

    def feed(self, deltas: Iterable[Delta]) -> list[Delta]:
        """What of the deltas comes before a stop, as far as that is certain."""
        passed: list[Delta] = []
        for delta in deltas:
            if self.found:
                break
            if not isinstance(delta, ContentDelta):
                passed += [*self.rest(), delta]
                continue
            text = self._held + delta.text
            self._held = ""
            if (match := self._stop.search(text)) is not None:
                self.found = match.group()
                text = text[: match.start()]
            elif self._beginning is not None:
                # From here on a text could begin that is a stop; the leftmost such place counts.
                tail = max(0, len(text) - self._longest + 1)
                if (match := self._beginning.search(text, tail)) is not None:
                    self._held = text[match.start() :]
                    text = text[: match.start()]
            if text:
                passed.append(ContentDelta(text))
        return passed

    def rest(self) -> list[Delta]:
        """What was held back, when it turned out to be no stop."""
        held, self._held = self._held, ""
        return [ContentDelta(held)] if held else []
