"""What stands for the compiled extension `exllamav3_ext`: known names work, all others raise when called."""

from __future__ import annotations

import importlib.machinery
from types import ModuleType
from typing import Any, NoReturn

from tests.exllamav3.stand_in import host, sampling

# Read, not called, when the package is imported; a longer list means that its import has changed.
READ_AT_IMPORT = ("gelu_mul", "relu2_mul", "relu_mul", "silu_mul", "silu_oai_mul")


class Missing:
    """A symbol that only the compiled extension has."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"exllamav3_ext.{self.name} needs the compiled extension")


class Extension(ModuleType):
    """The module; `asked` are the names that were looked up in vain."""

    def __init__(self) -> None:
        super().__init__("exllamav3_ext")
        # The package takes a module with such an origin for a compiled one, and does not build its own.
        origin = f"exllamav3_ext{importlib.machinery.EXTENSION_SUFFIXES[0]}"
        self.__spec__ = importlib.machinery.ModuleSpec("exllamav3_ext", _Loader(), origin=origin)
        self.asked: set[str] = set()
        for part in (host, sampling):
            for name in part.EXPORTS:
                setattr(self, name, getattr(part, name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("HAS_"):
            return False
        self.asked.add(name)
        return Missing(name)


class _Loader(importlib.machinery.BuiltinImporter):
    """Only there: a spec without a loader is none."""
