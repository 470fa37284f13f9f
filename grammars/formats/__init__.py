"""The wire formats, one module each. A module has `FORMAT`; that is all that makes it a format."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from larksong.grammars.errors import UnknownFormat
from larksong.grammars.wire_format import WireFormat


@cache
def _formats() -> dict[str, WireFormat]:
    found = {}
    for module in pkgutil.iter_modules(__path__):
        wire_format: WireFormat = importlib.import_module(f"{__name__}.{module.name}").FORMAT
        found[wire_format.name] = wire_format
    return dict(sorted(found.items()))


def format_names() -> tuple[str, ...]:
    """The names of all wire formats."""
    return tuple(_formats())


def wire_format(name: str) -> WireFormat:
    """The wire format of this name; `UnknownFormat` lists the names that there are."""
    try:
        return _formats()[name]
    except KeyError:
        raise UnknownFormat(name, format_names()) from None
