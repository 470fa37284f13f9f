"""What an engine keeps goes away with it."""

import gc
from weakref import ref

import pytest

from larksong.engine.automata.text_until import Stop
from larksong.engine.engine import Engine
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import JsonString, Literal, Pattern, Role, TextUntil
from larksong.engine.matcher import Matcher
from larksong.engine.parsing.token_automaton import TokenAutomaton
from larksong.engine.reading.reader import TextReader
from larksong.engine.vocabulary import Vocabulary
from tests.support.grammars import grammar
from tests.support.vocabularies import BYTES, cut

TEXT = b"a text, 12 <end>" + b'"bounded"'


def new_vocabulary() -> Vocabulary:
    return Vocabulary(
        tokens=(*BYTES, b"te", b'",', b""), special={"<eos>": 258}, eos_ids=frozenset({258}), width=259
    )


def a_grammar(vocabulary: Vocabulary) -> Grammar:
    return grammar(
        "start: CONTENT OPEN STRING | STRING NUMBER",
        {
            "CONTENT": (TextUntil((Stop(b"<end>", ("OPEN",)),)), Role.CONTENT),
            "OPEN": Literal("<end>"),
            "STRING": (JsonString(0, 20), Role.JSON),
            "NUMBER": Pattern("[0-9]{1,18}"),
        },
        vocabulary,
    )


def finish(matcher: Matcher) -> None:
    """Write the text near the end of a budget, and what is left in the fewest tokens."""
    for left in (30, 20, 10, matcher.needed()):
        matcher.mask_within(left)
    matcher.forced()
    matcher.likely()


def test_nothing_of_a_vocabulary_or_grammar_outlives_its_engine() -> None:
    vocabulary = new_vocabulary()
    of = a_grammar(vocabulary)
    engine = Engine(vocabulary)
    engine.warm_up()
    matcher = engine.matcher(of)
    for token in cut(vocabulary, TEXT[:-1]):
        assert matcher.allows(token)
        matcher.mask()
        finish(matcher)
        matcher.advance(token)
    automaton, by_bytes = engine.automaton(of), engine.byte_automaton(of)
    reader = TextReader(by_bytes, by_bytes, by_bytes)
    assert reader.feed(TEXT)
    reader.finish()
    terminals = [thread.bound.automaton for thread in matcher.configuration.threads]
    assert terminals
    seen = [ref(each) for each in (vocabulary, engine.trie, of, automaton, by_bytes, *terminals, engine)]
    del vocabulary, of, engine, matcher, automaton, by_bytes, reader, terminals
    gc.collect()
    assert [each() for each in seen if each() is not None] == []


def test_to_ask_for_a_grammar_costs_no_more_the_more_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = new_vocabulary()
    measured = 0
    size = TokenAutomaton.size

    def counted(automaton: TokenAutomaton) -> int:
        nonlocal measured
        measured += 1
        return size(automaton)

    monkeypatch.setattr(TokenAutomaton, "size", counted)
    engine = Engine(vocabulary)
    grammars = [a_grammar(vocabulary) for _ in range(300)]
    for _ in range(2):
        for each in grammars:
            engine.matcher(each)
    assert measured < 2 * 300 * 20


def test_what_many_grammars_take_is_kept_within_bounds() -> None:
    vocabulary = new_vocabulary()
    one = Engine(vocabulary).automaton(a_grammar(vocabulary)).size()
    engine = Engine(vocabulary, cache_bytes=100 * one)
    automata = [ref(engine.automaton(a_grammar(vocabulary))) for _ in range(300)]
    gc.collect()
    assert 80 < sum(automaton() is not None for automaton in automata) < 120
