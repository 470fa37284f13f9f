"""Schemas that the grammar of a turn does not wholly enforce: what was written is validated at the end."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta
from larksong.api.turns.validation import broken_keywords
from larksong.grammars import Widened

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WidenedSchema:
    """A schema with keywords that are not enforced; `tool` is None for that of the response format."""

    tool: str | None
    schema: Mapping[str, Any] | bool
    widened: tuple[Widened, ...]
    formats: bool


@dataclass(frozen=True)
class WidenedKeyword:
    """A keyword that was not enforced, and whether what was written keeps it all the same."""

    tool: str | None
    pointer: str
    keyword: str
    valid: bool


class WidenedValues:
    """Gathers a turn's values of widened schemas."""

    def __init__(self, schemas: Iterable[WidenedSchema]) -> None:
        self._schemas = {schema.tool: schema for schema in schemas}
        self._tools: dict[int, str] = {}
        self._calls: defaultdict[int, list[str]] = defaultdict(list)
        self._content: list[str] = []

    def add(self, deltas: Sequence[Delta]) -> None:
        """Take note of what the turn grew by."""
        if not self._schemas:
            return
        for delta in deltas:
            match delta:
                case CallDelta(index, _, name) if name in self._schemas:
                    self._tools[index] = name
                case ArgumentsDelta(index, fragment) if index in self._tools:
                    self._calls[index].append(fragment)
                case ContentDelta(text) if None in self._schemas:
                    self._content.append(text)

    async def check(self) -> tuple[WidenedKeyword, ...]:
        """The keywords, of schemas that have a complete value; one line of the log says the same."""
        texts: defaultdict[str | None, list[str]] = defaultdict(list)
        written = [(self._tools[index], "".join(pieces)) for index, pieces in self._calls.items()]
        for tool, text in [*written, (None, "".join(self._content))]:
            if _is_complete(text):
                texts[tool].append(text)
        found: list[WidenedKeyword] = []
        for tool, values in texts.items():
            schema = self._schemas[tool]
            keywords = {each.keyword for each in schema.widened}
            broken = await broken_keywords(schema.schema, values, keywords, formats=schema.formats)
            found += [
                WidenedKeyword(tool, each.pointer, each.keyword, each.keyword not in broken)
                for each in schema.widened
            ]
        if found:
            _logger.warning("not enforced: %s", "; ".join(map(_line, found)))
        return tuple(found)


def _is_complete(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _line(found: WidenedKeyword) -> str:
    place = "response_format" if found.tool is None else f"tool {found.tool!r}"
    return f"{place}, {found.pointer!r}: {'kept' if found.valid else 'broken'}"
