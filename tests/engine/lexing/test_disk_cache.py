"""What is kept on disk is never stale: the file's name changes with all code that its content depends on."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from larksong.engine.engine import Engine
from larksong.engine.lexing import disk_cache
from tests.support.imports import file_of, imports
from tests.support.vocabularies import vocabulary

PACKAGES = Path(__file__).parents[3]
VOCABULARY = vocabulary((b"te", b'",', "é".encode()))


def not_hashed(files: Collection[Path]) -> set[str]:
    """The modules that the disk cache's content depends on and that are not in `files`."""
    imported = imports(PACKAGES / "engine")
    reached = ["larksong.engine.lexing.disk_cache"]
    for module in reached:
        reached += [other for other in sorted(imported[module]) if other not in reached]
    covered = {file.resolve() for file in files}
    return {module for module in reached if _file(module) not in covered}


def _file(module: str) -> Path:
    file = file_of(module, PACKAGES)
    assert file is not None
    return file.resolve()


def test_the_name_covers_all_code_that_the_content_depends_on() -> None:
    assert not not_hashed(disk_cache.code_files())


@pytest.mark.parametrize(
    "module",
    ["automata.charset", "automata.dfa", "grammar.terminals", "lexing.interior", "lexing.trie", "errors"],
)
def test_a_module_that_is_left_out_is_found(module: str) -> None:
    left_out = _file(f"larksong.engine.{module}")
    files = [file for file in disk_cache.code_files() if file.resolve() != left_out]
    assert not_hashed(files) == {f"larksong.engine.{module}"}


def test_a_file_gives_back_the_trie_and_the_walks(tmp_path: Path) -> None:
    made = Engine(VOCABULARY, disk_cache=tmp_path)
    made.warm_up()
    (file,) = (tmp_path / "vocabularies").iterdir()
    loaded = Engine(VOCABULARY, disk_cache=tmp_path)
    arrays = disk_cache.load(file)
    assert arrays is not None
    assert any("/" in name for name in arrays)
    for name, array in made.trie.arrays.items():
        assert np.array_equal(array, arrays[name])
        assert np.array_equal(array, loaded.trie.arrays[name])


def test_a_broken_file_is_made_anew(tmp_path: Path) -> None:
    path = disk_cache.path_for(VOCABULARY.fingerprint, tmp_path)
    path.parent.mkdir()
    path.write_bytes(b"no archive")
    assert disk_cache.load(path) is None
    Engine(VOCABULARY, disk_cache=tmp_path).warm_up()
    assert disk_cache.load(path) is not None
