"""The model that a command names."""

from __future__ import annotations

from larksong.api.settings.command_errors import fail
from larksong.api.settings.models import load_model
from larksong.api.settings.settings import Settings
from larksong.api.turns.compat import NoCompat
from larksong.api.turns.model import Model
from larksong.engine.backends.errors import ModelError
from larksong.grammars import UnknownFormat


def loaded(settings: Settings) -> Model:
    """The model that the settings name; ends the command where it cannot be loaded."""
    try:
        return load_model(settings)
    except (ModelError, UnknownFormat, NoCompat) as error:
        fail(str(error))
