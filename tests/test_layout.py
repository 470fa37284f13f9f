"""What each package ships and what of the world outside it may know; who imports whom is in test_imports.py."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.imports import top_level_names

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "grammars", "api")
BACKENDS = ROOT / "engine" / "backends"
MODEL_LIBRARIES = {"torch", "transformers", "gguf", "safetensors", "exllamav3", "formatron", "kbnf"}
WEB_LIBRARIES = {"fastapi", "starlette", "sse_starlette", "uvicorn", "httpx", "openai", "typer", "pydantic"}
FORMATS = {"hermes", "qwen3_coder", "harmony"}
# What is a model library's own: these modules cannot be imported without it.
OVER_MODEL_LIBRARIES = {
    "api/exllamav3.py",
    "engine/backends/transformers.py",
    *(
        f"engine/backends/exllamav3/{name}.py"
        for name in ("backend", "drafts", "filter", "others", "samplers", "sequence", "worker")
    ),
}
CODE = (".py", ".pyc")


def modules(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


def test_every_package_is_shipped_with_its_data() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    on_disk = {
        "larksong." + ".".join(file.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for file in (ROOT / package).rglob("__init__.py")
    }
    assert set(settings["packages"]) == on_disk
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").is_file()
        shipped = {
            file
            for name, patterns in settings["package-data"].items()
            for pattern in patterns
            for file in ROOT.joinpath(*name.split(".")[1:]).glob(pattern)
        }
        data = {file for file in (ROOT / package).rglob("*") if file.is_file() and file.suffix not in CODE}
        assert data <= shipped


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_no_model_library(package: str) -> None:
    names = [
        ".".join(("larksong", *file.relative_to(ROOT).with_suffix("").parts))
        for file in modules(package)
        if file.relative_to(ROOT).as_posix() not in OVER_MODEL_LIBRARIES
    ]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(sorted({MODEL_LIBRARIES!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["engine", "grammars"])
def test_nothing_below_the_api_knows_of_http(package: str) -> None:
    for file in modules(package):
        assert not WEB_LIBRARIES & top_level_names(file), file


def test_the_engine_knows_no_model_libraries() -> None:
    for file in modules("engine"):
        if BACKENDS not in file.parents:
            assert not MODEL_LIBRARIES & top_level_names(file), file


def test_the_engine_knows_no_wire_formats_name() -> None:
    for file in modules("engine"):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
        assert FORMATS.isdisjoint(value for value in constants if isinstance(value, str)), file


def test_importing_the_engine_loads_nothing_of_models_and_http() -> None:
    unwanted = MODEL_LIBRARIES | WEB_LIBRARIES
    check = f"import sys, larksong.engine.engine, larksong.grammars; print(*sorted({unwanted!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
