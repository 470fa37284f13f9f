"""What automata take is counted, so that a server that meets new tools every day keeps within its bounds."""

import gc
import tracemalloc

import pytest

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.terminals import Choice, JsonString, Pattern, Readable, TextUntil
from larksong.engine.lexing.terminal_automata import TerminalAutomata
from larksong.engine.lexing.terminal_automaton import TerminalAutomaton
from larksong.engine.lexing.trie import Trie
from tests.support.vocabularies import vocabulary

NAMES = 300
STATES = 100


def all_automata() -> TerminalAutomata:
    of = vocabulary((*(bytes((first, second)) for first in range(97, 123) for second in range(97, 123)),))
    return TerminalAutomata(Trie(of.tokens, of.width))


def some_states(automaton: TerminalAutomaton) -> list[int]:
    found = [automaton.start]
    for state in found:
        found += [other for other in set(automaton.row(state)) if other >= 0 and other not in found]
        if len(found) > STATES:
            break
    return found


def test_the_bytes_of_names_are_counted() -> None:
    terminal_automata = all_automata()
    before = terminal_automata.meter.bytes
    tracemalloc.start()
    try:
        for number in range(NAMES):
            names = [f"read_file_{number}_{place}" for place in range(5)]
            automaton = terminal_automata.get(Choice(tuple((f'{name}", ', name) for name in names)))
            automaton.walk(automaton.start, terminal_automata.trie.root)
            state = automaton.start
            for byte in names[2].encode():
                state = automaton.row(state)[byte]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    counted = terminal_automata.meter.bytes - before
    assert taken < counted < 5 * taken


@pytest.mark.parametrize(
    "definition",
    [
        JsonString(0, 5000),
        JsonString(60, None),
        TextUntil((Stop(b"\n</value>", ("CLOSE",)),), "\n"),
        TextUntil((Stop(b"</value>", ("CLOSE",)),), maximum=300),
        Pattern("[a-z]+ [a-z]{3,90}"),
        Choice(tuple((f"colour_{number}", number) for number in range(50))),
    ],
    ids=str,
)
def test_where_tokens_and_texts_end_is_counted_and_forgotten(definition: Readable) -> None:
    terminal_automata = all_automata()
    automaton = terminal_automata.get(definition)

    def ask() -> None:
        for state in some_states(automaton):
            automaton.endings(state, terminal_automata.trie.root)
            automaton.shortest.from_state(state)

    ask()  # makes the rows, and the walks of what this automaton is made from
    automaton.forget()
    gc.collect()
    before = terminal_automata.meter.bytes
    tracemalloc.start()
    try:
        ask()
        taken, _ = tracemalloc.get_traced_memory()
        counted = terminal_automata.meter.bytes - before
        automaton.forget()
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < counted < 5 * taken
    assert left < taken / 10


def test_all_states_that_are_looked_at_for_the_farthest_end_are_counted() -> None:
    terminal_automata = all_automata()
    automaton = terminal_automata.get(Pattern("(?:ab|cd){0,90}(?:[a-z]+-)?[0-9]{3,200}"))
    before = terminal_automata.meter.bytes
    tracemalloc.start()
    try:
        assert automaton.shortest.farthest(automaton.start) is not None
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < terminal_automata.meter.bytes - before < 5 * taken
