"""A module's tests are found at once: by their name, else from the table in CONTRIBUTING."""

import re
from pathlib import Path, PurePosixPath

import pytest

from larksong.grammars import WireFormat, format_names, wire_format
from tests.support.formats import KINDS

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "grammars", "api")
HEADING = "| modules | their tests |"


def modules() -> list[str]:
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return sorted(file.relative_to(ROOT).as_posix() for file in files if file.name != "__init__.py")


def named_test(module: str) -> Path:
    """Where the test of a module's own name is, if there is one."""
    file = ROOT / "tests" / module
    return file.with_name(f"test_{file.name}")


def rows() -> dict[str, list[str]]:
    """The table: what the modules of a row are called, and its files and folders of tests."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, found, rest = page.partition(HEADING)
    assert found, f"no table with the heading {HEADING}"
    table: dict[str, list[str]] = {}
    for line in rest.split("\n\n")[0].splitlines()[2:]:
        patterns, tests = (re.findall("`([^`]+)`", cell) for cell in line.strip("|").split("|"))
        for pattern in patterns:
            assert pattern not in table, f"{pattern} has two rows"
            table[pattern] = tests
    return table


TABLE = rows()


def test_every_module_has_a_test_of_its_name_or_a_row_in_the_table() -> None:
    nameless = [module for module in modules() if not named_test(module).is_file()]
    assert [
        each for each in nameless if not any(PurePosixPath(each).match(pattern) for pattern in TABLE)
    ] == []


@pytest.mark.parametrize("pattern", TABLE)
def test_a_row_names_modules_without_a_test_of_their_name_and_tests_that_are_there(pattern: str) -> None:
    named = [module for module in modules() if PurePosixPath(module).match(pattern)]
    assert [module for module in named if not named_test(module).is_file()]
    assert TABLE[pattern]
    for each in TABLE[pattern]:
        place = ROOT / each
        assert each.startswith("tests/")
        assert any(place.glob("test_*.py")) if place.is_dir() else re.fullmatch(r"test_\w+\.py", place.name)
        assert place.exists(), f"{each} is not there"


def test_there_is_one_format_of_each_kind_among_those_that_stand_for_all() -> None:
    def kind(name: str) -> type:
        classes = type(wire_format(name)).__mro__
        return classes[classes.index(WireFormat) - 1]

    assert {kind(name) for name in format_names()} == {kind(name) for name in KINDS}
