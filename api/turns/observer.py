"""Who looks on at the turns that a server runs."""

from __future__ import annotations

from typing import Protocol

from larksong.api.turns.model import Model
from larksong.api.turns.turn import TurnPlan, Watch


class TurnObserver(Protocol):
    """Is told of every turn before it runs."""

    def follow(self, model: Model, format: str, plan: TurnPlan, watch: Watch) -> Watch:
        """What is called in place of `watch`, and calls it."""
