"""Names that look like markup, or begin like each other, are read as they were written."""

import pytest

from larksong.api.offline.parse import parse_record
from larksong.grammars import CallPolicy, GrammarsError, Tool, format_names, wire_format
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


@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize("called", NAMES)
@pytest.mark.parametrize("other", ["zz", "f", "tool"])
def test_a_tools_name_is_told_once_and_as_it_is(name: str, called: str, other: str) -> None:
    wire = wire_format(name)
    try:
        wire.grammar([Tool(called), Tool(other)], CallPolicy(), BY_LETTERS)
    except GrammarsError:
        return  # the format cannot carry the name, and says so
    tools = [{"name": called}, {"name": other}]
    for step in (1, 7, 1000):
        text = wire.render_calls([(called, {}), (other, {})])
        pieces = [text[i : i + step] for i in range(0, len(text), step)]
        found = parse_record({"format": name, "tools": tools, "chunks": pieces})
        told = [(call["function"]["name"], call["function"]["arguments"]) for call in found["tool_calls"]]
        assert (told, found["content"], found["warnings"]) == ([(called, "{}"), (other, "{}")], "", [])


@pytest.mark.parametrize("name", ["deepseek_v3_2", "deepseek_v4", "deepseek_v4_1"])
def test_a_declared_parameters_name_in_quotes_may_have_blanks(name: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"a b": {"type": "string"}}}}]
    text = wire_format(name).render_call("f", {"a b": "v"})
    found = parse_record({"format": name, "tools": tools, "text": text})
    assert [call["function"]["arguments"] for call in found["tool_calls"]] == ['{"a b": "v"}']
    assert (found["content"], found["warnings"]) == ("", [])
