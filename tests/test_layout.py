"""How the packages hang together: what is shipped, who may import whom, what an import costs."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {"engine": {"engine"}, "grammars": {"engine", "grammars"}, "api": {"engine", "grammars", "api"}}
MODEL_LIBRARIES = ("torch", "transformers", "gguf", "safetensors", "exllamav3")
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


def imported(file: Path) -> set[str]:
    """Larksong's packages that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            found = [node.module or ""]
            if node.module == "larksong":
                found = [f"larksong.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        else:
            continue
        names |= {name.split(".")[1] for name in found if name.startswith("larksong.")}
    return names


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_dependencies_point_one_way(package: str) -> None:
    for file in modules(package):
        assert imported(file) <= MAY_IMPORT[package], file


def test_every_package_is_shipped_with_its_data() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    on_disk = {
        "larksong." + ".".join(file.parent.relative_to(ROOT).parts)
        for package in MAY_IMPORT
        for file in (ROOT / package).rglob("__init__.py")
    }
    assert set(settings["packages"]) == on_disk
    for package in MAY_IMPORT:
        assert (ROOT / package / "py.typed").is_file()
        shipped = {
            file
            for name, patterns in settings["package-data"].items()
            for pattern in patterns
            for file in ROOT.joinpath(*name.split(".")[1:]).glob(pattern)
        }
        data = {file for file in (ROOT / package).rglob("*") if file.is_file() and file.suffix not in CODE}
        assert data <= shipped


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_importing_a_package_loads_no_model_library(package: str) -> None:
    names = [
        ".".join(("larksong", *file.relative_to(ROOT).with_suffix("").parts))
        for file in modules(package)
        if file.relative_to(ROOT).as_posix() not in OVER_MODEL_LIBRARIES
    ]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print([name for name in {MODEL_LIBRARIES!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
