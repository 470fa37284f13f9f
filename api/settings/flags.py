"""The settings as flags of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from larksong.api.settings.command_errors import fail, fail_validation
from larksong.api.settings.exllamav3_settings import ExllamaV3Fields
from larksong.api.settings.schema_settings import SchemaFields
from larksong.api.settings.settings import PREFIX, Settings, SettingsFileError, sources
from larksong.grammars import BrokenFormat, add_format_file

_PANELS: dict[str, type[BaseSettings]] = {
    "With --backend exllamav3": ExllamaV3Fields,
    "Schemas": SchemaFields,
}


def load_settings(**flags: Any) -> Settings:
    """The settings with the flags that were given. What is wrong ends the command.

    The wire formats of files are known from then on, where the command has `format_file`, given or not.
    """
    given = {name: value for name, value in flags.items() if value not in (None, [])}
    try:
        settings = Settings.load(**given)
        for file in settings.format_file if "format_file" in flags else ():
            add_format_file(file)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        source = f" ({sources(given)(name)})" if name else ""
        if first["type"] == "extra_forbidden":
            fail(f"{name} is no setting{source}{_meant(name)}")
        fail_validation(error, note=source)
    except (SettingsFileError, BrokenFormat) as error:
        fail(str(error))
    return settings


def _meant(name: str) -> str:
    near = get_close_matches(name, Settings.model_fields, 1)
    return f"; did you mean {near[0]}?" if near else "; `larksong config` lists them"


def option(field: str, *names: str) -> Any:
    """The flag of a setting; what its help says comes from the setting. `names`: instead of its own."""
    info = Settings.model_fields[field]
    default = False if info.default in (None, ()) else str(info.default)
    return typer.Option(
        *names,
        help=f"{info.description} [env var: {PREFIX}{field.upper()}]",
        show_default=default,
        show_envvar=False,
        rich_help_panel=next(
            (panel for panel, fields in _PANELS.items() if field in fields.model_fields), None
        ),
    )


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes every setting as a flag; those that were not given are None."""
    return _taking(command, _parameters(Settings.model_fields))


def with_schema_settings(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the settings of schemas, which it gets as `schemas`, and --format-file besides."""
    fields = (*SchemaFields.model_fields, "format_file")

    @wraps(command)
    def run(**values: Any) -> None:
        flags = {name: values.pop(name) for name in fields}
        command(**values, schemas=load_settings(**flags).schema_policy())

    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "schemas"
    ]
    return _taking(run, [*own, *_parameters(fields)])


def _parameters(fields: Iterable[str]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                _kind(Settings.model_fields[name].annotation) | None,
                option(name, *_NAMES.get(name, ())),
            ],
        )
        for name in fields
    ]


def _kind(annotation: Any) -> Any:
    """What typer reads a flag as. None is one that is not given; the settings read other kinds from text."""
    if get_origin(annotation) is tuple:
        return list[get_args(annotation)[0]]  # type: ignore[misc]  # a flag that may be given several times
    kinds = {*(get_args(annotation) or [annotation])} - {type(None)}
    kind = kinds.pop() if len(kinds) == 1 else str
    return kind if kind in (bool, int, float, Path) else str


_NAMES = {"schema_formats": ("--schema-formats/--no-schema-formats", "--formats/--no-formats")}
"""flags with more than one name"""


def _taking(command: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
