"""What commands share: settings from flags, the model that they name, errors as one line and status 2."""

from __future__ import annotations

from typing import Any, NoReturn

import typer
from pydantic import ValidationError

from larksong.api.compat import NoCompat
from larksong.api.errors import field_path
from larksong.api.generation import Model
from larksong.api.models import load_model
from larksong.api.settings import Settings, SettingsFileError
from larksong.engine.backends.errors import ModelError
from larksong.grammars import UnknownFormat


def settings_of(**flags: Any) -> Settings:
    """The settings with the flags that were given."""
    try:
        return Settings.load(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        fail_validation(error)
    except SettingsFileError as error:
        fail(str(error))


def loaded(settings: Settings) -> Model:
    """The model that the settings name."""
    try:
        return load_model(settings)
    except (ModelError, UnknownFormat, NoCompat) as error:
        fail(str(error))


def fail_validation(error: ValidationError) -> NoReturn:
    """End with the first fault and its place."""
    first = error.errors()[0]
    place = field_path(first["loc"])
    fail(f"{place}: {first['msg']}" if place else first["msg"])


def fail(message: str) -> NoReturn:
    """End with this sentence."""
    typer.echo(f"larksong: {message}", err=True)
    raise typer.Exit(2)
