"""Measurements that need a process of their own: `python -m benchmarks.X` prints one JSON object."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def run(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run `benchmarks.<module>` and read what it prints. Raises CalledProcessError."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=ROOT,
        env=None if env is None else dict(env),
        stdout=subprocess.PIPE,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
