"""The notebook runs from top to bottom, and what it shows is what the repository does now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from larksong.engine.backends.model_folder import ModelFolder

nbclient = pytest.importorskip("nbclient", reason="needs pip install 'larksong[notebook]'")
nbformat = pytest.importorskip("nbformat", reason="needs pip install 'larksong[notebook]'")
ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "examples" / "grammar_debugging.ipynb"


def test_the_notebook_runs_and_its_outputs_are_committed(smollm2: ModelFolder) -> None:
    committed = nbformat.read(NOTEBOOK, 4)
    code = [cell for cell in committed.cells if cell.cell_type == "code"]
    assert all(cell.outputs and cell.execution_count for cell in code[1:])
    written = NOTEBOOK.read_text(encoding="utf-8")
    assert '"execution"' not in written  # times of the run
    assert str(ROOT) not in written
    notebook = nbformat.read(NOTEBOOK, 4)
    nbclient.NotebookClient(
        notebook, timeout=170, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    ).execute(env={**os.environ, "TOKENIZERS_PARALLELISM": "false"})
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert text(ran) == text(code)


def text(cells: list[Any]) -> list[str]:
    """What each cell prints; pictures and a model's figures differ from machine to machine."""
    printed = [
        "".join(
            output.get("text") or output.get("data", {}).get("text/markdown", "") for output in cell.outputs
        )
        for cell in cells
    ]
    return [each for each in printed if "probability removed" not in each and "without:" not in each]
