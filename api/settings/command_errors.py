"""How a command says that it cannot do what was asked: one line on standard error, exit status 2."""

from __future__ import annotations

from typing import NoReturn

import typer
from pydantic import ValidationError

from larksong.api.errors import field_path


def fail(message: str) -> NoReturn:
    """End the command with a sentence."""
    typer.echo(f"larksong: {message}", err=True)
    raise typer.Exit(2)


def fail_validation(error: ValidationError, where: str = "", note: str = "") -> NoReturn:
    """End the command with the first thing that is wrong, and where it stands, seen from `where`."""
    first = error.errors()[0]
    place = where + field_path(first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    fail(f"{place}: {said}{note}" if place else said)
