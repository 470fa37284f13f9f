"""Names that a format cannot carry are refused with the reason and what helps."""

import re

import pytest

from larksong.grammars import CallPolicy, InvalidToolName, Tool, format_names, wire_format
from tests.support.markers import BY_ID


@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("", "it is empty; give it at least one character"),
        ("a\nb", "it has '\\n', which is not printable; rename it"),
    ],
)
def test_a_refused_name_says_why_and_what_helps(name: str, tool: str, reason: str) -> None:
    with pytest.raises(InvalidToolName, match=re.escape(reason)):
        wire_format(name).grammar([Tool(tool)], CallPolicy(), BY_ID)


def test_a_refused_parameters_name_says_why_and_where() -> None:
    tool = Tool("f", "", {"properties": {"a>b": {}}})
    with pytest.raises(InvalidToolName, match="it has '>', which means something else there") as raised:
        wire_format("qwen3_coder").grammar([tool], CallPolicy(), BY_ID)
    assert (raised.value.tool, raised.value.pointer) == ("f", "/properties/a>b")
