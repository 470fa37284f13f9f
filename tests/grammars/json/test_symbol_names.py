"""Names of rules and terminals: readable, unique, and in the case that Lark tells them apart by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.grammars.json.symbol_names import SymbolNames
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("wanted", "rule", "terminal"),
    [
        ("get_weather__city", "get_weather__city", "GET_WEATHER__CITY"),
        ("Get-Weather", "get_weather", "GET_WEATHER"),
        ("123", "x123", "X123"),
        ("été", "t", "T"),
        ("日本", "value", "TERMINAL"),
    ],
)
def test_a_name_is_recognised(wanted: str, rule: str, terminal: str) -> None:
    assert SymbolNames().rule(wanted) == rule
    assert SymbolNames().terminal(wanted) == terminal


def test_names_that_are_alike_are_numbered() -> None:
    names = SymbolNames()
    assert [names.rule("a b"), names.rule("a-b"), names.rule("a_b")] == ["a_b", "a_b_2", "a_b_3"]


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=4))))
@examples(50)
def test_rules_are_lower_case_and_terminals_upper_case_and_none_comes_twice(
    wanted: list[tuple[bool, str]],
) -> None:
    names = SymbolNames()
    given_out = [names.rule(text) if is_rule else names.terminal(text) for is_rule, text in wanted]
    assert len(set(given_out)) == len(given_out)
    for (is_rule, _), name in zip(wanted, given_out, strict=True):
        assert name.isidentifier()
        assert name.isascii()
        assert name.islower() if is_rule else name.isupper()
