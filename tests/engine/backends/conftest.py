"""A tiny model and its backend, made once a run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.transformers import TransformersBackend
from tests.support.tiny_model import write_tiny_model


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def tiny_model(tiny_folder: Path) -> ModelFolder:
    return ModelFolder.open(tiny_folder)


@pytest.fixture(scope="session")
def tiny_backend(tiny_folder: Path) -> Iterator[TransformersBackend]:
    backend = TransformersBackend.load(tiny_folder, device="cpu", threads=1)
    yield backend
    backend.close()
