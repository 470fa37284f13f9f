"""What terminal_automata take is counted, so that a server that meets new tools every day keeps within its bounds."""

import tracemalloc

from larksong.engine.grammar.terminals import Choice
from larksong.engine.lexing.terminal_automata import TerminalAutomata
from larksong.engine.lexing.trie import Trie
from tests.support.vocabularies import vocabulary

NAMES = 300


def test_the_bytes_of_names_are_counted() -> None:
    of = vocabulary()
    terminal_automata = TerminalAutomata(Trie(of.tokens, of.width))
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
