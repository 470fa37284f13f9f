"""Python's garbage collector in a process that serves."""

from __future__ import annotations

import gc

_THRESHOLDS = (10_000, 50, 100)


def settle_down() -> None:
    """Pass over all that lives now, and look through what comes later less often.

    Automata are many small objects that live long. With Python's thresholds nearly a fifth of the time of
    `make bench-maskbench` went into looking through them, and the slowest first masks were those during
    which that happened.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
