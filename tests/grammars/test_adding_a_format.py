"""The guide's format works as it stands: one file, and everything else follows."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from larksong.api.offline.parse import parse_record
from larksong.engine.engine import Engine
from larksong.grammars import CallPolicy, format_names, formats, wire_format
from tests.support.calls import read, turn
from tests.support.markers import BY_LETTERS
from tests.support.turns import CALLS, TOOLS
from tests.support.vocabularies import cut

GUIDE = Path(__file__).parents[2] / "docs" / "adding_a_format.md"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The guide's format, put where formats are found; its number of lines."""
    found = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None
    (tmp_path / "toy.py").write_text(found[1])
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    formats._formats.cache_clear()
    yield found[1].count("\n")
    monkeypatch.undo()
    formats._formats.cache_clear()


def test_the_guides_format_is_short_and_is_found(toy: int) -> None:
    assert toy < 60
    assert "toy" in format_names()


def test_the_guides_format_constrains_and_reads(toy: int) -> None:
    wire = wire_format("toy")
    for policy in (CallPolicy(), CallPolicy(required=True)):
        matcher = Engine(BY_LETTERS).matcher(wire.grammar(TOOLS, policy, BY_LETTERS))
        calls = turn(read(matcher, cut(BY_LETTERS, wire.render_calls(CALLS).encode()))).calls
        assert [(call.name, call.arguments) for call in calls] == CALLS


def test_the_guides_format_reads_what_nobody_constrained(toy: int) -> None:
    text = 'See @calls for help.\n@call other {"a" : [1, 2]}@end Bye'
    found = parse_record({"format": "toy", "text": text})
    (call,) = found["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("other", {"a": [1, 2]})
    assert found["content"] == "See @calls for help.\n Bye"
