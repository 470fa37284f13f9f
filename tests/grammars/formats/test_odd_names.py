"""Names that look like markup, or begin like each other, are read as they were written."""

import pytest

from larksong.api.offline.parse import parse_record
from larksong.grammars import CallPolicy, GrammarsError, Tool, wire_format
from tests.support.formats import every_format
from tests.support.markers import BY_LETTERS

NAMES = (
    "a.b-c",
    "日本",
    "fetch",
    "functions",
    "functions.f",
    "f[0]",
    "tool{1}",
    "END",
    "a=b",
    "a'b",
    "parameter",
    "0",
    "-",
)


def carries(name: str, *called: str) -> bool:
    """Whether the format can write such names; if not, it says so."""
    try:
        wire_format(name).grammar([Tool(each) for each in called], CallPolicy(), BY_LETTERS)
    except GrammarsError:
        return False
    return True


def check_calls(name: str, *called: str) -> None:
    """Calls of all these tools are told once, with the names as they are."""
    text = wire_format(name).render_calls([(each, {}) for each in called])
    tools = [{"name": each} for each in called]
    for step in (1, 7, 1000):
        pieces = [text[i : i + step] for i in range(0, len(text), step)]
        found = parse_record({"format": name, "tools": tools, "chunks": pieces})
        told = [(call["function"]["name"], call["function"]["arguments"]) for call in found["tool_calls"]]
        assert told == [(each, "{}") for each in called]
        assert (found["content"], found["warnings"]) == ("", [])


@every_format
@pytest.mark.parametrize("called", NAMES)
def test_a_tools_name_is_told_once_and_as_it_is(name: str, called: str) -> None:
    if carries(name, called):
        check_calls(name, called, "zz")


@every_format
def test_names_that_begin_alike_are_told_apart(name: str) -> None:
    called = [each for each in (*NAMES, "f", "tool") if carries(name, each)]
    assert {"f", "fetch", "functions", "tool"} <= {*called}
    check_calls(name, *called)


@pytest.mark.parametrize("name", ["deepseek_v3_2", "deepseek_v4", "deepseek_v4_1"])
def test_a_declared_parameters_name_in_quotes_may_have_blanks(name: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"a b": {"type": "string"}}}}]
    text = wire_format(name).render_call("f", {"a b": "v"})
    found = parse_record({"format": name, "tools": tools, "text": text})
    assert [call["function"]["arguments"] for call in found["tool_calls"]] == ['{"a b": "v"}']
    assert (found["content"], found["warnings"]) == ("", [])
