"""What `larksong.engine` exports: every name, as mypy sees it and as Python does, and only when it is used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from larksong import engine

SOURCE = Path(engine.__file__)


def declared() -> dict[str, str]:
    """Each name that type checkers see, and the module that it comes from."""
    imports = [
        node
        for branch in ast.parse(SOURCE.read_text(encoding="utf-8")).body
        if isinstance(branch, ast.If)
        for node in ast.walk(branch)
        if isinstance(node, ast.ImportFrom)
    ]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


def test_type_checkers_and_python_see_the_same_names() -> None:
    assert sorted(declared()) == engine.__all__
    for name, module in declared().items():
        assert getattr(engine, name) is getattr(import_module(module), name)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"'larksong\.engine' has no attribute 'Nothing'"):
        engine.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_names_are_loaded_when_they_are_used() -> None:
    program = (
        "import sys, larksong.engine as engine\n"
        "before = {'numpy', 'lark'} & set(sys.modules)\n"
        "engine.Text, engine.EngineError\n"
        "print(before, {'numpy', 'lark'} & set(sys.modules), engine.Engine.__name__, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "set()", "Engine", "True"]
