"""The matcher: going forth and back, forks, refused tokens, the end of the text."""

import logging
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.automata.text_until import Stop
from larksong.engine.engine import Engine
from larksong.engine.errors import NoEndToken
from larksong.engine.events import (
    CallClose,
    Content,
    FunctionOpen,
    Json,
    ParameterClose,
    ParameterOpen,
    ParseEvent,
    Reasoning,
    Text,
)
from larksong.engine.grammar.terminals import JsonString, Literal, Role, TextUntil
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, wire_format
from tests.support.calls import joined, read
from tests.support.examples import examples
from tests.support.formats import every_kind
from tests.support.grammars import grammar
from tests.support.masks import allowed
from tests.support.turns import CALLS, TOOLS
from tests.support.vocabularies import cut, vocabulary
from tests.support.walks import Walker

VOCABULARY = vocabulary((b"ab", b"</parameter>\n", b'"city": "', b"<tool_call>\n", b'{"name": "'))
ENGINE = Engine(VOCABULARY)
(END_ID,) = VOCABULARY.eos_ids


def matcher(
    name: str = "hermes",
    tools: list[Tool] = TOOLS,
    policy: CallPolicy = CallPolicy(),  # noqa: B008
    engine: Engine = ENGINE,
) -> Matcher:
    return engine.matcher(wire_format(name).grammar(tools, policy, engine.vocabulary))


def feed(at: Matcher, text: bytes) -> list[ParseEvent]:
    """The events of `text`, read byte by byte."""
    events: list[ParseEvent] = []
    for byte in text:
        events += at.advance(byte)
        assert at.fault is None
    return joined(events)


PREFIX = b'<tool_call>\n{"name": "get_weather", "arguments": {"city": "'


# -- back and forth


@every_kind
@given(st.integers(0, 2**32), st.lists(st.integers(0, 12), max_size=6))
@examples(25)
def test_rollback_leads_to_where_the_matcher_was(name: str, seed: int, steps: list[int]) -> None:
    """After any walk with steps back, everything is as if only the tokens that are left had been read."""
    rng = Random(seed)
    walker = Walker(VOCABULARY)
    one = matcher(name)
    left: list[int] = []
    for back in steps:
        left += walker.walk(one, rng, wander=20, limit=rng.randint(1, 20))
        back = min(back, len(left))
        one.rollback(back)
        del left[len(left) - back :]
    other = matcher(name)
    for token in left:
        other.advance(token)
    assert (one.finished, one.complete, one.fault) == (other.finished, other.complete, other.fault)
    assert one.mask() is other.mask()
    rest = walker.walk(one.fork(), rng, wander=5, limit=30)
    assert read(one, rest) == read(other, rest)


def test_rollback_goes_back_over_the_end_and_over_a_fault() -> None:
    one = matcher()
    feed(one, b"hello")
    before = one.mask()
    one.advance(END_ID)
    assert one.finished
    one.rollback(1)
    assert not one.finished
    assert one.mask() is before
    one.advance(10_000)
    assert one.fault
    one.rollback(1)
    assert one.fault is None
    assert one.mask() is before
    assert one.advance(ord("!")) == (Content(b"!"),)


def test_rollback_of_nothing_is_nothing_and_of_more_than_there_is_an_error() -> None:
    one = matcher()
    one.rollback(0)
    feed(one, b"ab")
    with pytest.raises(ValueError, match="3 of 2 tokens"):
        one.rollback(3)
    with pytest.raises(ValueError, match="-1"):
        one.rollback(-1)
    one.rollback(2)
    assert one.complete


def test_rollback_into_an_open_value_keeps_its_readings_apart() -> None:
    """`12` may be a number or the beginning of a string; what was read of it is not lost."""
    tool = Tool("f", "", {"properties": {"v": {"type": ["string", "integer"]}}})
    one = matcher("qwen3_coder", [tool], CallPolicy(required=True))
    feed(one, b"<tool_call>\n<function=f>\n<parameter=v>\n12")
    assert feed(one, b"x") == [Text(b"12x")]
    one.rollback(1)
    assert feed(one, b"\n</parameter>\n</function>")[:1] == [Json(b"12")]
    one.rollback(len(b"\n</parameter>\n</function>") + 1)
    assert feed(one, b"!") == [Text(b"1!")]


@every_kind
@given(st.integers(0, 2**32))
@examples(20)
def test_forks_go_their_own_ways(name: str, seed: int) -> None:
    rng = Random(seed)
    walker = Walker(VOCABULARY)
    one = matcher(name)
    shared = walker.walk(one, rng, wander=15, limit=15)
    other = one.fork()
    first = walker.walk(one, rng, wander=8, limit=8)
    assert not first or not shared or other.mask() is read_again(name, shared).mask()
    second = walker.walk(other, rng, wander=8, limit=8)
    assert one.mask() is read_again(name, shared + first).mask()
    assert other.mask() is read_again(name, shared + second).mask()
    other.rollback(len(shared) + len(second))
    assert other.mask() is matcher(name).mask()


def read_again(name: str, tokens: list[int]) -> Matcher:
    fresh = matcher(name)
    for token in tokens:
        fresh.advance(token)
    return fresh


def test_a_fork_at_the_beginning_tells_the_first_events_too() -> None:
    tool = Tool("f")
    one = matcher("hermes", [tool], CallPolicy(required=True))
    text = wire_format("hermes").render_call("f", {}).encode()
    assert feed(one.fork(), text) == feed(one, text)


# -- refused tokens


@given(st.integers(-(2**70), 2**70) | st.integers(-2, VOCABULARY.width + 2), st.integers(0, len(PREFIX)))
@examples(200)
def test_advance_takes_any_number(token: int, place: int) -> None:
    one = matcher(policy=CallPolicy(required=True))
    feed(one, PREFIX[:place])
    was_allowed = one.allows(token)
    assert was_allowed == (0 <= token < VOCABULARY.width and token in allowed(one.mask()))
    events = one.advance(token)
    assert (one.fault is None) == was_allowed
    assert was_allowed or events == ()


def test_a_refused_token_ends_the_sequence() -> None:
    one = matcher(policy=CallPolicy(required=True))
    feed(one, PREFIX)
    assert one.advance(END_ID) == ()
    assert one.fault == f"token {END_ID} at position {len(PREFIX)} is not allowed by the grammar"
    assert not one.finished
    assert not one.complete
    for token in (ord("a"), END_ID, -1, ord('"')):
        assert allowed(one.mask()) == {END_ID}
        assert one.allows(END_ID)
        assert not one.allows(ord("a"))
        assert one.advance(token) == ()
    assert one.fault == f"token {END_ID} at position {len(PREFIX)} is not allowed by the grammar"
    assert one.finish() == ()


def test_a_refused_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        matcher(policy=CallPolicy(required=True)).advance(ord("x"))
    assert "is not allowed by the grammar" in caplog.text


def test_after_the_end_nothing_more_happens() -> None:
    one = matcher()
    feed(one, b"hi")
    assert one.advance(END_ID) == ()
    for token in (ord("a"), END_ID):
        assert one.finished
        assert one.complete
        assert one.fault is None
        assert allowed(one.mask()) == {END_ID}
        assert one.advance(token) == ()
        assert one.finish() == ()


def test_a_fault_belongs_to_one_fork() -> None:
    one = matcher()
    other = one.fork()
    other.advance(-5)
    assert other.fault
    assert one.fault is None


# -- the end


def test_a_turn_is_complete_where_it_may_end() -> None:
    one = matcher(policy=CallPolicy(min_calls=1))
    assert not matcher(policy=CallPolicy(required=True)).complete
    text = wire_format("hermes").render_call(*CALLS[0]).encode()
    complete = []
    for byte in text:
        one.advance(byte)
        complete.append(one.complete)
    assert complete == [False] * (len(text) - 1) + [True]
    assert not one.finished
    one.advance(END_ID)
    assert one.finished
    assert one.complete


def test_finish_gives_the_content_that_was_held_back() -> None:
    one = matcher()
    assert feed(one, b"see <tool_") == [Content(b"see ")]
    assert one.finish() == (Content(b"<tool_"),)
    other = matcher()
    assert feed(other, b"see <tool_x") == [Content(b"see <tool_x")]
    assert other.finish() == ()


def test_the_end_token_gives_the_content_that_was_held_back_once() -> None:
    one = matcher()
    events = [*feed(one, b"see <tool_"), *one.advance(END_ID), *one.finish()]
    assert joined(events) == [Content(b"see <tool_")]


def test_finish_gives_nothing_of_a_value_that_is_cut_off() -> None:
    """What was held back of it may be its close marker."""
    one = matcher("qwen3_coder", policy=CallPolicy(required=True))
    feed(one, b"<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</para")
    assert one.finish() == ()


def test_reasoning_is_told_apart_from_content_and_held_back_too() -> None:
    part = grammar(
        "start: THINK CONTENT | THINK",
        {
            "THINK": (TextUntil((Stop(b"</think>", ("CLOSE",)),), open_end=True), Role.REASONING),
            "CLOSE": Literal("</think>"),
            "CONTENT": (TextUntil(open_end=True, minimum=1), Role.CONTENT),
        },
        VOCABULARY,
    )
    # A stop's terminals come between the text and what follows it.
    rules = grammar("start: THINK CLOSE CONTENT | THINK", {}, VOCABULARY).rules
    part = type(part)(rules, part.terminals, start=part.start)
    one = Engine(VOCABULARY).matcher(part)
    assert feed(one, b"hm </th") == [Reasoning(b"hm ")]
    assert one.finish() == (Reasoning(b"</th"),)
    assert feed(one, b"ink>yes") == [Content(b"yes")]


# -- events


def test_hermes_tells_a_call_as_it_comes() -> None:
    one = matcher()
    text = b'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    assert feed(one, text) == [
        Content(b"Let me see.\n"),
        FunctionOpen("get_weather"),
        Json(b'{"city": "Oslo"}'),
        CallClose(),
    ]


def test_qwen3_coder_tells_a_call_as_it_comes() -> None:
    one = matcher("qwen3_coder")
    text = (
        "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n"
        "<parameter=content>\né\n\n</parameter>\n<parameter=mode>\n7\n</parameter>\n</function>\n</tool_call>"
    )
    assert feed(one, text.encode()) == [
        FunctionOpen("write_file"),
        ParameterOpen("path"),
        Text(b"a"),
        ParameterClose(),
        ParameterOpen("content"),
        Text("é\n".encode()),
        ParameterClose(),
        ParameterOpen("mode"),
        Json(b"7"),
        ParameterClose(),
        CallClose(),
    ]


@pytest.mark.parametrize(
    ("names", "certain"),
    [
        (("get_weather", "get_time", "ping"), {"get_weather": "get_w", "get_time": "get_t", "ping": "p"}),
        (("run", "run_all"), {"run": 'run"', "run_all": "run_"}),
        (("only",), {"only": ""}),
    ],
)
def test_a_name_is_told_with_the_byte_that_leaves_no_other(
    names: tuple[str, ...], certain: dict[str, str]
) -> None:
    opening = '<tool_call>\n{"name": "'
    for name in names:
        one = matcher("hermes", [Tool(each) for each in names], CallPolicy(required=True))
        text = f'{opening}{name}", '.encode()
        told = [i for i, byte in enumerate(text) if FunctionOpen(name) in one.advance(byte)]
        expected = len(opening + certain[name])
        assert told == [expected - 1]


def test_a_name_is_not_told_before_the_opening_marker() -> None:
    one = matcher("qwen3_coder", [Tool("only")])
    assert feed(one, b"<tool_call>\n<function") == []
    assert one.advance(ord("=")) == (FunctionOpen("only"),)


def test_a_long_string_streams_with_every_token() -> None:
    one = matcher()
    feed(one, PREFIX)
    for piece in ("New ", "York", ", é", "\\n", "!"):
        events: list[ParseEvent] = []
        for token in cut(VOCABULARY, piece.encode()):
            events += one.advance(token)
        assert joined(events) == [Json(piece.encode())]


def test_json_words_of_python_are_told_as_json() -> None:
    tool = Tool("f", "", {"properties": {"b": {"type": "boolean"}, "n": {"type": ["null", "integer"]}}})
    one = matcher("qwen3_coder", [tool], CallPolicy(required=True))
    text = (
        b"<tool_call>\n<function=f>\n<parameter=b>\nTrue\n</parameter>\n<parameter=n>\nNone\n</parameter>\n"
        b"</function>\n</tool_call>"
    )
    assert [event.data for event in feed(one, text) if isinstance(event, Json)] == [b"true", b"null"]


def test_a_label_may_stand_for_the_text_of_a_choice() -> None:
    part = grammar("start: A", {"A": (JsonString(), Role.JSON)}, VOCABULARY)
    one = Engine(VOCABULARY).matcher(part)
    assert feed(one, b'"a"') == [Json(b'"a"')]
    assert one.complete


# -- the engine


def test_one_grammar_has_one_automaton_in_an_engine() -> None:
    part = wire_format("hermes").grammar(TOOLS, CallPolicy(), VOCABULARY)
    engine = Engine(VOCABULARY)
    one, other = engine.matcher(part), engine.matcher(part)
    assert one.mask() is other.mask()


def test_an_engine_forgets_the_grammars_that_were_used_longest_ago() -> None:
    engine = Engine(VOCABULARY, cache_bytes=1)
    parts = [wire_format("hermes").grammar([Tool(f"f{i}")], CallPolicy(), VOCABULARY) for i in range(3)]
    first = engine.matcher(parts[0])
    mask = first.mask()
    for part in parts[1:]:
        engine.matcher(part).mask()
    assert engine.matcher(parts[0]).mask() is not mask
    feed(first, b"a matcher goes on with what it has")
    assert first.complete


def test_an_engine_keeps_no_more_automata_than_anyone_can_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larksong.engine.engine._KEPT_AUTOMATA", 3)
    engine = Engine(VOCABULARY)
    parts = [wire_format("hermes").grammar([Tool(f"g{i}")], CallPolicy(), VOCABULARY) for i in range(5)]
    kept = [engine.automaton(part) for part in parts]
    assert [engine.automaton(part) for part in parts[2:]] == kept[2:]
    assert engine.automaton(parts[0]) is not kept[0]


def test_a_vocabulary_without_an_end_token_is_refused() -> None:
    without = Vocabulary(tokens=VOCABULARY.tokens, special={}, eos_ids=frozenset(), width=VOCABULARY.width)
    with pytest.raises(NoEndToken):
        Engine(without)


def test_any_of_several_end_tokens_ends_a_turn() -> None:
    tokens = (*(bytes([i]) for i in range(256)), b"", b"")
    several = Vocabulary(tokens, {"<a>": 256, "<b>": 257}, frozenset({256, 257}), 258)
    engine = Engine(several)
    for end in (256, 257):
        one = matcher(engine=engine)
        assert {256, 257} <= allowed(one.mask())
        one.advance(end)
        assert one.finished
