"""Runs the notebook from top to bottom and keeps its outputs.

    make notebook

Times of the run and the release of Python are left out, so that a second run changes nothing. Pictures
that pages of docs/ show are kept as files, too.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "examples" / "grammar_debugging.ipynb"
PICTURES = ROOT / "docs" / "pictures"
KEPT = {"def strip(": ("freedom.png", "removed.png")}
"""by a word of the cell: the files of its pictures"""


def run(notebook: Any, timeout: int = 170) -> Any:
    """The notebook with the outputs of this run. Raises nbclient's CellExecutionError."""
    NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(ROOT)}},
    ).execute()
    notebook.metadata.get("language_info", {}).pop("version", None)
    return notebook


def main() -> None:
    """Run it and write it back."""
    notebook = run(nbformat.read(NOTEBOOK, 4))
    nbformat.write(notebook, NOTEBOOK)
    for word, names in KEPT.items():
        (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and word in cell.source)
        drawn = [each["data"]["image/png"] for each in cell.outputs if "image/png" in each.get("data", {})]
        for name, picture in zip(names, drawn, strict=True):
            (PICTURES / name).write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()
