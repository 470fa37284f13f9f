"""Grammars for other engines: fixed order, the same language otherwise."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import llguidance
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.automata.characters import CharacterAutomaton, TooManyStates
from larksong.engine.automata.dfa import Words, canonical_json_string, json_string
from larksong.engine.automata.regex import compile_regex
from larksong.engine.engine import Engine
from larksong.engine.grammar.export import WRITERS, export
from larksong.engine.grammar.fixed_order import fixed_order
from larksong.grammars import CallPolicy, GrammarsError, Tool, format_names, wire_format
from tests.support.examples import examples
from tests.support.schemas import parameters
from tests.support.turns import TOOLS
from tests.support.vocabularies import vocabulary
from tests.support.walks import Walker

POLICY = CallPolicy(required=True, min_calls=1, max_calls=2)


def grammar(tools: list[Tool], format: str = "hermes", policy: CallPolicy = POLICY) -> Any:
    return wire_format(format).grammar(tools, policy, vocabulary())


def accepts(grammar: Any, text: str) -> bool:
    matcher = Engine(vocabulary()).matcher(grammar)
    for byte in text.encode():
        if not matcher.allows(byte):
            return False
        matcher.advance(byte)
    return matcher.complete


def test_members_come_in_their_declared_order() -> None:
    tool = Tool(
        "get",
        "",
        {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in "abc"},
            "required": ["a", "c"],
        },
    )
    found = fixed_order(grammar([tool]))
    assert found.notes == ("members come in the order in which they are declared",)

    def call(arguments: str) -> str:
        return f'<tool_call>\n{{"name": "get", "arguments": {arguments}}}\n</tool_call>'

    for arguments in ('{"a": 1, "c": 2}', '{"a": 1, "b": 3, "c": 2}'):
        assert accepts(found.grammar, call(arguments))
    for arguments in (
        '{"c": 2, "a": 1}',
        '{"a": 1}',
        '{"a": 1, "c": 2, "b": 3}',
        '{"a": 1, "a": 1, "c": 2}',
        "{}",
    ):
        assert not accepts(found.grammar, call(arguments))


def test_counted_items_are_written_out() -> None:
    tool = Tool(
        "get",
        "",
        {
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}
            },
            "required": ["a"],
        },
    )
    found = fixed_order(grammar([tool], policy=CallPolicy(required=True, min_calls=1, max_calls=1)))
    for size in range(6):
        items = ", ".join("1" * size)
        text = f'<tool_call>\n{{"name": "get", "arguments": {{"a": [{items}]}}}}\n</tool_call>'
        assert accepts(found.grammar, text) == (size in (2, 3))


@pytest.mark.parametrize("format", ["hermes", "llama3_json", "mistral_v3", "kimi_k2"])
@given(st.lists(parameters(), min_size=1, max_size=2), st.integers(0, 2**32))
@examples(10)
def test_what_fixed_order_allows_the_grammar_allows(
    format: str, schemas: list[dict[str, Any]], seed: int
) -> None:
    """The narrower language: whatever is written in it, the grammar that runs reads."""
    of = vocabulary()
    tools = [Tool(("get", "other")[i], "", schema) for i, schema in enumerate(schemas)]
    try:
        whole = wire_format(format).grammar(tools, POLICY, of)
    except GrammarsError:
        return
    engine = Engine(of)
    matcher, reader = engine.matcher(fixed_order(whole).grammar), engine.matcher(whole)
    walker, rng = Walker(of), Random(seed)
    for _ in range(150):
        if matcher.finished:
            break
        (token,) = walker.walk(matcher, rng, wander=1, limit=1, visit=lambda *_: None)
        if token in of.eos_ids or not reader.allows(token):
            # A line break before the end is the one thing that fixed order leaves to every turn.
            assert token in of.eos_ids or of.tokens[token] == b"\n"
            break
        reader.advance(token)
    assert reader.fault is None


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("format", format_names())
def test_every_format_is_written_for_every_engine(format: str, target: str) -> None:
    text = export(wire_format(format).grammar(TOOLS, POLICY, vocabulary()), target)
    assert "order in which they are declared" in text
    defined = re.findall(r"^([a-z][a-z0-9_-]*) ?:", text, re.MULTILINE)
    assert len(defined) == len(set(defined))
    for tool in TOOLS:
        assert tool.name in text


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("format", ["hermes", "qwen3_coder"])
def test_no_rule_is_written_under_the_name_of_another(format: str, target: str) -> None:
    """GBNF's beginning is `root`, its names have no underscores, and some languages know no capitals."""
    names = ("root", "start", "end", "do_it", "do-it", "Do_It", "do.it", "t_string", "t_string_2")
    properties = {name: {"type": "string"} for name in names}
    tools = [Tool(name, "", {"type": "object", "properties": properties}) for name in names]
    text = export(grammar(tools, format), target)
    defined = re.findall(r"^([A-Za-z][A-Za-z0-9_-]*) ?:", text, re.MULTILINE)
    assert len(defined) == len(set(defined))
    begin = "root" if target == "gbnf" else "start"
    assert re.search(rf"^{begin} ?:", text, re.MULTILINE)


@pytest.mark.parametrize("format", format_names())
def test_llguidance_reads_what_is_written_for_it(format: str) -> None:
    text = export(wire_format(format).grammar(TOOLS, POLICY, vocabulary()), "llguidance")
    assert not llguidance.LLMatcher.validate_grammar(llguidance.LLMatcher.grammar_from_lark(text))


@pytest.mark.parametrize("format", format_names())
def test_llguidance_reads_the_gbnf_too(format: str) -> None:
    """It has a reader of llama.cpp's language."""
    from llguidance.gbnf_to_lark import any_to_lark

    text = export(wire_format(format).grammar(TOOLS, POLICY, vocabulary()), "gbnf")
    assert "root ::=" in text
    # It drops the zeros that its own regular expressions want.
    made = re.sub(r"\\U([0-9a-f]{1,7})(?![0-9a-f])", lambda found: f"\\U{found[1]:>08}", any_to_lark(text))
    assert not llguidance.LLMatcher.validate_grammar(llguidance.LLMatcher.grammar_from_lark(made))


@given(st.sampled_from([json_string(), canonical_json_string(), compile_regex("[^a-yß]{2}[é-日😀]?x", anchored=True),
                        Words([("é€😀".encode(), None), (b"ab", None)])]), st.text(max_size=6))  # fmt: skip
@examples(60)
def test_characters_lead_where_their_bytes_do(dfa: Any, inside: str) -> None:
    for text in (inside, f'"{inside}"'):
        state = dfa.start
        for byte in text.encode():
            state = dfa.row(state)[byte] if state >= 0 else state
        by_bytes = state >= 0 and dfa.accepts(state)
        automaton, here = CharacterAutomaton(dfa), 0
        for character in text:
            following = [
                target
                for target, ranges in automaton.edges[here].items()
                if any(low <= ord(character) <= high for low, high in ranges)
            ]
            assert len(following) <= 1
            if not following:
                here = -1
                break
            here = following[0]
        assert (here in automaton.accepting) == by_bytes


def test_an_automaton_that_is_too_large_is_refused() -> None:
    with pytest.raises(TooManyStates, match="more than 20 states"):
        CharacterAutomaton(Words([(b"x" * 50, None)]), limit=20)


def test_a_pattern_that_is_too_large_is_named() -> None:
    schema = {"type": "string", "pattern": "^([a-z]{1,300},){1,50}$"}
    tool = Tool("get", "", {"type": "object", "properties": {"a": schema}, "required": ["a"]})
    with pytest.raises(TooManyStates, match="GET_0_STRING has more than 2000 states"):
        export(grammar([tool]), "gbnf")


@pytest.mark.parametrize(
    ("schema", "format", "said"),
    [
        ({"type": "string"}, "qwen3_coder", True),
        ({"type": "integer"}, "qwen3_coder", False),
        ({"type": "string"}, "hermes", False),
        ({"enum": ["left", "right"]}, "hermes", False),
        ({"anyOf": [{"enum": ["left", "right"]}, {"type": "string"}]}, "hermes", True),
        ({"type": "object", "properties": {"b": {}}, "additionalProperties": True}, "hermes", True),
    ],
)
def test_it_is_said_where_llguidances_lexer_refuses_more(
    schema: dict[str, Any], format: str, said: bool
) -> None:
    tool = Tool("get", "", {"type": "object", "properties": {"a": schema}, "required": ["a"]})
    made = grammar([tool], format)
    assert ("takes the longest literal" in export(made, "llguidance")) == said
    assert "longest literal" not in export(made, "kbnf") + export(made, "gbnf")


def test_long_bounds_are_left_out_and_said() -> None:
    tool = Tool(
        "get",
        "",
        {"type": "object", "properties": {"a": {"type": "string", "maxLength": 60_000}}, "required": ["a"]},
    )
    assert "is not kept" in export(grammar([tool]), "gbnf")
