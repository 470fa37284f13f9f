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
# Figures of the model are not compared, and a small one with random weights has some in no time.
SMALL_MODEL = """\
import transformers

def small_model(folder, **ignored):
    config = transformers.AutoConfig.from_pretrained(folder)
    config.update({"hidden_size": 18, "intermediate_size": 32, "num_hidden_layers": 1})
    return transformers.AutoModelForCausalLM.from_config(config)

transformers.AutoModelForCausalLM.from_pretrained = small_model
"""


def ran(before: str) -> tuple[list[Any], list[Any]]:
    """The code cells as they were committed, and as they are when they are run after the program `before`."""
    committed, notebook = (nbformat.read(NOTEBOOK, 4) for _ in range(2))
    notebook.cells.insert(0, nbformat.v4.new_code_cell(before))
    nbclient.NotebookClient(
        notebook, timeout=170, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    ).execute(env={**os.environ, "TOKENIZERS_PARALLELISM": "false"})
    as_committed, now = (
        [cell for cell in each.cells if cell.cell_type == "code"] for each in (committed, notebook)
    )
    return as_committed, now[1:]


def test_the_notebooks_outputs_are_committed() -> None:
    code = [cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code"]
    assert all(cell.outputs and cell.execution_count for cell in code[1:])
    written = NOTEBOOK.read_text(encoding="utf-8")
    assert '"execution"' not in written  # times of the run
    assert str(ROOT) not in written


def test_the_notebook_runs_and_shows_what_it_did(smollm2: ModelFolder) -> None:
    committed, now = ran(SMALL_MODEL)
    assert text(now) == text(committed)


@pytest.mark.model
def test_it_runs_with_the_real_model(smollm2: ModelFolder) -> None:
    committed, now = ran("")
    assert text(now) == text(committed)


def text(cells: list[Any]) -> list[str]:
    """What each cell prints; pictures and a model's figures differ from machine to machine."""
    printed = [
        "".join(
            output.get("text") or output.get("data", {}).get("text/markdown", "") for output in cell.outputs
        )
        for cell in cells
    ]
    return [each for each in printed if "probability removed" not in each and "without:" not in each]
