"""Puts the stand-in in place and imports exllamav3."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

import torch

from tests.exllamav3.stand_in.extension import Extension

VERSION = "1.6.5"


def install() -> ModuleType:
    """The package exllamav3, made to run on a CPU; the second time as it is."""
    known = sys.modules.get("exllamav3")
    if known is not None:
        return known
    sys.modules["exllamav3_ext"] = Extension()
    stubs = _triton_stubs() if importlib.util.find_spec("triton") is None else {}
    sys.modules.update(stubs)
    try:
        package = importlib.import_module("exllamav3")
        # It imports this when it loads the first model.
        importlib.import_module("exllamav3.architecture.architectures")
    finally:
        for name in stubs:  # other packages ask whether triton is there
            del sys.modules[name]
    for name in ("generator", "job"):
        module = importlib.import_module(f"exllamav3.generator.{name}")
        module.torch = _Torch()  # type: ignore[attr-defined]
    # A folder of a Llama gets the stand-in's model in place of the real one.
    from tests.exllamav3.stand_in.model import PrefixModel

    llama: Any = importlib.import_module("exllamav3.architecture.llama")
    PrefixModel.config_class = llama.LlamaConfig
    llama.LlamaModel = PrefixModel
    return package


class _Torch:
    """torch without pinned memory, and without waiting for a GPU."""

    class cuda:
        @staticmethod
        def synchronize(device: Any = None) -> None:
            pass

    @staticmethod
    def empty(*args: Any, pin_memory: bool = False, **kwargs: Any) -> torch.Tensor:
        return torch.empty(*args, **kwargs)

    @staticmethod
    def zeros(*args: Any, pin_memory: bool = False, **kwargs: Any) -> torch.Tensor:
        return torch.zeros(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


class _Stub(ModuleType):
    """A module whose attributes may be called, subscripted and used as decorators, to no effect."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        self.__path__ = []
        self.__version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()


class _Nothing:
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]  # a decorator gives the function back
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self


def _triton_stubs() -> dict[str, ModuleType]:
    names = ("triton", "triton.language", "triton.language.extra", "triton.language.extra.libdevice")
    stubs: dict[str, ModuleType] = {name: _Stub(name) for name in (*names, "triton.runtime")}
    for name, stub in stubs.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(stubs[parent], child, stub)
    return stubs
