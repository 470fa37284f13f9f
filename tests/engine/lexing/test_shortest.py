"""The shortest way out of a terminal, from every state."""

import pytest

from larksong.engine.automata.dfa import DFA
from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.terminals import (
    Choice,
    JsonKey,
    JsonString,
    Literal,
    Pattern,
    Readable,
    TextUntil,
)
from larksong.engine.lexing.terminal_automata import TerminalAutomata
from larksong.engine.lexing.terminal_automaton import TerminalAutomaton
from larksong.engine.lexing.trie import Trie
from tests.support.dfas import states
from tests.support.vocabularies import BYTES

AUTOMATA = TerminalAutomata(Trie(BYTES, 256))
STOPS = (Stop(b"\n</p>\n<p=", ("CLOSE", "P")), Stop(b"\n</p>\n</f>", ("CLOSE", "F"), refused_from=9))
DEFINITIONS: dict[str, Readable] = {
    "literal": Literal('{"name": "'),
    "choice": Choice((("read", 1), ("write", 2), ("r", 3))),
    "alternative spellings": Choice((("true", "true"), ("True", "true"), ("false", "false"))),
    "integer": Pattern(r"-?(?:0|[1-9][0-9]{0,4})"),
    "string": JsonString(),
    "bounded string": JsonString(3, 5),
    "key": JsonKey(("a", "é")),
    "text": TextUntil(STOPS, before="\n"),
    "text with one stop": TextUntil(STOPS, before="\n").without(frozenset({1})),
    "bounded text": TextUntil(STOPS, before="\n", minimum=2, maximum=4),
    "bounded text with another alphabet's marker": TextUntil((Stop("</｜p｜>".encode(), ("P",)),), maximum=2),
    "content": TextUntil((Stop(b"<call>", ("CALL",)),), open_end=True),
}


def distances(of: TerminalAutomaton, dfa: DFA, state: int) -> dict[object, int]:
    """The bytes to each outcome, level by level."""
    found: dict[object, int] = {}
    level, seen, distance = {state}, {state}, 0
    while level:
        for at in level:
            if dfa.accepts(at):
                found.setdefault(of.outcome(at), distance)
        level = {after for at in level for after in dfa.row(at) if after >= 0} - seen
        seen |= level
        distance += 1
    return found


@pytest.mark.parametrize("name", DEFINITIONS)
def test_each_outcome_has_its_shortest_text(name: str) -> None:
    of = AUTOMATA.get(DEFINITIONS[name])
    for state in states(of.dfa):
        wanted = distances(of, of.dfa, state)
        found = {}
        for text, end in of.shortest.from_state(state):
            at = state
            for byte in text:
                at = of.row(at)[byte]
            assert at == end
            assert of.accepts(end)
            found[of.outcome(end)] = len(text)
        # Of a text with bounds a way that is longer than another one may be left out.
        assert found == wanted or (found.items() <= wanted.items() and "bounded" in name)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_no_state_is_farther_than_the_bound(name: str) -> None:
    of = AUTOMATA.get(DEFINITIONS[name])
    for state in states(of.dfa):
        bound = of.shortest.farthest(state)
        assert bound is not None
        behind = [after for after in of.row(state) if after >= 0]
        assert all(len(end.text) <= bound for at in [state, *behind] for end in of.shortest.from_state(at))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_way_from_a_place_on_a_way_is_its_rest(name: str) -> None:
    of = AUTOMATA.get(DEFINITIONS[name])
    for state in states(of.dfa):
        for text, end in of.shortest.from_state(state):
            at = state
            for i, byte in enumerate(text, start=1):
                at = of.row(at)[byte]
                assert (text[i:], of.outcome(end)) in [
                    (t, of.outcome(e)) for t, e in of.shortest.from_state(at)
                ]


def test_long_minimum_is_filled_with_blanks_at_once() -> None:
    of = AUTOMATA.get(JsonString(60_000, None))
    ((text, _),) = of.shortest.from_state(of.row(of.start)[ord('"')])
    assert text == b" " * 60_000 + b'"'


def test_ordinary_bytes_are_preferred() -> None:
    of = AUTOMATA.get(Pattern("[^x]{2}[\\x01-~]"))
    ((text, _),) = of.shortest.from_state(of.start)
    assert text == b"   "
