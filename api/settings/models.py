"""Settings → the model that they name."""

from __future__ import annotations

from pathlib import Path

from larksong.api.settings.settings import Settings
from larksong.api.turns.compat_formats import require_compat
from larksong.api.turns.model import Model
from larksong.engine.backends.base import Backend
from larksong.engine.backends.errors import BackendUnavailable
from larksong.engine.backends.model_store import DEFAULT_MODEL, find_model
from larksong.grammars import wire_format


def load_model(settings: Settings) -> Model:
    """The model, ready to serve; takes seconds, the first time longer. Raises UnknownFormat, NoCompat,
    ModelError.
    """
    check_model(settings)
    format = wire_format(settings.format)
    model = Model(
        _backend(settings),
        format,
        name=settings.served_name,
        finish_within_budget=settings.finish_within_budget,
        forced_tokens=settings.forced_tokens,
        schemas=settings.schema_policy(),
        compat=settings.compat is not None,
    )
    model.warm_up()
    return model


def check_model(settings: Settings) -> None:
    """What can be known at once: importing torch only to learn of a typing error would be a pity. Raises
    UnknownFormat, NoCompat, ModelError.
    """
    format = wire_format(settings.format)
    if settings.compat is not None:
        require_compat(format.name)
    if settings.model != DEFAULT_MODEL and not Path(settings.model).expanduser().exists():
        find_model(settings.model)  # which says so


def _backend(settings: Settings) -> Backend:
    # torch takes seconds to import, and other backends do without it.
    if settings.backend == "transformers":
        from larksong.engine.backends.transformers import TransformersBackend

        return TransformersBackend.load(settings.model)
    try:
        from larksong.engine.backends.exllamav3.backend import ExllamaV3Backend
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            "exllamav3", f"{error.name} is not installed: pip install 'larksong[exllamav3]'"
        ) from error
    except (OSError, RuntimeError) as error:  # it builds its extension when it is imported
        raise BackendUnavailable("exllamav3", str(error)) from error
    return ExllamaV3Backend.load(settings.model, settings.exllamav3())
