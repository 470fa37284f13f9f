"""What a vocabulary's masks need and no request changes, kept on disk.

The trie and the walks over JSON strings and free text are made once a vocabulary. The file's name holds the
vocabulary's fingerprint and a hash of all code that the content depends on (what this module imports, and
what that imports), so nothing stale is ever read. Two processes may start at once: each writes a file of its
own and moves it into place. A folder that cannot be written is no error: then the work is done again at the
next start.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

from larksong.engine.lexing.terminal_automata import TerminalAutomata
from larksong.engine.lexing.terminal_automaton import TerminalAutomaton
from larksong.engine.lexing.trie import Position, TokenSet, Trie
from larksong.engine.lexing.walks import Walk

log = logging.getLogger(__name__)

_CODE = ("automata/*.py", "grammar/*.py", "lexing/*.py", "errors.py", "packed.py")


def cache_folder() -> Path:
    """Where files are kept: $LARKSONG_CACHE, else the user's cache folder."""
    override = os.environ.get("LARKSONG_CACHE")
    return Path(override) if override else platformdirs.user_cache_path("larksong")


def code_files() -> list[Path]:
    """The code that the content of a file depends on."""
    engine = Path(__file__).parents[1]
    return sorted(file for pattern in _CODE for file in engine.glob(pattern))


@cache
def _code_hash() -> str:
    code = b"".join(file.read_bytes() for file in code_files())
    return hashlib.sha256(code).hexdigest()[:16]


def path_for(fingerprint: str, folder: Path | None = None) -> Path:
    """The file of a vocabulary."""
    return (folder or cache_folder()) / "vocabularies" / f"{fingerprint[:32]}-{_code_hash()}.npz"


Arrays = dict[str, NDArray[Any]]


def load(path: Path) -> Arrays | None:
    """The arrays of a file, or None where there is none that can be read."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        log.warning("%s cannot be read (%s); it is made anew", path, error)
        return None


def save(path: Path, arrays: Arrays) -> None:
    """Write a file, all at once or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".partial", delete=False) as file:
            try:
                np.savez(file, **arrays)  # type: ignore[arg-type]
                file.close()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        log.info("%s cannot be written (%s); the next start does this work again", path, error)


def content(automata: TerminalAutomata) -> Arrays:
    """What a file holds: the trie, and the walks of the automata that every request reads."""
    arrays = dict(automata.trie.arrays)
    for name, automaton in automata.shared.items():
        arrays |= _walk_arrays(name, automaton)
    return arrays


def restore_walks(automata: TerminalAutomata, arrays: Arrays) -> None:
    """Give the automata the walks of a file. The trie is made with the file's arrays at once."""
    for name, automaton in automata.shared.items():
        _restore(name, automaton, automata.trie, arrays)


def _walk_arrays(name: str, automaton: TerminalAutomaton) -> Arrays:
    """The walks of an automaton from the root of the trie, under names that begin with `name`."""
    arrays: Arrays = {}
    for state, walk in automaton.root_walks():
        key = f"{name}/{state}"
        words = walk.inside.words
        arrays[f"{key}/words"] = np.zeros(0, np.uint32) if words is None else words
        arrays[f"{key}/ids"] = np.array(walk.inside.ids, np.int64)
        for _, position in walk.crossings:  # such an automaton ends in one way only
            arrays[f"{key}/nodes"] = position.nodes
            arrays[f"{key}/ended"] = position.ids
    return arrays


def _restore(name: str, automaton: TerminalAutomaton, trie: Trie, arrays: Arrays) -> None:
    """Give an automaton the walks that `_walk_arrays` wrote."""
    for key in [key for key in arrays if key.startswith(f"{name}/") and key.endswith("/words")]:
        base = key.removesuffix("/words")
        words = arrays[key].astype(np.uint32, copy=False)
        inside = TokenSet(arrays[f"{base}/ids"].tolist(), words if len(words) else None)
        crossings: tuple[tuple[None, Position], ...] = ()
        if f"{base}/nodes" in arrays:
            nodes, ended = arrays[f"{base}/nodes"], arrays[f"{base}/ended"]
            crossings = ((None, Position(trie, nodes.astype(np.int64), ended.astype(np.int64))),)
        automaton.set_root_walk(int(base.rsplit("/", 1)[1]), Walk(inside, crossings))
