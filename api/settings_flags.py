"""The settings as flags of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from larksong.api.exllamav3_settings import ExllamaV3Fields
from larksong.api.settings import PREFIX, Settings

_KINDS: dict[Any, Any] = {bool: bool, int: int, float: float, float | None: float, Path | None: Path}


def option(field: str) -> Any:
    """The flag of a setting; what its help says comes from the setting."""
    info = Settings.model_fields[field]
    default = False if info.default is None else str(info.default)
    panel = "With --backend exllamav3" if field in ExllamaV3Fields.model_fields else None
    return typer.Option(
        help=f"{info.description} [env var: {PREFIX}{field.upper()}]",
        show_default=default,
        show_envvar=False,
        rich_help_panel=panel,
    )


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes every setting as a flag; those that were not given are None."""
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_KINDS.get(info.annotation, str) | None, option(name)],
        )
        for name, info in Settings.model_fields.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
