"""The program of the GPU tests, in small and without a GPU: that it runs, and what it counts."""

from __future__ import annotations

from pathlib import Path

from tests.gpu.checks import Checks


def test_the_checks_run_and_count(folder: Path) -> None:
    found = Checks(folder, size=0.02, runs=1, device="cpu").run()
    assert found["masks"] == {"tokens": 400, "violations": 0}
    assert found["forced"]["same_tokens"]
    assert found["forced"]["fewer_passes"] >= 0
    assert set(found["filter"]) == {"1", "16"}
