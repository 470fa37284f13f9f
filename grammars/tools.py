"""What a request asks for: its tools, and how many calls of which it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tool:
    """A function that the model may call; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CallPolicy:
    """How many calls a turn may have, and whether other text may come before them.

    `required`: the turn consists of calls. `only`: the name of the one tool that may be called.
    """

    required: bool = False
    min_calls: int = 0
    max_calls: int | None = None
    only: str | None = None
