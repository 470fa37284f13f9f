"""The model that a command names; what is wrong with it ends the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from larksong.api.settings.command_errors import fail
from larksong.api.settings.models import check_model, load_model
from larksong.api.settings.settings import Settings
from larksong.api.turns.compat_formats import NoCompat
from larksong.api.turns.model import Model
from larksong.engine.backends.errors import ModelError
from larksong.grammars import UnknownFormat


def checked(settings: Settings) -> None:
    """See whether there is such a model, without loading it."""
    with _told():
        check_model(settings)


def loaded(settings: Settings) -> Model:
    """The model that the settings name."""
    with _told():
        return load_model(settings)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (ModelError, UnknownFormat, NoCompat) as error:
        fail(str(error))
