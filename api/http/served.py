"""What the routes of a server share: its models, limits and figures."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from larksong.api.errors import UnknownModel
from larksong.api.http.admission import Admission
from larksong.api.http.metrics import Metrics
from larksong.api.runtime.shutdown import Shutdown
from larksong.api.settings.settings import Settings
from larksong.api.turns.chat_template import ChatMessage
from larksong.api.turns.model import Model
from larksong.api.turns.observer import TurnObserver

_logger = logging.getLogger(__name__)


@dataclass
class Served:
    """The models by name, and the settings that hold for all of them."""

    models: dict[str, Model]
    settings: Settings
    metrics: Metrics
    admission: Admission
    shutdown: Shutdown
    started: int = field(default_factory=lambda: int(time.time()))
    observer: TurnObserver | None = None

    @classmethod
    def of(cls, models: Sequence[Model], settings: Settings) -> Served:
        """Everything for these models."""
        return cls(
            {model.name: model for model in models},
            settings,
            Metrics(settings.low_mass),
            Admission(settings.max_running, settings.max_waiting),
            Shutdown(settings.shutdown_seconds),
        )

    def model(self, name: str) -> Model:
        """The model of this name. Raises UnknownModel."""
        if name not in self.models:
            raise UnknownModel(name, self.models)
        return self.models[name]

    def log_prompt(self, messages: Sequence[ChatMessage] | str) -> None:
        """Log what was asked, where the settings want that."""
        if self.settings.log_prompts:
            _logger.info("prompt", extra={"fields": {"prompt": messages}})
