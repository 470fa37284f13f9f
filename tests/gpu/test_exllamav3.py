"""exllamav3 on a GPU: `pytest -m gpu`, under 8 minutes once exllamav3 has built its extension.

Results as JSON go to the file that `LARKSONG_GPU_RESULTS` names, else they are printed. `LARKSONG_EXL3_MODEL`
names the folder of an EXL3 model to check beside the random one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.model import write_random_model

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no NVIDIA GPU")
    if importlib.util.find_spec("exllamav3") is None:
        pytest.skip("exllamav3 is not installed: pip install 'larksong[exllamav3]'")


def checked(folder: Path, name: str) -> dict[str, Any]:
    # A process of its own: other tests may have put a stand-in in the place of exllamav3's extension.
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu.checks", str(folder), "--device", "cuda:0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    if file := os.environ.get("LARKSONG_GPU_RESULTS"):
        path = Path(file)
        known = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**known, name: results}, indent=2))
    else:
        print(json.dumps({name: results}, indent=2))
    return results


def hold(results: dict[str, Any], gain: float) -> None:
    assert results["masks"]["tokens"] >= 20_000
    assert results["masks"]["violations"] == 0
    assert results["forced"]["same_tokens"]
    assert results["forced"]["fewer_passes"] >= gain
    for batch, found in results["filter"].items():
        assert found["ratio"] >= 0.97, (batch, found)


def test_a_random_model(tmp_path: Path) -> None:
    hold(
        checked(write_random_model(tmp_path / "random"), "random"), gain=0
    )  # it spells forced text in any tokens


def test_the_model_of_the_environment() -> None:
    folder = os.environ.get("LARKSONG_EXL3_MODEL")
    if not folder:
        pytest.skip("LARKSONG_EXL3_MODEL does not name a model's folder")
    hold(checked(Path(folder), Path(folder).name), gain=0.3)
