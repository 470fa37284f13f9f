"""Lark's tables as the engine steps them, compared with what Lark makes of the printed grammar."""

from collections import deque

import pytest
from hypothesis import event, given
from lark import Lark
from lark.exceptions import GrammarError
from lark.parsers.lalr_analysis import IntParseTable, Shift

from larksong.engine.errors import GrammarConflict
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import Literal
from larksong.engine.parsing.tables import END, Production, State, Symbols
from larksong.grammars import CallPolicy, InvalidToolName, Tool, format_names, wire_format
from larksong.grammars.schema import read_parameters
from tests.support.examples import examples
from tests.support.grammars import NoLexer, grammar, lark_parser, some_rules
from tests.support.schemas import parameters
from tests.support.vocabularies import vocabulary

LETTERS = {name: Literal(name.lower()) for name in "ABCDE"}


def check_isomorphic(part: Grammar) -> int:
    """Walk both tables side by side from their starts; returns how many states there are."""
    symbols = Symbols(part)
    names = {number: name for name, number in symbols.number.items()} | {END: "$END"}
    table: IntParseTable = lark_parser(part).parser.parser._parse_table
    pairs: dict[State, int] = {}
    pending = deque([(symbols.tables.start, table.start_states[part.start])])
    while pending:
        state, index = pending.popleft()
        if state in pairs:
            assert pairs[state] == index
            continue
        pairs[state] = index
        row = table.states[index]
        if state is symbols.tables.accept:
            assert not row
            continue
        mine = {names[symbol]: found for symbol, found in (*state.actions.items(), *state.gotos.items())}
        assert set(mine) == set(row)
        for name, (action, argument) in row.items():
            found = mine[name]
            if action is Shift:
                assert isinstance(found, State)
                pending.append((found, argument))
            else:
                assert isinstance(found, Production)
                rule = part.rules[found.index]
                assert (names[found.origin], found.size) == (rule.origin, len(rule.expansion))
                assert rule.origin == argument.origin.name
                assert rule.expansion == tuple(symbol.name for symbol in argument.expansion)
    assert pairs[symbols.tables.accept] == table.end_states[part.start]
    assert len(set(pairs.values())) == len(pairs) == len(table.states)
    return len(pairs)


@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("markers", [(), ("<tool_call>", "</tool_call>")])
def test_an_envelope_has_the_tables_of_its_printed_text(
    name: str, required: bool, markers: tuple[str, ...]
) -> None:
    tools = [Tool("get_weather", "", {"properties": {"city": {"type": "string"}}}), Tool("no-arguments")]
    policy = CallPolicy(required=required, max_calls=3)
    assert check_isomorphic(wire_format(name).grammar(tools, policy, vocabulary(markers=markers))) > 8


@pytest.mark.parametrize("name", format_names())
@given(parameters())
@examples(10)
def test_a_tool_has_the_tables_of_its_printed_text(name: str, schema: dict[str, object]) -> None:
    read = read_parameters(schema, "tool")
    check_isomorphic(wire_format(name).arguments(Tool("tool", "", schema), read))


TOOL_NAMES = ["123", "1", "_", "été", "x y", "start", "Value", "any_object", 'q"\\', "日本"]


@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_any_name_that_a_format_carries_prints_as_lark_text(name: str, tool: str) -> None:
    schema = {"properties": {"é": {"type": "string"}, "1": {}, "other": {"enum": ["😀", "a/b", "\\", 1]}}}
    wire = wire_format(name)
    read = read_parameters(schema, tool)
    try:
        made = wire.grammar([Tool(tool, "", schema)], CallPolicy(), vocabulary())
    except InvalidToolName:
        pytest.skip(f"{name} cannot carry {tool!r}")
    check_isomorphic(wire.arguments(Tool(tool, "", schema), read))
    check_isomorphic(made)


@pytest.mark.parametrize("name", format_names())
def test_the_printed_text_loads_in_plain_lark(name: str) -> None:
    schema = {
        "properties": {
            "text": {"type": "string"},
            "short": {"type": "string", "maxLength": 3},
            "list": {"type": "array", "items": {"type": ["number", "null"]}},
            "object": {"type": "object", "properties": {"a/b": {"enum": ["x", 1]}}},
        }
    }
    wire = wire_format(name)
    tool = Tool("tool", "", schema)
    read = read_parameters(schema, "tool")
    Lark(wire.arguments(tool, read).lark(), parser="lalr")
    Lark(wire.grammar([tool], CallPolicy(), vocabulary()).lark(), parser="lalr")


def test_printed_json_reads_json_in_plain_lark() -> None:
    schema = {
        "properties": {"text": {"type": "string"}, "list": {"type": "array", "items": {"type": "integer"}}},
    }
    read = read_parameters(schema, "tool")
    text = wire_format("hermes").arguments(Tool("tool", "", schema), read).lark()
    parser = Lark(text, parser="lalr")
    tree = parser.parse('{"list": [1, 23], "text": "a \\" é"}')
    found = {
        token.type: str(token)
        for token in tree.scan_values(lambda token: token.type in ("STRING", "INTEGER"))
    }
    assert found == {"STRING": '"a \\" é"', "INTEGER": "23"}


AMBIGUOUS = {
    "two ways to reduce": "start: a | b\n a: A\n b: A",
    "no end to an else": "start: A start | A start B start | C",
    "either side first": "start: start B start | A",
}


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_an_ambiguous_grammar_is_refused(text: str) -> None:
    with pytest.raises(GrammarConflict, match=r"is not LALR\(1\): \w"):
        Symbols(grammar(text, LETTERS, vocabulary()))


@given(some_rules())
@examples(100)
def test_lark_and_the_engine_agree_on_any_grammar(text: str) -> None:
    """Both have the same tables, or both find that the grammar is not LALR(1)."""
    letters = {name: LETTERS[name] for name in "ABCD"}
    part = grammar(text, letters, vocabulary())
    try:
        parser: Lark | None = lark_parser(part)
    except GrammarError:
        parser = None
    event("LALR(1)" if parser else "not LALR(1)")
    if parser is None:
        with pytest.raises(GrammarConflict):
            Symbols(part)
    else:
        check_isomorphic(part)


def test_a_lark_grammar_without_a_lexer_still_finds_conflicts() -> None:
    """What the comparison rests on: `strict` is about the rules too."""
    with pytest.raises(GrammarError):
        Lark(
            'start: A start | A start B start | C\nA: "a"\nB: "b"\nC: "c"',
            parser="lalr",
            strict=True,
            lexer=NoLexer,
        )
