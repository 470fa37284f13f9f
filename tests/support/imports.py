"""Which modules import which, read from their text."""

import ast
from collections.abc import Iterator
from pathlib import Path

NAMESPACE = "larksong"


def imports(package_root: Path) -> dict[str, set[str]]:
    """What each module of a package imports of Larksong's, by full names (`larksong.engine.lexing.trie`).

    Anywhere in a module: in functions, and for types alone, too. A package stands for its `__init__.py`.
    """
    return {
        _name(file, package_root): {
            found for found in _imported(file, package_root.parent) if found != _name(file, package_root)
        }
        for file in sorted(package_root.rglob("*.py"))
    }


def file_of(module: str, packages: Path) -> Path | None:
    """The file of a module, where `packages` is the folder of Larksong's packages; None for what is none."""
    path = packages.joinpath(*module.split(".")[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _name(file: Path, package_root: Path) -> str:
    parts = file.relative_to(package_root.parent).with_suffix("").parts
    return ".".join((NAMESPACE, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def _imported(file: Path, packages: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            assert node.module is not None
            for alias in node.names if _is_ours(node.module) else ():
                module = f"{node.module}.{alias.name}"
                yield module if file_of(module, packages) else node.module


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == NAMESPACE
