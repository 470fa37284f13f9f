"""The turns that the server runs, for those who want to look on."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from larksong.api.inspector.schemas import LiveShape
from larksong.api.turns.model import Model
from larksong.api.turns.turn import Cut, TurnPlan, Watch
from larksong.engine.backends.base import Finish, Step

KEPT = 32
"""turns that are listed, the last ones"""


@dataclass
class LiveTurn:
    """A turn as far as it has come."""

    model: Model
    format: str
    plan: TurnPlan
    id: str = field(default_factory=lambda: secrets.token_urlsafe(8))
    began: float = field(default_factory=time.time)
    tokens: list[int] = field(default_factory=list)
    ended: str | None = None

    def shape(self) -> LiveShape:
        """As the page lists it."""
        return {
            "id": self.id,
            "began": self.began,
            "model": self.model.name,
            "format": self.format,
            "tools": [tool.name for tool in self.plan.tools[:20]],
            "tokens": len(self.tokens),
            "ended": self.ended,
        }


class LiveTurns:
    """The last turns. What they read and wrote stays in memory until others take their place."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._turns: OrderedDict[str, LiveTurn] = OrderedDict()

    def follow(self, model: Model, format: str, plan: TurnPlan, watch: Watch) -> Watch:
        """A watcher of a turn of this model that also keeps its tokens."""
        turn = LiveTurn(model, format, plan)
        self._turns[turn.id] = turn
        while len(self._turns) > self._kept:
            self._turns.popitem(last=False)

        def both(item: Step | Finish | Cut) -> None:
            if isinstance(item, Step):
                turn.tokens.append(item.token)
            else:
                turn.ended = item.reason if isinstance(item, Finish) else item
            watch(item)

        return both

    def all(self) -> list[LiveTurn]:
        """The last turns, the newest first."""
        return list(reversed(self._turns.values()))

    def get(self, id: str) -> LiveTurn | None:
        """One of them."""
        return self._turns.get(id)
