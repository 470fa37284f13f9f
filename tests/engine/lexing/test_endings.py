"""Where tokens leave a terminal's automaton: the same as reading each of them byte by byte."""

import pytest

from larksong.engine.automata.dfa import DEAD
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
from larksong.engine.lexing.trie import TokenSet, Trie, union
from tests.support.vocabularies import vocabulary

PIECES = (
    *(
        b"\n<",
        b"\n</p",
        b"a\n</p>\n",
        b"</p>\n<p",
        b"\n</p>\n<p=x",
        b"/p>\n</f",
        b"x<ca",
        b"<call>",
        b"\n\n</p>",
    ),
    *(
        b'"',
        b'ab"',
        b'\\"',
        b"\\u00",
        b"\\ud83d\\ude00",
        b"\\",
        b'a":',
        b"12",
        b"-0.",
        b"true",
        b"tru",
        b"\xc3",
    ),
    *(
        b"\xa9a",
        b"\xe4\xb8",
        "é".encode(),
        "😀".encode(),
        "</｜".encode(),
        b"</\xef\xbd",
        "｜p>".encode(),
        b"    ",
        b"abcabc",
        b'a", "b',
    ),
)
VOCABULARY = vocabulary(PIECES)
TRIE = Trie(VOCABULARY.tokens, VOCABULARY.width)
AUTOMATA = TerminalAutomata(TRIE)
STOPS = (Stop(b"\n</p>\n<p=", ("CLOSE", "P")), Stop(b"\n</p>\n</f>", ("CLOSE", "F"), refused_from=9))
TEXT = TextUntil(STOPS, before="\n")
DEFINITIONS: dict[str, Readable] = {
    "literal": Literal("true"),
    "choice": Choice((("true", 1), ("tr", 2), ("12", 3))),
    "number": Pattern(r"-?[0-9]{1,3}(?:\.[0-9]{1,2})?"),
    "string": JsonString(),
    "bounded string": JsonString(2, 4),
    "key": JsonKey(("a", "ab")),
    "text": TEXT,
    "text that may not go on": TEXT.without(frozenset({0})),
    "text that may not end": TEXT.without(frozenset({1})),
    "bounded text": TextUntil(STOPS, before="\n", minimum=1, maximum=5),
    "text with another alphabet's markers": TextUntil(
        (Stop("</｜p>\n<｜".encode(), ("CLOSE", "P")), Stop("</｜p>\n</｜".encode(), ("CLOSE", "F")))
    ),
    "content": TextUntil((Stop(b"<call>", ("CALL",)),), open_end=True),
}


def read(automaton: TerminalAutomaton, state: int) -> dict[int, set[int]]:
    """The tokens that end inside the terminal, by end state."""
    found: dict[int, set[int]] = {}
    for token, data in enumerate(VOCABULARY.tokens):
        at = state
        for byte in data:
            at = automaton.row(at)[byte] if not automaton.final(at) else DEAD
            if at == DEAD:
                break
        else:
            if data and not automaton.final(at):
                found.setdefault(at, set()).add(token)
    return found


def ids(piece: TokenSet) -> set[int]:
    words = union([piece], TRIE.words)
    return {i for i in range(VOCABULARY.width) if words[i >> 5] >> (i & 31) & 1}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_endings_are_those_of_reading_byte_by_byte(name: str) -> None:
    automaton = AUTOMATA.get(DEFINITIONS[name])
    todo = [automaton.start]
    for state in todo:
        if len(todo) < 60:
            todo += [
                after for after in dict.fromkeys(automaton.row(state)) if after >= 0 and after not in todo
            ]
        if automaton.final(state):
            continue
        found: dict[int, set[int]] = {}
        for end, piece in automaton.endings(state, TRIE.root):
            if not automaton.final(end):
                found.setdefault(end, set()).update(ids(piece))
        assert {end: tokens for end, tokens in found.items() if tokens} == read(automaton, state), state


def test_every_token_inside_has_an_ending() -> None:
    for definition in DEFINITIONS.values():
        automaton = AUTOMATA.get(definition)
        for child in (TRIE.root, TRIE.root.child(ord("a")), TRIE.root.child(ord("\n"))):
            assert child is not None
            walk = automaton.walk(automaton.start, child)
            told = set().union(*(ids(piece) for _, piece in automaton.endings(automaton.start, child)))
            assert ids(walk.inside) <= told
