"""Rule and terminal names that a person recognises."""

from __future__ import annotations

import re


class SymbolNames:
    """Gives out names that are unique within a grammar."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def rule(self, wanted: str) -> str:
        """A rule name like `get_weather__city`."""
        return self._unique(re.sub(r"[^a-z0-9]", "_", wanted.lower()).strip("_") or "value", "x")

    def terminal(self, wanted: str) -> str:
        """A terminal name like `GET_WEATHER__CITY`."""
        return self._unique(re.sub(r"[^A-Z0-9]", "_", wanted.upper()).strip("_") or "TERMINAL", "X")

    def _unique(self, wanted: str, letter: str) -> str:
        name = wanted if wanted[0].isalpha() else letter + wanted
        number = 2
        unique = name
        while unique in self._taken:
            unique = f"{name}_{number}"
            number += 1
        self._taken.add(unique)
        return unique
