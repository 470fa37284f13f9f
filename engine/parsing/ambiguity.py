"""What the readings of a value whose type is still open have told, kept apart until one is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from larksong.engine.events import Events, coalesce
from larksong.engine.parsing.stack import Branch, Reading


class Held(NamedTuple):
    """Events of one reading, newest first."""

    earlier: Held | None
    events: Events


Readings = Mapping[Reading, Held | None]
"""What each reading holds."""


def choose(held: Readings, certain: Events, branches: tuple[Branch, ...]) -> tuple[Readings, Events]:
    """The readings after a step, and what it makes certain; none are left where one remains."""
    following: dict[Reading, Held | None] = {}
    for before, after, events in branches:
        if after not in following:
            earlier = held.get(before)
            following[after] = Held(earlier, events) if events else earlier
    if len(following) > 1:
        return following, certain
    (left,) = following.values()
    collected: list[Events] = []
    while left is not None:
        collected.append(left.events)
        left = left.earlier
    return {}, coalesce([*certain, *(event for events in reversed(collected) for event in events)])
