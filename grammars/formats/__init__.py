"""The wire formats, one module each. `FORMAT`, or `FORMATS` for several, is all that makes it a format."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from larksong.grammars.errors import UnknownFormat
from larksong.grammars.wire.wire_format import WireFormat


@cache
def _formats() -> dict[str, WireFormat]:
    found: dict[str, WireFormat] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        formats = getattr(module, "FORMATS", None) or (module.FORMAT,)
        found |= {wire_format.name: wire_format for wire_format in formats}
    return dict(sorted(found.items()))


@cache
def _aliases() -> dict[str, WireFormat]:
    return {alias: each for each in _formats().values() for alias in each.aliases}


def format_names() -> tuple[str, ...]:
    """The names of all wire formats, without their aliases."""
    return tuple(_formats())


def wire_format(name: str) -> WireFormat:
    """The wire format of this name or alias; `UnknownFormat` lists the names that there are."""
    try:
        return _formats()[name] if name in _formats() else _aliases()[name]
    except KeyError:
        raise UnknownFormat(name, format_names()) from None
