"""Python's garbage collector in a process that serves."""

from __future__ import annotations

import atexit
import gc

_THRESHOLDS = (10_000, 50, 100)


def settle_down() -> None:
    """Pass over all that lives now, and look through what comes later less often.

    Automata are many small objects that live long. With Python's thresholds the slowest first masks are those
    during which all of them are looked through (`make bench-maskbench`).
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # at the end all may go: libraries complain of what is left over
    gc.set_threshold(*_THRESHOLDS)
