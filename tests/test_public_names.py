"""What the packages export: each name that type checkers see is there, and loaded only when it is used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "grammars", "api")
EXLLAMAV3 = "exllamav3"
"""the module that is there only where the library of its name is; tests/exllamav3 uses what it exports"""
HEAVY = {"numpy", "lark", "fastapi", "pydantic", "tokenizers", "torch"}


def exported() -> Iterator[tuple[str, str, str]]:
    """Package, module in it, and name, of each line of the packages' stubs."""
    for package in PACKAGES:
        tree = ast.parse((ROOT / package / "__init__.pyi").read_text(encoding="utf-8"))
        for node in tree.body:
            assert isinstance(node, ast.ImportFrom)
            for alias in node.names:
                assert alias.asname == alias.name, "without that it is no export"
                yield package, node.module or "", alias.name


@pytest.mark.parametrize(("package", "module", "name"), [*exported()])
def test_what_type_checkers_see_is_there(package: str, module: str, name: str) -> None:
    found = import_module(f"larksong.{package}")
    assert name in found.__all__
    if module != EXLLAMAV3:
        assert getattr(found, name) is getattr(import_module(f"larksong.{package}.{module}"), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_else_is_exported(package: str) -> None:
    found = import_module(f"larksong.{package}")
    assert sorted(found.__all__) == sorted(name for of, _, name in exported() if of == package)
    with pytest.raises(AttributeError, match="Nothing"):
        _ = found.Nothing


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_alone_loads_no_library(package: str) -> None:
    check = f"import sys, larksong.{package}; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
