"""What lexemes take is counted, so that a server that meets new tools every day keeps within its bounds."""

import tracemalloc

from larksong.engine.lexemes import Lexemes
from larksong.engine.terminals import Choice
from larksong.engine.trie import Trie
from tests.support.vocabularies import vocabulary

NAMES = 300


def test_the_bytes_of_names_are_counted() -> None:
    of = vocabulary()
    lexemes = Lexemes(Trie(of.tokens, of.width))
    before = lexemes.meter.bytes
    tracemalloc.start()
    try:
        for number in range(NAMES):
            names = [f"read_file_{number}_{place}" for place in range(5)]
            lexeme = lexemes.get(Choice(tuple((f'{name}", ', name) for name in names)))
            lexeme.walk(lexeme.start, lexemes.trie.root)
            state = lexeme.start
            for byte in names[2].encode():
                state = lexeme.row(state)[byte]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    counted = lexemes.meter.bytes - before
    assert taken < counted < 5 * taken
