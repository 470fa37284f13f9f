"""The grammar that people read allows what the grammar that runs allows."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark

from larksong.engine.engine import Engine
from larksong.engine.events import FunctionOpen, ParseEvent
from larksong.engine.grammar.expand import expand
from larksong.engine.grammar.grammar import Sub
from larksong.engine.grammar.terminals import Keys
from larksong.grammars import CallPolicy, Tool, wire_format
from larksong.grammars.errors import InvalidToolName, UnsupportedKeyword
from tests.support.calls import joined
from tests.support.examples import examples
from tests.support.formats import every_format, every_kind
from tests.support.grammars import lark_parser
from tests.support.masks import allowed
from tests.support.schemas import parameters
from tests.support.turns import TOOLS
from tests.support.vocabularies import text_of, vocabulary
from tests.support.walks import Walker

PIECES = (b"ab", b"</parameter>\n", b'"}}\n</tool', b'", "', b"<parameter=", b'{"name": "get', b"\n\n", b"12")
POLICY = CallPolicy(max_calls=2)


@every_kind
@pytest.mark.parametrize("markers", [(), ("<tool_call>", "</tool_call>")])
@given(st.lists(parameters(), min_size=1, max_size=3), st.integers(0, 2**32))
@examples(10)
def test_both_forms_allow_the_same_tokens_at_every_step(
    name: str, markers: tuple[str, ...], schemas: list[dict[str, object]], seed: int
) -> None:
    of = vocabulary(PIECES, markers)
    tools = [Tool(("get", "get_it", "other")[i], "", schema) for i, schema in enumerate(schemas)]
    try:
        part = wire_format(name).grammar(tools, POLICY, of)
    except (InvalidToolName, UnsupportedKeyword):
        return  # the format cannot write such names or members
    readable = Engine(of).matcher(expand(part))
    events: list[ParseEvent] = []
    others: list[ParseEvent] = []

    def visit(_: object, choices: set[int]) -> None:
        assert allowed(readable.mask()) == choices

    matcher = Engine(of).matcher(part)
    walker, rng = Walker(of), Random(seed)
    taken: list[int] = []
    while not matcher.finished and len(taken) < 80:
        before = matcher.fork()
        (token,) = walker.walk(matcher, rng, wander=1, limit=1, visit=visit)
        events += before.advance(token)
        others += readable.advance(token)
        taken.append(token)
    assert readable.fault is None
    assert readable.finished == matcher.finished
    # When the name is certain is told by the form that runs alone.
    assert joined(e for e in others if not isinstance(e, FunctionOpen)) == joined(
        e for e in events if not isinstance(e, FunctionOpen)
    ), text_of(of, taken)


@every_format
def test_the_readable_form_has_no_subroutine_and_a_terminal_for_each_name(name: str) -> None:
    readable = expand(wire_format(name).grammar(TOOLS, POLICY, vocabulary()))
    definitions = [terminal.definition for terminal in readable.terminals.values()]
    assert not any(isinstance(definition, Sub) for definition in definitions)
    assert all(len(definition.words) == 1 for definition in definitions if isinstance(definition, Keys))
    used = {symbol for rule in readable.rules for symbol in rule.expansion}
    assert set(readable.terminals) <= used
    text = readable.lark()
    for tool in TOOLS:
        assert tool.name in text
        for parameter in tool.parameters.get("properties", {}):
            assert parameter in text


@every_format
def test_the_readable_form_loads_in_plain_lark(name: str) -> None:
    part = wire_format(name).grammar(TOOLS, POLICY, vocabulary())
    Lark(expand(part).lark(), parser="lalr")
    lark_parser(expand(part))


@every_kind
@pytest.mark.parametrize(
    "names", [("123",), ("1", "2"), ("a-b", "a_b", "A B"), ("été", "日本"), ("start", "calls", "call")]
)
def test_any_names_make_a_readable_form_that_lark_loads(name: str, names: tuple[str, ...]) -> None:
    schema = {
        "properties": {"1": {"type": "string"}, "a-b": {"type": "null"}, "a_b": {"type": "null"}, "é": {}}
    }
    try:
        part = wire_format(name).grammar([Tool(each, "", schema) for each in names], POLICY, vocabulary())
    except InvalidToolName:
        pytest.skip(f"{name} cannot carry {names}")
    readable = expand(part)
    lark_parser(readable)
    engine = Engine(vocabulary())
    text = wire_format(name).render_call(names[-1], {"a_b": None, "é": 1}).encode()
    for form in (part, readable):
        matcher = engine.matcher(form)
        for byte in text:
            matcher.advance(byte)
        assert matcher.complete


@every_format
def test_each_of_many_tools_with_texts_reads_its_own_call(name: str) -> None:
    """Whatever is renamed where tools have different shapes, the ends of their texts lead on."""
    schemas: tuple[dict[str, object], ...] = (
        {"p": {"type": "string"}},
        {"p": {"type": "string"}, "q": {"type": "array", "items": {"type": "string"}}},
        {"o": {"type": "object", "properties": {"p": {"type": "string"}, "r": {"type": "string"}}}},
        {"p": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"p": {"type": "string"}}}]}},
    )
    given: tuple[dict[str, object], ...] = (
        {"p": "a"},
        {"p": "b", "q": ["c", "d"]},
        {"o": {"p": "e", "r": "f"}},
        {"p": {"p": "g"}},
    )
    tools = [
        Tool(f"tool{i}", "", {"type": "object", "properties": each, "required": list(each)})
        for i, each in enumerate(schemas)
    ]
    part = wire_format(name).grammar(tools, POLICY, vocabulary())
    engine = Engine(vocabulary())
    readable = expand(part)
    for tool, arguments in zip(tools, given, strict=True):
        found = []
        for form in (part, readable):
            matcher = engine.matcher(form)
            events: list[ParseEvent] = []
            for byte in wire_format(name).render_call(tool.name, arguments).encode():
                assert allowed(matcher.mask()) >= {byte}
                events += matcher.advance(byte)
            assert matcher.complete
            found.append(joined(e for e in events if not isinstance(e, FunctionOpen)))
        assert found[0] == found[1]


def test_a_grammar_without_subroutines_and_names_stays_as_it_is() -> None:
    tool = Tool("ping")
    part = wire_format("hermes").grammar([tool], CallPolicy(required=True), vocabulary())
    once = expand(part)
    twice = expand(once)
    assert once.rules == twice.rules
    assert once.terminals == twice.terminals
