"""One CPU, one policy for the garbage collector, and a record of the machine and the versions."""

from __future__ import annotations

import gc
import logging
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

GC_POLICY = (
    "enabled while timing, default thresholds, as in a server; before every pass gc.collect(); "
    "after the warm-up gc.collect() and gc.freeze(); the same for all engines"
)
_PACKAGES = ("larksong", "lark", "numpy", "tokenizers", "llguidance", "xgrammar", "torch", "transformers")


def pin(cpu: int | None = None) -> int:
    """Keep this process and its children on one CPU: `cpu`, or the last one it may use."""
    chosen = max(os.sched_getaffinity(0)) if cpu is None else cpu
    os.sched_setaffinity(0, {chosen})
    return chosen


def raise_priority() -> int:
    """Run before what else the machine does, if that is allowed; returns the nice value that it came to."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    except PermissionError:
        log.warning("the priority cannot be raised: other processes will show in the times")
    return os.getpriority(os.PRIO_PROCESS, 0)


def settle() -> None:
    """Take what the warm-up made out of the collector's sight; later passes only pay for their own."""
    gc.collect()
    gc.freeze()


def describe(cpu: int) -> dict[str, Any]:
    """The machine and the software, for the record."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu_model(),
        "pinned_to": cpu,
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "gc": GC_POLICY,
    }


def rss() -> int:
    """Resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _commit() -> str | None:
    folder = Path(__file__).parent
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or None
