"""The wire formats that there are: Larksong's own, those of files, those of installed distributions."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import sys
import traceback
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from larksong.grammars import formats
from larksong.grammars.errors import BrokenFormat, UnknownFormat
from larksong.grammars.wire.wire_format import WireFormat

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "larksong.formats"
"""the group of entry points by which a distribution offers formats"""

log = logging.getLogger(__name__)
_of_files: dict[Path, WireFormat] = {}


def format_names() -> tuple[str, ...]:
    """The names of all wire formats, without their aliases."""
    return tuple(sorted({*_by_name(_built_in()), *_by_name(_of_files.values()), *_installed()[0]}))


def wire_format(name: str) -> WireFormat:
    """The wire format of this name or alias; `UnknownFormat` lists the names that there are."""
    own = (*_built_in(), *_of_files.values())
    found = _by_name(own).get(name) or _by_alias(own).get(name)
    if found is None:
        usable, broken = _installed()
        found = usable.get(name) or _by_alias(usable.values()).get(name)
        if found is None and name in broken:
            raise broken[name]
    if found is None:
        raise UnknownFormat(name, format_names())
    return found


def add_format_file(path: Path | str) -> WireFormat:
    """Add the format that a Python file defines as `FORMAT`. Raises `BrokenFormat`."""
    path = Path(path)
    file = path.expanduser().resolve()
    if file not in _of_files:
        found = _only_format(_run(path, file), str(path))
        _refuse(found, _taken((*_built_in(), *_of_files.values())), str(path))
        _refuse_installed(found, str(path))
        _of_files[file] = found
    return _of_files[file]


def _by_name(found: Any) -> dict[str, WireFormat]:
    return {each.name: each for each in found}


def _by_alias(found: Any) -> dict[str, WireFormat]:
    return {alias: each for each in found for alias in each.aliases}


def _taken(found: Any) -> set[str]:
    return {*_by_name(found), *_by_alias(found)}


# -- Larksong's own


@cache
def _built_in() -> tuple[WireFormat, ...]:
    found: list[WireFormat] = []
    for info in pkgutil.iter_modules(formats.__path__):
        module = importlib.import_module(f"{formats.__name__}.{info.name}")
        found += getattr(module, "FORMATS", None) or (module.FORMAT,)
    return tuple(found)


# -- files


def _run(path: Path, file: Path) -> ModuleType:
    if file.is_dir():
        raise BrokenFormat(f"{path}: it is a directory")
    if not file.is_file():
        raise BrokenFormat(f"{path}: there is no such file")
    name = f"larksong_format_file_{len(_of_files)}_{file.stem}"
    spec = spec_from_loader(name, SourceFileLoader(name, str(file)))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BrokenFormat(f"{path}{_line(error, file)}: {_said(error)}") from error
    return module


def _line(error: BaseException, file: Path) -> str:
    """The line of a file at which it failed, where that is known."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return f", line {lines[-1]}" if lines else ""


# -- installed distributions


@cache
def _entries() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # takes a while, and most processes need none of them

    return tuple(sorted(entry_points(group=GROUP), key=lambda entry: entry.name))


@cache
def _installed() -> tuple[dict[str, WireFormat], dict[str, BrokenFormat]]:
    """The formats of distributions by name, and why those that cannot be used cannot."""
    usable: dict[str, WireFormat] = {}
    broken: dict[str, BrokenFormat] = {}
    for entry in _entries():
        whose = f"the distribution {entry.dist.name}" if entry.dist is not None else "a distribution"
        what = f"the wire format {entry.name!r} of {whose}"
        try:
            found = _loaded(entry, what)
            _refuse(found, _taken((*_built_in(), *usable.values())), what)
            if found.name != entry.name:
                raise BrokenFormat(
                    f"{what}: its name is {found.name!r}, which the entry point must have, too"
                )
        except BrokenFormat as error:
            # One that cannot be used does not keep anybody from the others.
            log.warning("%s", error)
            broken[entry.name] = error
        else:
            usable[found.name] = found
    return usable, broken


def _loaded(entry: EntryPoint, what: str) -> WireFormat:
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:
        raise BrokenFormat(f"{what} cannot be loaded: {_place(error)}{_said(error)}") from error
    return _only_format(found, what) if isinstance(found, ModuleType) else _checked(found, what)


def _place(error: BaseException) -> str:
    """The file and line at which a distribution's module failed, where it got so far."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__ and "importlib" not in frame.filename]
    return f"{own[-1].filename}, line {own[-1].lineno}: " if own else ""


# -- what is wrong with one


def _only_format(module: ModuleType, what: str) -> WireFormat:
    if not hasattr(module, "FORMAT") and hasattr(module, "FORMATS"):
        raise BrokenFormat(f"{what}: it defines FORMATS; one FORMAT a file")
    if not hasattr(module, "FORMAT"):
        raise BrokenFormat(f"{what}: it defines no FORMAT")
    return _checked(module.FORMAT, what)


def _checked(found: Any, what: str) -> WireFormat:
    from larksong.grammars.wire.check import flaw_of  # it needs an engine, and Larksong's own need no check

    if not isinstance(found, WireFormat):
        given = f"a class: write {found.__name__}()" if isinstance(found, type) else repr(found)
        raise BrokenFormat(f"{what}: FORMAT must be an object of a subclass of WireFormat, not {given}")
    try:
        flaw = flaw_of(found)
    except Exception as error:
        raise BrokenFormat(f"{what}: {_said(error)}") from error
    if flaw:
        raise BrokenFormat(f"{what}: {flaw}")
    return found


def _refuse(found: WireFormat, taken: set[str], what: str) -> None:
    for name in (found.name, *found.aliases):
        if name in taken:
            raise BrokenFormat(f"{what}: another wire format has the name {name!r} already; choose another")


def _refuse_installed(found: WireFormat, what: str) -> None:
    for entry in _entries():
        if entry.name in (found.name, *found.aliases):
            whose = f"the installed distribution {entry.dist.name}" if entry.dist else "a distribution"
            raise BrokenFormat(
                f"{what}: {whose} has the wire format {entry.name!r} already: "
                "uninstall it or leave out the file"
            )


def _said(error: BaseException) -> str:
    """An exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
