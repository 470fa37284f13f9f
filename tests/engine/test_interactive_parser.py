"""Lark's InteractiveParser as the oracle of the engine's parser.

The engine steps Lark's tables itself. Every terminal is given a letter for its text, so that the bytes that a
matcher allows are the terminals that its parser accepts; Lark steps its own tables beside it.
"""

from random import Random

from hypothesis import given, reject
from hypothesis import strategies as st
from lark import Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

from larksong.engine.engine import Engine
from larksong.engine.errors import GrammarConflict
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import Literal
from larksong.engine.matcher import Matcher
from larksong.grammars import CallPolicy, Tool
from larksong.grammars.json.rules import json_grammar
from larksong.grammars.schema import read_parameters
from tests.support.examples import examples
from tests.support.formats import every_kind
from tests.support.grammars import TooManyTerminals, ended, grammar, lark_parser, lettered, some_rules
from tests.support.masks import allowed
from tests.support.random_tools import grammar_of
from tests.support.schemas import parameters
from tests.support.vocabularies import vocabulary

VOCABULARY = vocabulary()
LETTERS = {name: Literal(name.lower()) for name in "ABCD"}
(END_ID,) = VOCABULARY.eos_ids


class Pair:
    """One turn in the engine and in Lark, terminal by terminal."""

    def __init__(self, part: Grammar, letters: dict[str, str]) -> None:
        """`part` ends with the terminal END; `letters`: the byte that stands for each other terminal."""
        self.matcher: Matcher = Engine(VOCABULARY).matcher(part)
        self.lark: InteractiveParser = lark_parser(part).parse_interactive("")
        self._ids = {name: ord(letter) for name, letter in letters.items()} | {"END": END_ID}
        self._names = {token: name for name, token in self._ids.items()}

    def engine_accepts(self) -> set[str]:
        return {self._names[token] for token in allowed(self.matcher.mask())}

    def lark_accepts(self) -> set[str]:
        return {str(name) for name in self.lark.accepts()} - {"$END"}

    def feed(self, name: str) -> None:
        self.matcher.advance(self._ids[name])
        assert self.matcher.fault is None
        self.lark.feed_token(Token(name, ""))


@given(some_rules(), st.integers(0, 2**32))
@examples(100)
def test_without_attributes_both_accept_the_same_terminals(text: str, seed: int) -> None:
    part = grammar(text, LETTERS, VOCABULARY)
    try:
        pair = Pair(part, {name: name.lower() for name in LETTERS})
    except GrammarConflict:
        reject()
    rng = Random(seed)
    for _ in range(15):
        accepted = pair.lark_accepts()
        assert pair.engine_accepts() == accepted
        for name in (*"ABCD", "END"):
            assert pair.matcher.allows(pair._ids[name]) == (name in accepted)
        chosen = rng.choice(sorted(accepted))
        pair.feed(chosen)
        if chosen == "END":
            assert pair.matcher.finished
            assert pair.lark.accepts() == {"$END"}
            break


def walk(pair: Pair, rng: Random, steps: int) -> int:
    """Walk over what the engine accepts; returns how often Lark accepted more."""
    wider = 0
    for _ in range(steps):
        mine, larks = pair.engine_accepts(), pair.lark_accepts()
        assert mine
        assert mine <= larks
        wider += mine != larks
        chosen = rng.choice(sorted(mine))
        pair.feed(chosen)
        if chosen == "END":
            break
    return wider


@every_kind
@given(st.lists(parameters(), min_size=1, max_size=2), st.booleans(), st.integers(0, 2**32))
@examples(12)
def test_with_attributes_the_engine_accepts_a_part_of_what_lark_does(
    name: str, schemas: list[dict[str, object]], required: bool, seed: int
) -> None:
    tools = [Tool(f"tool_{i}", "", schema) for i, schema in enumerate(schemas)]
    policy = CallPolicy(required=required, max_calls=2)
    turn = grammar_of(name, tools, policy, VOCABULARY)
    try:
        pair = Pair(*lettered(turn))
    except TooManyTerminals:
        reject()
    walk(pair, Random(seed), steps=40)


def members(schema: dict[str, object]) -> Pair:
    return Pair(*lettered(ended(json_grammar(read_parameters(schema, "o"), "o"), VOCABULARY)))


def terminal(pair: Pair, part: str) -> str:
    """The one terminal of Lark's next ones with `part` in its name."""
    (name,) = [name for name in pair.lark_accepts() if part in name]
    return name


def test_lark_alone_would_let_an_object_end_without_its_required_member() -> None:
    pair = members({"properties": {"a": {"type": "null"}, "b": {"type": "boolean"}}, "required": ["a"]})
    for name in ("LBRACE", "__B", "COLON", "BOOLEAN"):
        pair.feed(terminal(pair, name))
    assert pair.lark_accepts() == {"COMMA", "RBRACE"}
    assert pair.engine_accepts() == {"COMMA"}


def test_lark_alone_would_let_a_member_come_twice_and_a_comma_lead_nowhere() -> None:
    pair = members({"properties": {"a": {"type": "null"}}, "required": ["a"]})
    for name in ("LBRACE", "__A", "COLON", "NULL"):
        pair.feed(terminal(pair, name))
    assert pair.lark_accepts() == {"COMMA", "RBRACE"}
    assert pair.engine_accepts() == {"RBRACE"}
    pair.lark.feed_token(Token("COMMA", ","))
    assert any("__A" in name for name in pair.lark_accepts())


def test_lark_alone_would_let_an_array_grow_beyond_its_bound_and_end_before_it() -> None:
    schema = {"properties": {"l": {"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 2}}}
    pair = members(schema)
    for name in ("LBRACE", "__L", "COLON", "LBRACKET", "NULL"):
        pair.feed(terminal(pair, name))
    assert pair.lark_accepts() == {"COMMA", "RBRACKET"}
    assert pair.engine_accepts() == {"COMMA"}
    pair.feed("COMMA")
    pair.feed("NULL")
    assert pair.lark_accepts() == {"COMMA", "RBRACKET"}
    assert pair.engine_accepts() == {"RBRACKET"}
