"""From everywhere in a turn there is a shortest way to finish it, and it leads to a valid end."""

import inspect
import sys
from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from larksong.engine.engine import Engine
from larksong.engine.grammar.grammar import Grammar, Sub, Terminal
from larksong.engine.grammar.terminals import Choice, JsonString, Literal, Pattern, Role, Special
from larksong.engine.lexing.path import Piece
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, format_names, wire_format
from larksong.grammars.answers.response_format import response_grammar
from tests.support.emitted import emitted_calls
from tests.support.examples import examples
from tests.support.grammars import grammar, rules
from tests.support.masks import allowed
from tests.support.random_tools import grammar_of, of_kind, policies, some_tools
from tests.support.schemas import meaning
from tests.support.turns import TOOLS
from tests.support.vocabularies import vocabulary
from tests.support.walks import Walker

BOTH = pytest.mark.parametrize("name", ["hermes", "qwen3_coder"])  # calls in JSON, and in elements
MARKERS = ("<tool_call>", "</tool_call>")
PIECES = (
    *(
        b"\n<",
        b"</",
        b"<parameter=",
        b"\n</parameter>\n",
        b"parameter",
        b"<function=",
        b">\n",
        b"\n\n",
        b"  ",
    ),
    *(b'{"', b'"}', b'"}}', b'": ', b'": "', b'", "', b'",', b'":', b", ", b"},", b"]}", b"[]", b"{}", b'""'),
    *(
        b"<tool_call>\n",
        b'{"name": "',
        b"read",
        b"_file",
        b"arguments",
        b"true",
        b"null",
        b"city",
        b"12",
        b"\\u00",
    ),
)
VOCABULARIES = {"markers": vocabulary(PIECES, MARKERS), "letters": vocabulary(PIECES), "bytes": vocabulary()}
ENGINES = {name: Engine(of) for name, of in VOCABULARIES.items()}
WALKERS = {name: Walker(of) for name, of in VOCABULARIES.items()}
REQUIRED = CallPolicy(required=True, min_calls=1)


def shortest(matcher: Matcher) -> tuple[Piece, ...]:
    return matcher._budget_masks.completion.shortest(matcher._trail[-1])


def write(matcher: Matcher, pieces: Iterable[Piece]) -> list[int]:
    """The pieces byte by byte, special tokens as they are."""
    return [token for piece in pieces for token in ([piece] if isinstance(piece, int) else piece)]


def check_calls(matcher: Matcher, tokens: Iterable[int], tools: Iterable[Tool]) -> None:
    """Read the whole turn with a fresh matcher: its calls are complete and fit their schemas."""
    events = []
    for token in tokens:
        events += matcher.advance(token)
        assert matcher.fault is None
    assert matcher.finished
    by_name = {tool.name: tool for tool in tools}
    for call in emitted_calls([*events, *matcher.finish()]):
        assert call.arguments is not None
        Draft202012Validator(meaning(by_name[call.name].parameters, closed=True)).validate(call.arguments)


@given(
    st.sampled_from(format_names()),
    some_tools(),
    policies,
    st.sampled_from(sorted(ENGINES)),
    st.randoms(use_true_random=False),
)
@examples(60)
def test_shortest_ways_are_valid_ends(
    name: str, tools: list[Tool], policy: CallPolicy, kind: str, rng: Random
) -> None:
    kind = of_kind(kind, name)
    engine = ENGINES[kind]
    made = grammar_of(name, tools, policy, engine.vocabulary)
    seen: list[int] = []

    def visit(matcher: Matcher, choices: set[int]) -> None:
        rest = write(matcher, shortest(matcher))
        assert matcher.needed() <= len(rest)
        check_calls(engine.matcher(made), [*matcher._tokens, *rest], tools)
        seen.append(matcher.needed())

    WALKERS[kind].walk(engine.matcher(made), rng, wander=40, limit=40, visit=visit)
    assert all(cost >= 1 for cost in seen)


@given(st.sampled_from(format_names()), some_tools(), policies, st.randoms(use_true_random=False))
@examples(15)
def test_needed_is_reached_and_falls_with_some_token(
    name: str, tools: list[Tool], policy: CallPolicy, rng: Random
) -> None:
    kind = of_kind("markers", name)
    engine = ENGINES[kind]
    matcher = engine.matcher(grammar_of(name, tools, policy, engine.vocabulary))
    WALKERS[kind].walk(matcher, rng, wander=rng.randint(0, 60), limit=rng.randint(0, 60))
    while not matcher.finished:
        needed = matcher.needed()
        costs = []
        for token in rng.sample(sorted(tokens := allowed(matcher.mask())), min(40, len(tokens))):
            at = matcher.fork()
            at.advance(token)
            costs.append((at.needed(), token))
        # The filter knows the tokens that lead there, and no others.
        near = allowed(matcher.mask_within(needed))
        assert near
        # Between two terminals the filter goes by the shortest text, which may take a token more than another.
        assert all(cost < needed for cost, token in costs if token in near)
        assert all(cost >= needed - 2 for cost, token in costs if token not in near)
        matcher.advance(rng.choice(sorted(near)))
        assert matcher.needed() <= needed - 1


SCALARS: dict[str, dict[str, object]] = {
    "strings": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    "a long string": {"type": "string", "minLength": 4},
    "members in any order": {
        "type": "object",
        "properties": {"bb": {"type": "boolean"}, "a": {"enum": ["x", "yy"]}, "c": {}},
        "required": ["a", "bb"],
        "additionalProperties": False,
    },
    "arrays": {
        "type": "array",
        "minItems": 2,
        "items": {"anyOf": [{"type": "array", "minItems": 1}, {"const": "long one"}]},
    },
    "unions": {
        "anyOf": [{"const": "abcdef"}, {"type": "array", "minItems": 1, "items": {"type": "boolean"}}]
    },
}


@pytest.mark.parametrize("name", SCALARS)
def test_needed_bytes_are_the_fewest_there_are(name: str) -> None:
    engine = ENGINES["bytes"]
    matcher = engine.matcher(response_grammar(SCALARS[name], engine.vocabulary))
    automaton = matcher._automaton
    level, seen, steps = [automaton.start], {automaton.start}, 0
    while not any(configuration.end for configuration in level):
        following = []
        for configuration in level:
            for token in allowed(automaton.mask(configuration)):
                edge = automaton.edge(configuration, token)
                assert edge is not None
                if edge.target not in seen:
                    seen.add(edge.target)
                    following.append(edge.target)
        level, steps = following, steps + 1
    assert matcher.needed() == steps


def test_content_can_end_at_once() -> None:
    of = VOCABULARIES["markers"]
    for name in ("hermes", "qwen3_coder"):
        matcher = ENGINES["markers"].matcher(wire_format(name).grammar(TOOLS, CallPolicy(), of))
        assert matcher.needed() == 1
        for token in b"The weather is fine. <tool":
            matcher.advance(token)
            assert matcher.needed() == 1


def test_finished_and_failed_turns_need_nothing_more() -> None:
    (end,) = VOCABULARIES["bytes"].eos_ids
    made = wire_format("hermes").grammar(TOOLS, CallPolicy(), VOCABULARIES["bytes"])
    finished, failed = ENGINES["bytes"].matcher(made), ENGINES["bytes"].matcher(made)
    finished.advance(end)
    assert finished.needed() == 0
    failed.advance(0xFF)
    assert failed.needed() == 1
    assert failed.mask_within(5) is failed.end_mask


# -- what the search does not do


def many_unions(count: int) -> dict[str, object]:
    """`count` required unions of nested arrays with minItems and objects of further unions."""
    leaf = {
        "anyOf": [
            {"type": "boolean"},
            {
                "type": "array",
                "minItems": 3,
                "items": {"type": "array", "minItems": 3, "items": {"type": "string"}},
            },
            {
                "type": "object",
                "properties": {
                    f"k{i}": {"anyOf": [{"type": "null"}, {"type": "array", "minItems": 4}]} for i in range(6)
                },
                "required": [f"k{i}" for i in range(6)],
            },
        ]
    }
    nested = {"type": "array", "minItems": 3, "items": {"type": "array", "minItems": 3, "items": leaf}}
    pair = {"type": "object", "properties": {"x": leaf, "y": nested}, "required": ["x", "y"]}
    return {
        "type": "object",
        "properties": {f"p{i}": leaf if i % 2 else {"anyOf": [nested, pair]} for i in range(count)},
        "required": [f"p{i}" for i in range(count)],
    }


@BOTH
def test_the_search_is_linear_in_the_members(name: str) -> None:
    engine = ENGINES["bytes"]
    begun = {
        "hermes": b'<tool_call>\n{"name": "t", "arguments": {"p0":',
        "qwen3_coder": b"<tool_call>\n<function=t>\n<parameter=p0>\n",
    }
    known = []
    for count in (10, 20, 40):
        tool = Tool("t", parameters=many_unions(count))
        matcher = engine.matcher(wire_format(name).grammar([tool], REQUIRED, engine.vocabulary))
        for byte in begun[name]:
            matcher.advance(byte)
        assert matcher.needed() > 10 * count
        known.append(len(matcher._budget_masks.completion))
    assert known[1] < 2.5 * known[0]
    assert known[2] < 2.5 * known[1]


@BOTH
def test_deeply_nested_values_need_no_deep_recursion(name: str) -> None:
    schema: dict[str, object] = {"type": "array", "minItems": 1, "items": {"const": "x"}}
    for _ in range(45):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    engine = ENGINES["bytes"]
    matcher = engine.matcher(
        wire_format(name).grammar([Tool("t", parameters=schema)], REQUIRED, engine.vocabulary)
    )
    begun = {
        "hermes": b'<tool_call>\n{"name": "t", "arguments": ',
        "qwen3_coder": b"<tool_call>\n<function=t>\n",
    }[name]
    for byte in begun:
        matcher.advance(byte)
    matcher.mask()
    closed_form = matcher.needed()
    frames = len(inspect.stack())
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(frames + 300)
    try:
        tokens = write(matcher, shortest(matcher))
    finally:
        sys.setrecursionlimit(limit)
    assert len(tokens) == closed_form > 45 * len('{"a":}')
    for token in tokens:
        matcher.advance(token)
    assert matcher.finished


def a_call(*, built: list[object]) -> Grammar:
    """A grammar that enters another one by name, like a wire format; `built`: the names it was asked for."""

    inner = Grammar(rules("start: VALUE"), {"VALUE": Terminal("VALUE", JsonString(), Role.JSON)})

    def choose(name: object) -> Grammar:
        built.append(name)
        return inner

    of = VOCABULARIES["bytes"]
    made = grammar(
        "start: NAME VALUE CLOSE",
        {"NAME": (Choice((("a:", "a"), ("ab:", "ab"))), Role.FUNCTION_OPEN), "CLOSE": Literal(";")},
        of,
    )
    texts = {"a": '"a long one"', "ab": '""'}
    entered = Terminal("VALUE", Sub(choose, lambda name: texts[str(name)]))
    return Grammar(made.rules, {**made.terminals, "VALUE": entered}, start=made.start)


def test_finishing_builds_no_grammar_that_was_not_called() -> None:
    built: list[object] = []
    matcher = ENGINES["bytes"].matcher(a_call(built=built))
    assert matcher.needed() == len('ab:"";') + 1
    assert shortest(matcher)[:2] == (b"ab:", b'""')
    matcher.mask_within(matcher.needed())
    matcher.advance(ord("a"))
    matcher.mask_within(9)
    assert built == []
    assert allowed(matcher.mask_within(9)) == {ord("b")}
    # Called for real, it is built; the shortest way is then its own.
    matcher.advance(ord("b"))
    matcher.advance(ord(":"))
    matcher.mask()
    assert set(built) == {"ab"}
    assert matcher.needed() == len('"";') + 1


def test_a_terminal_that_may_go_on_ends_where_the_next_one_cannot_belong_to_it() -> None:
    of = VOCABULARIES["bytes"]
    made = grammar(
        "start: DIGITS tail\ntail: LONG | SHORT",
        {"DIGITS": Pattern("[0-9]{1,3}"), "SHORT": Literal("1"), "LONG": Literal("end")},
        of,
    )
    matcher = Engine(of).matcher(made)
    assert shortest(matcher)[:2] == (b"0", b"end")
    assert matcher.needed() == 5


def test_a_special_token_counts_as_one() -> None:
    of = vocabulary(markers=("<a very long marker>",))
    made = grammar(
        "start: X MARK",
        {"X": Literal("x"), "MARK": Special(frozenset({of.special["<a very long marker>"]}), "m")},
        of,
    )
    assert Engine(of).matcher(made).needed() == 3


@BOTH
def test_a_large_vocabulary_needs_no_more_tokens(name: str, smollm2_vocabulary: Vocabulary) -> None:
    small = ENGINES["letters"]
    wide = Engine(smollm2_vocabulary)
    needed = [
        engine.matcher(wire_format(name).grammar(TOOLS, REQUIRED, engine.vocabulary)).needed()
        for engine in (small, wide)
    ]
    assert needed[1] <= needed[0] < len("<tool_call></tool_call>") + 60
