"""The model that a command names."""

from __future__ import annotations

from larksong.api.command_errors import fail
from larksong.api.compat import NoCompat
from larksong.api.generation import Model
from larksong.api.models import load_model
from larksong.api.settings import Settings
from larksong.engine.backends.errors import ModelError
from larksong.grammars import UnknownFormat


def loaded(settings: Settings) -> Model:
    """The model that the settings name; ends the command where it cannot be loaded."""
    try:
        return load_model(settings)
    except (ModelError, UnknownFormat, NoCompat) as error:
        fail(str(error))
