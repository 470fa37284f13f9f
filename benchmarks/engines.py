"""The contenders by name, each imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.contender import Engine
from benchmarks.workload import Workload

NAMES = ("larksong", "llguidance", "xgrammar", "xgrammar, dynamic")


def factory(name: str) -> Callable[[Workload], Engine]:
    """Import an engine; what is returned starts it and does all that it does once a process."""
    if name == "larksong":
        from benchmarks.larksong_engine import Larksong

        return Larksong
    if name == "llguidance":
        from benchmarks.peers.llguidance import LLGuidance

        return LLGuidance
    if name in NAMES:
        from benchmarks.peers.xgrammar import XGrammar

        return partial(XGrammar, dynamic=name.endswith("dynamic"))
    raise ValueError(f"there is no engine {name!r}: {', '.join(NAMES)}")
