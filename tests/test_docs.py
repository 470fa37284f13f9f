"""The pages hold together: links lead somewhere, programs in them are programs, figures can be printed."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from larksong.engine.vocabulary import Vocabulary

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
MENTIONED = re.compile(r"`((?:api|benchmarks|docs|engine|examples|grammars|tests)/[\w./-]*\w)`")
TEST = re.compile(r"`(test_\w+)`")


def label(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_files_and_tests_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in MENTIONED.findall(text):
        assert (ROOT / name).exists(), name
    for name in TEST.findall(text):
        assert any(name in content for content in sources()), name


def sources() -> Iterator[str]:
    return (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_python_in_a_page_is_python(page: Path) -> None:
    for source in PYTHON.findall(page.read_text(encoding="utf-8")):
        compile(source, str(page), "exec")


def test_the_library_program_of_the_readme_is_the_example() -> None:
    example = (ROOT / "examples/library.py").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [source] = [found for found in PYTHON.findall(readme) if "Matcher" in found or "matcher" in found]
    for line in source.splitlines()[1:]:
        assert line.strip() in example


def test_the_figures_can_be_printed(byte_tokenizer: Tokenizer, byte_vocabulary: Vocabulary) -> None:
    figures: dict[str, Any] = runpy.run_path(str(ROOT / "docs/figures.py"), run_name="figures")
    rows = figures["lexing"]() + figures["attributes"]() + figures["masks"](byte_vocabulary, byte_tokenizer)
    assert all(isinstance(name, str) and value for name, value in rows)
