"""The workload means what the benchmark says of it."""

import json

import pytest
from jsonschema import Draft202012Validator

from larksong.api.commands.bench.workload import (
    RESPONSE_FORMAT,
    REVIEW,
    TOOLS,
    changed_review,
    changed_tools,
    request,
    tools,
    turn,
)

PARAMETERS = {tool.name: tool.parameters for tool in TOOLS}


@pytest.mark.parametrize("number", [0, 1, 2, 7, 40, 250])
def test_values_of_a_turn_fit_the_schemas(number: int) -> None:
    written = turn(number)
    for name, arguments in written.calls:
        Draft202012Validator(PARAMETERS[name]).validate(arguments)
    Draft202012Validator(REVIEW).validate(written.review)


def test_no_two_turns_write_the_same_file() -> None:
    files = [turn(number).calls[1][1]["content"] for number in range(100)]
    assert len(set(files)) == len(files)


def test_files_of_other_turns_are_about_as_long_as_the_standard_one() -> None:
    standard = len(turn(0).calls[1][1]["content"])
    assert all(0.9 < len(turn(number).calls[1][1]["content"]) / standard < 1.3 for number in range(1, 100))


def test_changed_tools_take_the_standard_turn_and_share_no_called_tool() -> None:
    known = {tool.name: tool for tool in TOOLS}
    changed = {tool.name: tool for tool in changed_tools(TOOLS, 3)}
    for name, arguments in turn(0).calls:
        assert changed[name].parameters != known[name].parameters
        Draft202012Validator(changed[name].parameters).validate(arguments)
    assert "glob_v3" in changed
    assert changed["read"] == known["read"]


def test_a_changed_review_takes_the_standard_one() -> None:
    assert changed_review(5) != REVIEW
    Draft202012Validator(changed_review(5)).validate(turn(0).review)


def test_many_tools_have_names_of_their_own_and_begin_with_the_ten() -> None:
    many = tools(200)
    assert many[:10] == TOOLS
    assert len({tool.name for tool in many}) == 200


def test_a_request_of_a_response_format_has_a_schema_and_no_tools() -> None:
    asked = request(RESPONSE_FORMAT, 0)
    assert asked.schema == REVIEW
    assert asked.tools == ()
    assert json.loads(turn(0).text(RESPONSE_FORMAT)) == turn(0).review
