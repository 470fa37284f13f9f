"""What reading keeps is counted: a server reads the turns of ever new tools."""

import tracemalloc

import pytest

from larksong.engine.engine import Engine
from larksong.engine.reading.byte_automaton import ByteAutomaton
from larksong.engine.reading.reader import TextReader
from larksong.grammars import Tool, wire_format
from tests.support.vocabularies import vocabulary

PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}, "n": {}}}
TOOLS = [Tool(name=f"tool_{number}", parameters=PARAMETERS) for number in range(30)]
VOCABULARY = vocabulary()


def read(name: str, automaton: ByteAutomaton) -> None:
    for tool in TOOLS:
        call = wire_format(name).render_call(tool.name, {"text": "naïve \\ <b>", "n": [1, {"x": None}]})
        TextReader(automaton, automaton, automaton).feed(call.encode())


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder"])
def test_what_is_known_of_bytes_is_counted(name: str) -> None:
    grammar = wire_format(name).open_grammar(TOOLS, VOCABULARY)
    automaton = Engine(VOCABULARY).byte_automaton(grammar)
    read(name, automaton)
    # The same again in a second one: what the token automaton keeps is there already.
    second = ByteAutomaton(automaton.token_automaton)
    tracemalloc.start()
    try:
        read(name, second)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < second.size() < 5 * taken


def test_an_engine_begins_anew_what_has_read_too_much() -> None:
    grammar = wire_format("hermes").open_grammar(TOOLS, VOCABULARY)
    large = Engine(VOCABULARY)
    automaton = large.byte_automaton(grammar)
    read("hermes", automaton)
    assert large.byte_automaton(grammar) is automaton
    small = Engine(VOCABULARY, cache_bytes=2 * (automaton.token_automaton.size() + automaton.size() // 2))
    automaton = small.byte_automaton(grammar)
    read("hermes", automaton)
    assert small.byte_automaton(grammar) is not automaton
