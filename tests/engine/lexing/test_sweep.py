"""Sweeps: whole branches at once find what following every token by itself finds."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.automata.dfa import DFA, is_final
from larksong.engine.automata.languages import Language
from larksong.engine.grammar.terminals import JsonString, JsonText, Number, Pattern
from larksong.engine.lexing.sweep import Sweeper
from larksong.engine.lexing.terminal_automata import TerminalAutomata
from larksong.engine.lexing.trie import Position, Trie
from larksong.engine.lexing.walks import Walk, of_sweep
from tests.support.examples import examples

PIECES = ("a", "b", "z", "0", "7", " ", "-", '"', "\\", "n", "u0", "\n", "é", "\u00a0", "\u2028", "日", "😀")
SEARCHED = (
    "b",
    "a.b",
    "^a",
    "(a|b)*0",
    "^[a-z]+$",
    "^.{0,5}$",
    "^[^-]{2,20}$",
    "^\\S*$",
    "^(ab|z7)*$",
    "[0-9]{3}-a",
)
DEFINITIONS = (
    *(JsonText(Language(wanted=(pattern,))) for pattern in SEARCHED),
    JsonText(Language(unwanted=("a0",), excluded=("b",))),
    JsonText(Language(wanted=("^a",), minimum=2, maximum=9)),
    JsonString(),
    JsonString(1, 4),
    Number(),
    Pattern(", ?"),
    Pattern("[a-z]*0?"),
)  # fmt: skip


@st.composite
def vocabularies(draw: st.DrawFn) -> list[bytes]:
    rng = random.Random(draw(st.integers(0, 2**32)))
    tokens: set[bytes] = set()
    for _ in range(draw(st.integers(1, 300))):
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 5))).encode()
        tokens.add(text[rng.choice((0, 0, 0, 1)) : len(text) - rng.choice((0, 0, 0, 1))])
    tokens |= {b"-" * size for size in (3, 9, 40)} | {b"a" * size for size in (2, 30)}
    return [*(tokens - {b""}), *map(bytes, zip(range(256), strict=True))]


Found = tuple[set[int], set[tuple[int, bytes]]]


def one_by_one(dfa: DFA, state: int, tokens: list[bytes]) -> Found:
    """The tokens that end inside, and the pairs (token, what of it is behind the end)."""
    inside: set[int] = set()
    left: set[tuple[int, bytes]] = set()
    for number, token in enumerate(tokens):
        here = state
        for at, byte in enumerate(token):
            following = dfa.row(here)[byte]
            if following < 0:
                if dfa.accepts(here):
                    left.add((number, token[at:]))
                break
            here = following
            if is_final(dfa, here):
                left.add((number, token[at + 1 :]))
                break
        else:
            inside.add(number)
    return inside, left


def behind(position: Position, tokens: list[bytes]) -> set[tuple[int, bytes]]:
    """The tokens of a position, each with the bytes that are still to come."""
    trie = position.trie
    found = {(number, b"") for number in position.ids.tolist()}
    todo = [(node, b"") for node in position.nodes.tolist()]
    for node, path in todo:
        path += bytes([trie.byte[node]])
        found |= {
            (token, path) for token in trie.ids[trie.first_token[node] : trie.last_token[node]].tolist()
        }
        todo += [(child, path) for child in range(trie.first_child[node], trie.last_child[node])]
    assert all(tokens[number].endswith(rest) for number, rest in found)
    return found


def found(walk: Walk, tokens: list[bytes]) -> Found:
    words = walk.inside.words
    bits = [] if words is None else np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    left = {each for _, position in walk.crossings for each in behind(position, tokens)}
    return {*walk.inside.ids, *map(int, bits)}, left


@given(vocabularies(), st.sampled_from(DEFINITIONS), st.integers(0, 2**32))
@examples(50)
def test_a_sweep_finds_what_each_token_does(
    tokens: list[bytes], definition: JsonText | JsonString | Number | Pattern, seed: int
) -> None:
    rng = random.Random(seed)
    dfa = definition.dfa()
    trie = Trie(tokens, len(tokens))
    state = dfa.start
    for _ in range(rng.randint(0, 6)):
        alive = [following for following in dfa.row(state) if following >= 0]
        state = rng.choice(alive) if alive else state
    if is_final(dfa, state):
        return
    sweeper = Sweeper(dfa)
    for ends in (True, False):
        sweep = sweeper.sweep(state, trie.root, ends=ends)
        walk = of_sweep(sweep, trie, lambda state: None)
        assert found(walk, tokens) == one_by_one(dfa, state, tokens)
        if ends:
            assert {*sweep.ids.tolist()} == found(walk, tokens)[0]


@given(vocabularies(), st.sampled_from(SEARCHED), st.integers(0, 3), st.integers(0, 2**32))
@examples(12)
def test_far_from_its_bounds_a_text_is_walked_as_if_there_were_none(
    tokens: list[bytes], pattern: str, minimum: int, seed: int
) -> None:
    rng = random.Random(seed)
    trie = Trie(tokens, len(tokens))
    for maximum in (5, 12, 60, None):
        automaton = TerminalAutomata(trie).get(
            JsonText(Language((pattern,), minimum=minimum, maximum=maximum))
        )
        state = automaton.start
        for _ in range(rng.randint(0, 8)):
            alive = [following for following in automaton.row(state) if following >= 0]
            if alive and not automaton.final(state):
                state = rng.choice(alive)
        if not automaton.final(state):
            assert found(automaton.walk(state, trie.root), tokens) == one_by_one(automaton.dfa, state, tokens)


def test_the_same_places_are_one_position() -> None:
    trie = Trie([b"a", b"ab", b"b"], 3)
    nodes, ids = np.array([1, 2]), np.array([0])
    assert trie.position(nodes, ids) is trie.position(nodes.copy(), ids.copy())
    assert trie.position(nodes, ids) is not trie.position(nodes[:1], ids)


class Scattered:
    """An automaton whose numbers are far apart, as those of a product of which few states are read."""

    FACTOR = 1009

    def __init__(self, dfa: DFA) -> None:
        self._dfa = dfa
        self.start = dfa.start * self.FACTOR

    def row(self, state: int) -> list[int]:
        return [max(to * self.FACTOR, -1) for to in self._dfa.row(state // self.FACTOR)]

    def accepts(self, state: int) -> bool:
        return self._dfa.accepts(state // self.FACTOR)


@given(vocabularies(), st.sampled_from(DEFINITIONS), st.integers(0, 2**32))
@examples(10)
def test_states_with_numbers_far_apart_are_kept_while_the_table_grows(
    tokens: list[bytes], definition: JsonText | JsonString | Number | Pattern, seed: int
) -> None:
    rng = random.Random(seed)
    dfa = Scattered(definition.dfa())
    trie = Trie(tokens, len(tokens))
    sweeper = Sweeper(dfa)
    state = dfa.start
    for _ in range(8):
        if is_final(dfa, state):
            return
        walk = of_sweep(sweeper.sweep(state, trie.root), trie, lambda state: None)
        assert found(walk, tokens) == one_by_one(dfa, state, tokens)
        state = rng.choice([following for following in dfa.row(state) if following >= 0] or [state])
