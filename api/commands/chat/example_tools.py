"""The tools of `larksong chat` without `--tools`; a file of one's own looks the same."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, Any

from pydantic import Field


def roll_dice(
    count: Annotated[int, Field(ge=1, le=20, description="How many dice")],
    sides: Annotated[int, Field(ge=2, le=100, description="Sides of each die")] = 6,
) -> list[int]:
    """Roll some dice and tell what each shows."""
    return [random.randint(1, sides) for _ in range(count)]


def current_time(
    hours_from_utc: Annotated[int, Field(ge=-12, le=14, description="Offset of the place from UTC")] = 0,
) -> str:
    """The date and time of day, now."""
    return datetime.now(timezone(timedelta(hours=hours_from_utc))).isoformat(timespec="minutes")


def weekday(day: Annotated[date, Field(description="A date, as 2026-02-28")]) -> str:
    """The day of the week of a date."""
    return day.strftime("%A")


QUESTION = "Roll three dice with 8 sides."

TOOLS = [roll_dice, current_time, weekday]

_CALL = {"name": "roll_dice", "arguments": '{"count": 2, "sides": 6}'}
# So small a model as the default one needs to see once how it is done.
EARLIER: list[dict[str, Any]] = [
    {"role": "user", "content": "Roll two dice."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_earlier", "type": "function", "function": _CALL}],
    },
    {"role": "tool", "tool_call_id": "call_earlier", "content": "[3,5]"},
    {"role": "assistant", "content": "The dice show 3 and 5."},
]
