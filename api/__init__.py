"""The server: OpenAI shapes over HTTP, the command line, the demo; and a filter for exllamav3 programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larksong.api.exllamav3 import DeltaStream, LarksongFilter

__all__ = ["DeltaStream", "LarksongFilter"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # made on demand: exllamav3 is not everywhere
        from larksong.api import exllamav3

        return getattr(exllamav3, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
