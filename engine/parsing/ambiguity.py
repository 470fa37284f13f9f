"""The readings of a value whose type is still open, kept apart until one is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from larksong.engine.events import Events, coalesce
from larksong.engine.parsing.stack import Branch


class Held(NamedTuple):
    """Events of one reading, newest first."""

    earlier: Held | None
    events: Events


Readings = Mapping[int, Held | None]
"""What each reading holds, by its kind (see `Branch`)."""


def choose(before: Readings, certain: Events, branches: tuple[Branch, ...]) -> tuple[Readings, Events]:
    """The readings after a step, and what it makes certain; none are left where one remains."""
    after: dict[int, Held | None] = {}
    for was_text, is_text, events in branches:
        if is_text not in after:
            earlier = before.get(was_text)
            after[is_text] = Held(earlier, events) if events else earlier
    if len(after) > 1:
        return after, certain
    (left,) = after.values()
    collected: list[Events] = []
    while left is not None:
        collected.append(left.events)
        left = left.earlier
    return {}, coalesce([*certain, *(event for events in reversed(collected) for event in events)])
