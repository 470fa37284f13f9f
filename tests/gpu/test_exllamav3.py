"""exllamav3 on a GPU: `pytest -m gpu`, under 8 minutes once exllamav3 has built its extension.

Results as JSON go to the file that `LARKSONG_GPU_RESULTS` names, or to `build/gpu_results.json`.
`LARKSONG_EXL3_MODEL` names the folder of an EXL3 model to check beside the random one.
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

# The limit is that of the checks: exllamav3 compiles its extension when it is first imported.
pytestmark = [pytest.mark.gpu, pytest.mark.timeout(480, func_only=True)]

ROOT = Path(__file__).parents[2]
RESULTS = Path(os.environ.get("LARKSONG_GPU_RESULTS") or ROOT / "build" / "gpu_results.json")


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no NVIDIA GPU")
    if importlib.util.find_spec("exllamav3") is None:
        pytest.skip("exllamav3 is not installed: pip install 'larksong[exllamav3]'")
    run("-c", "import exllamav3")


def run(*arguments: str) -> None:
    # A process of its own: other tests may have put a stand-in in the place of exllamav3's extension.
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"python {' '.join(arguments)}\n{done.stderr[-3000:]}", pytrace=False)


def checked(folder: Path, name: str, results: Path) -> dict[str, Any]:
    run("-m", "tests.gpu.checks", str(folder), str(results), "--device", "cuda:0")
    found: dict[str, Any] = json.loads(results.read_text())
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    RESULTS.write_text(json.dumps({**known, name: found}, indent=2))
    print(json.dumps({name: found}, indent=2))
    return found


def hold(results: dict[str, Any], gain: float) -> None:
    assert results["masks"]["tokens"] >= 20_000
    assert results["masks"]["violations"] == 0
    forced = results["forced"]
    assert forced["finished"] == forced["runs"], forced
    assert forced["same_tokens"] >= forced["runs"] - 1, forced
    assert forced["fewer_passes"] >= gain, forced
    for batch, found in results["filter"].items():
        assert found["ratio"] >= 0.97, (batch, found)


def test_a_random_model(tmp_path: Path) -> None:
    model = write_random_model(tmp_path / "random")
    # It spells forced text in any tokens, so drafts of it gain nothing that could be relied on.
    hold(checked(model, "random", tmp_path / "results.json"), gain=0)


def test_the_model_of_the_environment(tmp_path: Path) -> None:
    folder = os.environ.get("LARKSONG_EXL3_MODEL")
    if not folder:
        pytest.skip("LARKSONG_EXL3_MODEL does not name a model's folder")
    model = Path(folder).expanduser()
    hold(checked(model, model.name, tmp_path / "results.json"), gain=0.3)
