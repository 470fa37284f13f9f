"""The program of the GPU tests, in small and without a GPU: that it runs, and what it counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gpu.checks import Checks
from tests.gpu.model import write_random_model
from tests.gpu.test_exllamav3 import hold


def test_the_checks_run_and_count(tmp_path: Path) -> None:
    """Over the random model's own folder; only its weights are not looked at."""
    checks = Checks(write_random_model(tmp_path / "random", layers=2), size=0.02, runs=1, device="cpu")
    found = checks.run()
    assert found["masks"] == {"tokens": 400, "violations": 0}
    assert found["forced"]["same_tokens"] == found["forced"]["finished"] == found["forced"]["runs"] == 1
    assert found["forced"]["fewer_passes"] >= 0
    assert set(found["filter"]) == {"1", "16"}
    assert all(each["with"] > 0 and each["without"] > 0 for each in found["filter"].values())


GOOD = {
    "masks": {"tokens": 20_000, "violations": 0},
    "filter": {"1": {"ratio": 0.99}, "16": {"ratio": 0.97}},
    "forced": {"runs": 5, "same_tokens": 5, "finished": 5, "fewer_passes": 0.4},
}


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("masks", {"tokens": 20_000, "violations": 1}),
        ("masks", {"tokens": 19_999, "violations": 0}),
        ("filter", {"1": {"ratio": 0.96}, "16": {"ratio": 1.0}}),
        ("filter", {"1": {"ratio": 1.0}, "16": {"ratio": 0.96}}),
        ("forced", {"runs": 5, "same_tokens": 3, "finished": 5, "fewer_passes": 0.4}),
        ("forced", {"runs": 5, "same_tokens": 5, "finished": 5, "fewer_passes": 0.2}),
        ("forced", {"runs": 5, "same_tokens": 5, "finished": 4, "fewer_passes": 0.4}),
    ],
)
def test_each_of_the_checks_can_fail(part: str, values: dict[str, Any]) -> None:
    hold(GOOD, gain=0.3)
    with pytest.raises(AssertionError):
        hold({**GOOD, part: values}, gain=0.3)
