"""What each layer may know of the world outside; who may import whom is in test_layout.py."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BACKENDS = ROOT / "engine" / "backends"
MODEL_LIBRARIES = {"torch", "transformers", "gguf", "safetensors", "exllamav3", "formatron", "kbnf"}
WEB_LIBRARIES = {"fastapi", "starlette", "sse_starlette", "uvicorn", "httpx", "openai", "typer", "pydantic"}
FORMATS = {"hermes", "qwen3_coder", "harmony"}


def imports(path: Path) -> Iterator[str]:
    """The dotted names that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("layer", ["engine", "grammars"])
def test_nothing_below_the_api_knows_of_http(layer: str) -> None:
    for path in (ROOT / layer).rglob("*.py"):
        assert not WEB_LIBRARIES & {name.split(".")[0] for name in imports(path)}, path


def test_the_engine_knows_neither_model_libraries_nor_its_backends() -> None:
    for path in (ROOT / "engine").rglob("*.py"):
        if BACKENDS not in path.parents:
            assert not MODEL_LIBRARIES & {name.split(".")[0] for name in imports(path)}, path
            assert not any(name.startswith("larksong.engine.backends") for name in imports(path)), path


def test_the_engine_knows_no_wire_formats_name() -> None:
    for path in (ROOT / "engine").rglob("*.py"):
        constants = [
            node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)
        ]
        assert FORMATS.isdisjoint(value for value in constants if isinstance(value, str)), path


def test_importing_the_engine_loads_nothing_of_models_and_http() -> None:
    unwanted = MODEL_LIBRARIES | WEB_LIBRARIES
    check = f"import sys, larksong.engine.engine, larksong.grammars; print(*sorted({unwanted!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
