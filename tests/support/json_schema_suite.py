"""The JSON-Schema-Test-Suite (MIT) from the source package of jsonschema, fetched once a machine."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from larksong.engine.backends.model_store import cache_folder
from larksong.engine.engine import Engine
from larksong.engine.parsing.token_automaton import TokenAutomaton
from larksong.grammars import GrammarsError, InvalidSchema, Options
from larksong.grammars.answers.response_format import response_grammar
from tests.support.vocabularies import vocabulary

_REQUIREMENT = "jsonschema==4.26.0"
DRAFTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


class NotReachable(Exception):
    """The source package could not be downloaded."""


def suite() -> Path:
    """The folder with one folder a draft. Raises NotReachable."""
    target = cache_folder() / "tests" / "json-schema-test-suite-4.26.0"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            pip = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--no-deps",
                "--no-binary",
                "jsonschema",
                "--quiet",
            ]
            done = subprocess.run(
                [*pip, "--dest", folder, _REQUIREMENT], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                raise NotReachable(f"pip could not download {_REQUIREMENT}: {done.stderr.strip()[-300:]}")
            with tarfile.open(next(Path(folder).glob("jsonschema-*.tar.gz"))) as archive:
                archive.extractall(folder, filter="data")
            os.replace(next(Path(folder).glob("jsonschema-*/json/tests")), target)
    return target


def cases(folder: Path, draft: str, part: str) -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Name, schema and tests of each case; `part` is a folder of the draft, empty for the required tests."""
    for file in sorted((folder / draft / part).glob("*.json")):
        for case in json.loads(file.read_text(encoding="utf-8")):
            schema = case["schema"]
            if isinstance(schema, dict):
                schema = {"$schema": DRAFTS[draft], **schema}
            yield f"{file.stem}: {case['description']}", schema, case["tests"]


def judge(folder: Path, draft: str, part: str, options: Options) -> tuple[dict[str, int], list[str]]:
    """Counts over a part of the suite, and the tests that were judged wrongly."""
    vocabulary_ = vocabulary()
    terminal_automata = Engine(vocabulary_)._terminal_automata
    (end,) = vocabulary_.eos_ids
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for name, schema, tests in cases(folder, draft, part):
        counts["schemas"] += 1
        try:
            automaton = TokenAutomaton(
                response_grammar(schema, vocabulary_, options), vocabulary_, terminal_automata
            )
        except InvalidSchema:
            automaton = None  # nothing satisfies it: all instances must be invalid
        except GrammarsError as error:
            counts[
                "refused, remote or dynamic" if error.keyword in ("$ref", "$dynamicRef") else "refused"
            ] += 1
            continue
        for test in tests:
            counts["tests"] += 1
            text = json.dumps(test["data"], ensure_ascii=False)
            accepted = automaton is not None and _accepts(automaton, text, end)
            if accepted != test["valid"]:
                counts["valid refused" if test["valid"] else "invalid accepted"] += 1
                wrong.append(f"{'valid refused' if test['valid'] else 'invalid accepted'}: {name}: {text}")
    return dict(counts), wrong


def _accepts(automaton: TokenAutomaton, text: str, end: int) -> bool:
    configuration = automaton.start
    for byte in text.encode(errors="surrogatepass"):
        edge = automaton.edge(configuration, byte)
        if edge is None:
            return False
        configuration = edge.target
    return automaton.edge(configuration, end) is not None
