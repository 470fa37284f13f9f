"""Imports go one way: no modules import each other, and none imports against the order of the folders."""

import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.imports import file_of, imports, imports_of

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "grammars", "api")

# The lowest first; folders of one line know nothing of each other. docs/architecture.md has the same table.
ORDER = (
    ("engine/errors", "engine/events", "engine/packed"),
    ("engine/vocabulary", "engine/cursor", "engine/automata"),
    ("engine/grammar",),
    ("engine/lexing",),
    ("engine/parsing",),
    ("engine/completion", "engine/reading", "engine/explain", "engine/forced"),
    ("engine/matcher",),
    ("engine/budget", "engine/engine"),
    ("engine/backends",),
    ("engine",),
    ("grammars/errors", "grammars/caching"),
    ("grammars/schema",),
    ("grammars/tools", "grammars/json"),
    ("grammars/wire", "grammars/answers"),
    ("grammars/authoring",),
    ("grammars/formats",),
    ("grammars/registry", "grammars/explain"),
    ("grammars/warming",),
    ("grammars",),
    ("api/errors",),
    ("api/runtime",),
    ("api/turns",),
    ("api/settings", "api/offline"),
    ("api/http",),
    ("api/openai_chat",),
    ("api/anthropic", "api/responses", "api/raw_text", "api/inspector", "api/exllamav3"),
    ("api/server",),
    ("api/commands",),
    ("api/cli",),
    ("api",),
)

Graph = Mapping[str, Iterable[str]]


def graph(packages: Path) -> dict[str, set[str]]:
    """What each module of the three packages, which lie in one folder, imports of them."""
    return {
        module: imported for package in PACKAGES for module, imported in imports(packages / package).items()
    }


def place(module: str) -> str:
    """Where a module stands in the order: its folder, or itself if it lies on top of a package."""
    return "/".join(module.split(".")[1:3])


def cycle(graph: Graph) -> list[str]:
    """Modules of which each imports the next one, the first one at both ends; [] where there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def upward(graph: Graph) -> Iterator[str]:
    """The imports that the order of the folders forbids."""
    floors = {name: floor for floor, names in enumerate(ORDER) for name in names}
    for module, imported in graph.items():
        for other in imported:
            if place(other) != place(module) and floors[place(other)] >= floors[place(module)]:
                yield f"{module} imports {other}"


@pytest.fixture(scope="module")
def today() -> dict[str, set[str]]:
    return graph(ROOT)


def test_no_modules_import_each_other(today: Graph) -> None:
    assert cycle(today) == []


def test_imports_go_down_the_order_of_the_folders(today: Graph) -> None:
    assert list(upward(today)) == []


def test_the_order_names_what_there_is(today: Graph) -> None:
    assert sorted(name for names in ORDER for name in names) == sorted({place(module) for module in today})


def test_the_pages_table_is_the_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## The folders")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    assert [tuple(re.findall(r"`([\w/]+?)(?:/|\.py)`", cell)) for cell in cells] == list(ORDER)


def plant(today: Graph, module: str, line: str, folder: Path) -> Graph:
    """The imports after a line is added to a module."""
    file = folder / "planted.py"
    source = file_of(module, ROOT)
    assert source is not None
    file.write_text(source.read_text(encoding="utf-8") + line, encoding="utf-8")
    return {**today, module: imports_of(file, ROOT)}


FOR_TYPES = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    "


@pytest.mark.parametrize("before", ["", FOR_TYPES], ids=["", "for types alone"])
def test_a_planted_circle_is_found(today: Graph, tmp_path: Path, before: str) -> None:
    line = before + "from larksong.engine.lexing.walks import Walk\n"
    found = cycle(plant(today, "larksong.engine.lexing.trie", line, tmp_path))
    assert {"larksong.engine.lexing.trie", "larksong.engine.lexing.walks"} <= set(found)


@pytest.mark.parametrize(
    ("module", "line", "other"),
    [
        (
            "larksong.engine.lexing.trie",
            "from larksong.engine.matcher import Matcher\n",
            "larksong.engine.matcher",
        ),
        (
            "larksong.engine.matcher",
            "def late():\n    import larksong.grammars.tools\n",
            "larksong.grammars.tools",
        ),
        (
            "larksong.api.anthropic.routes",
            FOR_TYPES + "from larksong.api.responses.routes import router\n",
            "larksong.api.responses.routes",
        ),
    ],
    ids=["to a folder above", "in a function, to a package above", "for types alone, to a neighbour"],
)
def test_a_planted_import_against_the_order_is_found(
    today: Graph, tmp_path: Path, module: str, line: str, other: str
) -> None:
    assert list(upward(plant(today, module, line, tmp_path))) == [f"{module} imports {other}"]
