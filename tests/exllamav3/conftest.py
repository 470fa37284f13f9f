"""The real package exllamav3 over the stand-in, and a small model folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exllamav3.stand_in import install

install()
pytest.register_assert_rewrite("tests.exllamav3.contract")

from tests.exllamav3.folder import write_folder  # noqa: E402
from tests.exllamav3.rig import Rig  # noqa: E402


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama without weights, with markers of its own and two end tokens."""
    return write_folder(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def rig(folder: Path) -> Iterator[Rig]:
    """A loaded model with a cache of 64 pages."""
    rig = Rig(folder)
    yield rig
    rig.close()
