"""However a turn is cut into tokens, its events say the same."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.events import ParseEvent
from larksong.grammars import Tool, format_names, wire_format
from tests.support.calls import joined, turn
from tests.support.cuts import Steps, every_cut, run, turns, with_content
from tests.support.examples import examples, times
from tests.support.markers import MARKERS
from tests.support.turns import CALLS, TOOLS


def told(steps: Steps) -> list[ParseEvent]:
    return joined(event for events in steps for event in events)


@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize("markers", [(), MARKERS], ids=["markers in letters", "markers by id"])
@given(st.data(), st.integers(0, 2**32))
@examples(4)
def test_every_cut_of_a_turn_gives_the_same_events(
    name: str, markers: tuple[str, ...], data: st.DataObject, seed: int
) -> None:
    tools, text = data.draw(turns(name))
    cuts = every_cut(text.encode(), Random(seed), markers)
    one, *others = map(told, run(name, tools, cuts, markers))
    assert all(other == one for other in others)
    turn(one)


@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize("markers", [(), MARKERS], ids=["markers in letters", "markers by id"])
@pytest.mark.parametrize("seed", range(times(1)))
def test_a_long_turn_gives_the_same_events_however_it_is_cut(
    name: str, markers: tuple[str, ...], seed: int
) -> None:
    wire = wire_format(name)
    text = with_content(wire, "Let me see…\n", wire.render_calls(CALLS))
    for steps in run(name, TOOLS, every_cut(text.encode(), Random(seed), markers), markers):
        found = turn(told(steps))
        assert found.content == "Let me see…\n".encode()
        assert [(call.name, call.arguments) for call in found.calls] == CALLS


VALUES = [
    "1",
    "12",
    "-",
    "1.5",
    "null",
    "None",
    "nul",
    "true",
    "[1]",
    '[1, "',
    '{"a": {}}',
    "",
    " 1",
    "1 ",
    '"x"',
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "integer", "null"]},
        {"anyOf": [{"type": "array"}, {"type": "string", "minLength": 0}]},
        {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "object"}, {"type": "boolean"}]},
        {"anyOf": [{"enum": ["1", "12", "[1]", "", "None", "x"]}, {"type": "integer"}, {"type": "string"}]},
        {},
    ],
)
def test_a_value_of_an_open_type_is_the_same_however_it_is_cut(value: str, schema: dict[str, object]) -> None:
    tool = Tool("f", "", {"properties": {"v": schema, "w": {"type": "string"}}})
    for last in ("</function>", "<parameter=w>\n1\n</parameter>\n</function>"):
        text = f"<tool_call>\n<function=f>\n<parameter=v>\n{value}\n</parameter>\n{last}\n</tool_call>"
        cuts = every_cut(text.encode(), Random(0)) + every_cut(text.encode(), Random(1))[1:3]
        found = [told(steps) for steps in run("qwen3_coder", [tool], cuts)]
        assert all(other == found[0] for other in found)
        (call,) = turn(found[0]).calls
        assert call.arguments is not None
