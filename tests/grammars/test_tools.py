"""What a caller says of its tools."""

from typing import Any

import pytest

from larksong.grammars import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize("given", [SCHEMA, {}, True])
def test_a_schema_in_the_place_of_the_description_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"as the description of the tool 'f': write Tool\(name, desc"):
        Tool("f", given)


def test_a_tool_is_written_with_its_description_or_by_keyword() -> None:
    assert Tool("f", "What it does.", SCHEMA).parameters == Tool("f", parameters=SCHEMA).parameters == SCHEMA
