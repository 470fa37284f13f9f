"""What modules import, read from their text: anywhere in it, so in functions and for types alone, too."""

import ast
from collections.abc import Iterator
from pathlib import Path

NAMESPACE = "larksong"


def imports(package_root: Path) -> dict[str, set[str]]:
    """What each module of a package imports of Larksong's, by full names (`larksong.engine.lexing.trie`).

    A package stands for its `__init__.py`.
    """
    packages = package_root.parent
    files = {_name(file, packages): file for file in sorted(package_root.rglob("*.py"))}
    return {name: imports_of(file, packages) - {name} for name, file in files.items()}


def imports_of(file: Path, packages: Path) -> set[str]:
    """What one file imports of Larksong's, whose packages are in the folder `packages`."""
    found: set[str] = set()
    for module, name in imported_names(file):
        if module.partition(".")[0] == NAMESPACE:
            inner = f"{module}.{name}"
            found.add(inner if name and file_of(inner, packages) else module)
    return found


def file_of(module: str, packages: Path) -> Path | None:
    """The file of a module, where `packages` is the folder of Larksong's packages; None for what is none."""
    path = packages.joinpath(*module.split(".")[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def imported_names(file: Path) -> Iterator[tuple[str, str]]:
    """The modules that a file imports, whosever they are, and what from each; "" for the module itself."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            yield from ((node.module or "", alias.name) for alias in node.names)


def top_level_names(file: Path) -> set[str]:
    """The packages that a file imports, whosever they are."""
    return {module.partition(".")[0] for module, _ in imported_names(file)}


def _name(file: Path, packages: Path) -> str:
    parts = file.relative_to(packages).with_suffix("").parts
    return ".".join((NAMESPACE, *(parts[:-1] if parts[-1] == "__init__" else parts)))
