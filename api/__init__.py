"""The server: OpenAI shapes over HTTP, the command line, the demo; and a filter for exllamav3 programs.

Each name is imported when it is first asked for: a program that wants one of them does not wait for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larksong.api.exllamav3 import DeltaStream, LarksongFilter
    from larksong.api.offline.parse import TurnParser, filter_deltas
    from larksong.api.runtime.background import BackgroundServer
    from larksong.api.server import create_app
    from larksong.api.settings.settings import Settings
    from larksong.api.turns.accumulate import Accumulator, accumulate
    from larksong.api.turns.emitter import DeltaEmitter
    from larksong.api.turns.model import Model

__all__ = [
    "Accumulator",
    "BackgroundServer",
    "DeltaEmitter",
    "DeltaStream",
    "LarksongFilter",
    "Model",
    "Settings",
    "TurnParser",
    "accumulate",
    "create_app",
    "filter_deltas",
]

_MODULES = {
    "Accumulator": "turns.accumulate",
    "BackgroundServer": "runtime.background",
    "DeltaEmitter": "turns.emitter",
    "DeltaStream": "exllamav3",
    "LarksongFilter": "exllamav3",
    "Model": "turns.model",
    "Settings": "settings.settings",
    "TurnParser": "offline.parse",
    "accumulate": "turns.accumulate",
    "create_app": "server",
    "filter_deltas": "offline.parse",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
