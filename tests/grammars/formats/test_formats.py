"""Two wire formats in detail: whatever a model writes under their masks is a turn of valid calls."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from larksong.engine.engine import Engine
from larksong.engine.events import Content, Events, FunctionOpen, Json, ParameterOpen, ParseEvent, Text
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import (
    CallPolicy,
    DuplicateTool,
    GrammarsError,
    InvalidSchema,
    InvalidToolName,
    NoTools,
    Tool,
    UnknownFormat,
    UnsupportedKeyword,
    WireFormat,
    format_names,
    wire_format,
)
from tests.support.calls import Turn, joined, read, turn
from tests.support.examples import examples
from tests.support.masks import allowed
from tests.support.readers import check_raw, read_turn, readings, same
from tests.support.schemas import conforms, instances, load_members, meaning, parameters
from tests.support.turns import CALLS, PING, SEARCH, TOOLS, WEATHER, WRITE_FILE
from tests.support.vocabularies import cut, cut_with_markers, text_of, vocabulary
from tests.support.walks import Walker

# What these tests spell out is written in these two; test_every_format.py has what holds for all.
FORMATS = pytest.mark.parametrize("name", ["hermes", "qwen3_coder"])
MARKERS = ("<tool_call>", "</tool_call>", "<other>")
PIECES = (
    *(
        b"</parameter>\n",
        b"\n</parameter>\n<parameter=",
        b"\n</function>\n</tool_call>",
        b'"}}\n</tool_call>',
    ),
    *(
        b"<tool_call>",
        b"<tool_call>\n",
        b'{"',
        b'": "',
        b'", "',
        b"true",
        b"None",
        b"12",
        b"ab",
        b"city",
        b"get_",
    ),
)
LETTERS = vocabulary(PIECES)
IDS = vocabulary(PIECES, MARKERS)
ENGINES = {of: Engine(of) for of in (LETTERS, IDS)}
VOCABULARIES: WeakKeyDictionary[Matcher, Vocabulary] = WeakKeyDictionary()
"""what the matchers of `start` were made for"""
BOTH = pytest.mark.parametrize("of", [LETTERS, IDS], ids=["markers in letters", "markers by id"])


def start(
    name: str,
    of: Vocabulary = LETTERS,
    tools: list[Tool] = TOOLS,
    policy: CallPolicy = CallPolicy(),  # noqa: B008
) -> Matcher:
    engine = ENGINES.get(of) or Engine(of)
    matcher = engine.matcher(wire_format(name).grammar(tools, policy, of))
    VOCABULARIES[matcher] = of
    return matcher


def feed(matcher: Matcher, text: str) -> list[ParseEvent]:
    """Read `text`; markers that the vocabulary holds go in by id."""
    tokens = cut_with_markers(VOCABULARIES[matcher], text.encode(), Random(0))
    events: list[ParseEvent] = []
    for token in tokens:
        events += matcher.advance(token)
        assert matcher.fault is None, matcher.fault
    return joined(events)


def accepts(matcher: Matcher, text: str, *, letters_only: bool = False) -> bool:
    """Whether a fork can read all of `text`."""
    of = VOCABULARIES[matcher]
    matcher = matcher.fork()
    tokens = list(text.encode()) if letters_only else cut_with_markers(of, text.encode())
    for token in tokens:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return True


def next_texts(matcher: Matcher) -> set[bytes]:
    """The texts of all tokens that may come next."""
    of = VOCABULARIES[matcher]
    return {text_of(of, [token]) for token in allowed(matcher.mask()) - of.eos_ids}


# -- walks


def check_turn(
    name: str, tools: list[Tool], policy: CallPolicy, of: Vocabulary, taken: list[int], events: Events
) -> Turn:
    """A finished walk's events are calls that the schemas accept, and they say what the text says."""
    told = turn(events)
    schemas = {tool.name: meaning(tool.parameters, closed=True) for tool in tools}
    assert max(policy.min_calls, int(policy.required)) <= len(told.calls)
    assert policy.max_calls is None or len(told.calls) <= policy.max_calls
    for call in told.calls:
        assert policy.only in (None, call.name)
        Draft202012Validator(schemas[call.name]).validate(call.arguments)
    content, reasoning, calls = split(name, of, taken)
    assert told.content == content
    assert told.reasoning == reasoning
    assert not (policy.required and content)
    assert [called for called, _ in calls] == [call.name for call in told.calls]
    for (_, written), call in zip(calls, told.calls, strict=True):
        assert call.arguments is not None
        if isinstance(written, str):
            assert same(json.loads(written), call.arguments)
            assert conforms(schemas[call.name], load_members(written))
        else:
            check_raw(written, call.arguments)
    return told


def split(name: str, of: Vocabulary, taken: list[int]) -> tuple[bytes, bytes, list[tuple[str, Any]]]:
    """What the text alone says. Markers in letters are data where the vocabulary has them as tokens."""
    marker = of.special.get("<tool_call>")
    if marker is None:
        content, reasoning, calls = read_turn(name, text_of(of, taken).decode())
        return content.encode(), reasoning.encode(), calls
    begin = taken.index(marker) if marker in taken else len(taken)
    _, _, calls = read_turn(name, text_of(of, taken[begin:]).decode())
    return without_lead(text_of(of, taken[:begin])), b"", calls


def without_lead(text: bytes) -> bytes:
    """The content without the line breaks, at most two, with which a turn begins."""
    return text.removeprefix(b"\n").removeprefix(b"\n")


policies = st.builds(
    CallPolicy,
    required=st.booleans(),
    min_calls=st.sampled_from([0, 1, 2]),
    max_calls=st.sampled_from([None, 2, 3]),
    only=st.sampled_from([None, None, "get"]),
)


@FORMATS
@BOTH
@given(st.lists(parameters(), min_size=1, max_size=3), policies, st.integers(0, 2**32), st.integers(0, 50))
@examples(25)
def test_every_walk_over_allowed_tokens_ends_in_valid_calls(
    name: str, of: Vocabulary, schemas: list[dict[str, Any]], policy: CallPolicy, seed: int, wander: int
) -> None:
    tools = [Tool(("get", "get_weather", "run")[i], "", schema) for i, schema in enumerate(schemas)]
    matcher = start(name, of, tools, policy)
    taken = Walker(of).walk(matcher.fork(), Random(seed), wander=wander)
    events = read(matcher, taken)
    assert matcher.finished, text_of(of, taken)
    told = check_turn(name, tools, policy, of, taken, events)
    event(f"calls: {len(told.calls)}")


@FORMATS
@pytest.mark.parametrize("seed", range(3))
def test_walks_over_smollm2s_tokens_end_in_valid_calls(
    name: str, seed: int, smollm2_vocabulary: Vocabulary
) -> None:
    walk_large(name, seed, smollm2_vocabulary)


@FORMATS
@pytest.mark.parametrize("seed", range(2))
def test_walks_over_qwens_tokens_end_in_valid_calls(
    name: str, seed: int, qwen_vocabulary: Vocabulary
) -> None:
    walk_large(name, seed, qwen_vocabulary)


def walk_large(name: str, seed: int, of: Vocabulary) -> None:
    policy = CallPolicy(required=bool(seed % 2), min_calls=2, max_calls=3)
    matcher = start(name, of, TOOLS, policy)
    names = {name for tool in TOOLS for name in tool.parameters.get("properties", {})}
    walker = Walker(of, {*names, "lang"})
    taken = walker.walk(matcher.fork(), Random(seed), wander=30)
    events = read(matcher, taken)
    assert matcher.finished
    check_turn(name, TOOLS, policy, of, taken, events)


# -- calls as the model families write them


@FORMATS
@BOTH
def test_calls_as_they_are_written_are_read_as_they_were_meant(name: str, of: Vocabulary) -> None:
    text = "\n".join(wire_format(name).render_call(*call) for call in CALLS)
    for seed in range(5):
        matcher = start(name, of)
        tokens = cut_with_markers(of, ("Let me see.\n" + text).encode(), Random(seed))
        told = turn(read(matcher, tokens))
        assert matcher.complete
        assert told.content == b"Let me see.\n"
        assert [(call.name, call.arguments) for call in told.calls] == CALLS


@FORMATS
@given(parameters(), st.data())
@examples(60)
def test_any_valid_call_can_be_written_and_is_read_back(
    name: str, schema: dict[str, Any], data: st.DataObject
) -> None:
    arguments = data.draw(instances(meaning(schema, closed=True)))
    tool = Tool("do it", "", schema)
    matcher = start(name, data.draw(st.sampled_from([LETTERS, IDS])), [tool], CallPolicy(required=True))
    text = wire_format(name).render_call("do it", arguments)
    tokens = cut_with_markers(VOCABULARIES[matcher], text.encode(), Random(data.draw(st.integers(0, 99))))
    (call,) = turn(read(matcher, tokens)).calls
    assert matcher.complete
    assert call.arguments is not None
    assert list(call.arguments) == list(arguments)
    for key, value in arguments.items():
        found = call.arguments[key]
        if name == "qwen3_coder" and isinstance(value, str) and not same(found, value):
            # A text that is also JSON of a type that the schema allows is read as that type.
            assert same(found, readings(value)[0])
        else:
            assert same(found, value)


@FORMATS
def test_a_call_begins_with_the_line_break_of_its_family(name: str) -> None:
    text = wire_format(name).render_call("ping", {})
    matcher = start(name, policy=CallPolicy(required=True))
    assert accepts(matcher, text)
    assert not accepts(matcher, text.replace("<tool_call>\n", "<tool_call>"))


@FORMATS
def test_system_text_tells_each_tool_and_how_to_call(name: str) -> None:
    text = wire_format(name).system_text(TOOLS)
    for tool in TOOLS:
        assert tool.name in text
        assert tool.description in text
        assert json.dumps(tool.parameters) in text
    assert "<tool_call>" in text
    assert "{tools}" not in text


# -- what may come where


@FORMATS
def test_content_may_come_before_calls_and_instead_of_them_and_after(name: str) -> None:
    matcher = start(name)
    assert matcher.complete
    assert feed(matcher, "Hello <world>") == [Content(b"Hello <world>")]
    assert matcher.complete
    feed(matcher, wire_format(name).render_call("ping", {}))
    assert matcher.complete
    assert feed(matcher, "\n") == []
    assert matcher.complete  # a line break may also end the turn
    assert feed(matcher, "That was it.") == [Content(b"That was it.")]
    assert matcher.complete


@FORMATS
def test_a_turn_of_required_calls_has_no_content(name: str) -> None:
    matcher = start(name, policy=CallPolicy(required=True))
    assert not matcher.complete
    assert next_texts(matcher) == {b"<", b"<tool_call>", b"<tool_call>\n"}
    assert {bytes([byte]) for byte in range(256) if matcher.allows(byte)} == {b"<"}


@FORMATS
@pytest.mark.parametrize("required", [True, False])
def test_a_turn_has_no_fewer_and_no_more_calls_than_the_policy_says(name: str, required: bool) -> None:
    policy = CallPolicy(required=required, min_calls=2, max_calls=3)
    matcher = start(name, policy=policy)
    call = wire_format(name).render_call("ping", {})
    ends, goes_on = [matcher.complete], []
    for _ in range(3):
        feed(matcher, call)
        ends.append(matcher.complete)
        goes_on.append(matcher.allows(ord("\n")))
        if goes_on[-1]:
            feed(matcher, "\n")
    assert ends == [False, False, True, True]
    assert goes_on == [True, True, False]
    assert allowed(matcher.mask()) == LETTERS.eos_ids


@FORMATS
def test_text_alone_is_no_turn_where_calls_must_follow(name: str) -> None:
    matcher = start(name, policy=CallPolicy(min_calls=1))
    feed(matcher, "First some words.")
    assert not matcher.complete
    assert not allowed(matcher.mask()) & LETTERS.eos_ids
    feed(matcher, wire_format(name).render_call("ping", {}))
    assert matcher.complete


@FORMATS
def test_after_the_one_call_of_a_turn_only_its_end_can_come(name: str) -> None:
    """`parallel_tool_calls: false`: the second call is not dropped, it cannot be written."""
    for required in (True, False):
        matcher = start(name, policy=CallPolicy(required=required, max_calls=1))
        feed(matcher, wire_format(name).render_call("ping", {}))
        assert allowed(matcher.mask()) == LETTERS.eos_ids


@FORMATS
def test_a_named_tool_is_the_only_one_that_can_be_called(name: str) -> None:
    matcher = start(name, policy=CallPolicy(required=True, only="ping"))
    prefix = wire_format(name).function_name_prefix
    assert feed(matcher, "<tool_call>" + prefix) == [FunctionOpen("ping")]
    matcher = start(name, IDS, policy=CallPolicy(required=True, only="ping"))
    assert feed(matcher, "<tool_call>") == [FunctionOpen("ping")]
    for tool in TOOLS:
        matcher = start(name, policy=CallPolicy(required=True, only="ping"))
        text = wire_format(name).render_call(tool.name, {"city": "x"} if tool is WEATHER else {})
        assert accepts(matcher, text) == (tool is PING)


def test_the_token_that_completes_a_marker_may_not_carry_an_unknown_name() -> None:
    """Text behind a marker inside the same token is looked at too."""
    of = vocabulary((b"=list", b"=read", b"=re", b"=rest", b"=read>", b"=read>\n<parameter=p"))
    read_file = Tool("read", "", {"properties": {"path": {"type": "string"}}, "required": ["path"]})
    matcher = start("qwen3_coder", of, [read_file], CallPolicy(required=True))
    feed(matcher, "<tool_call>\n<function")
    assert next_texts(matcher) == {b"=", b"=re", b"=read", b"=read>", b"=read>\n<parameter=p"}


@FORMATS
def test_arguments_come_after_the_name(name: str) -> None:
    matcher = start(name, policy=CallPolicy(required=True))
    feed(matcher, "<tool_call>\n")
    assert {text[:1] for text in next_texts(matcher)} == {b"{" if name == "hermes" else b"<"}
    assert not accepts(matcher, '{"arguments"')


# -- markers


@FORMATS
def test_letters_of_a_marker_that_is_a_token_are_data(name: str) -> None:
    matcher = start(name, IDS)
    for byte in b"<tool_call>\n{":
        matcher.advance(byte)
    assert matcher.fault is None
    assert matcher.complete  # still content
    events: list[ParseEvent] = []
    other = start(name, IDS)
    for byte in b"see <tool_call> and </tool_call>":
        events += other.advance(byte)
    assert joined([*events, *other.finish()]) == [Content(b"see <tool_call> and </tool_call>")]


@FORMATS
def test_a_marker_that_is_a_token_is_masked_inside_values(name: str) -> None:
    matcher = start(name, IDS)
    opening = {
        "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "',
        "qwen3_coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\n",
    }[name]
    feed(matcher, opening)
    markers = {IDS.special[marker] for marker in MARKERS}
    assert not allowed(matcher.mask()) & (markers | IDS.eos_ids)
    letters: list[ParseEvent] = []
    for byte in b"a <tool_call> b </tool_call>":
        letters += matcher.advance(byte)
        assert not allowed(matcher.mask()) & (markers | IDS.eos_ids)
    (piece,) = joined(letters)
    assert isinstance(piece, Json | Text)
    assert piece.data == b"a <tool_call> b </tool_call>"


@FORMATS
def test_a_marker_of_something_else_is_never_allowed(name: str) -> None:
    matcher = start(name, IDS)
    text = "Hi " + "\n".join(wire_format(name).render_call(*call) for call in CALLS)
    for token in cut_with_markers(IDS, text.encode()):
        assert not matcher.allows(IDS.special["<other>"])
        matcher.advance(token)


def test_almost_a_marker_is_content() -> None:
    matcher = start("hermes")
    assert feed(matcher, "<tool_c <<tool_call") == [Content(b"<tool_c <")]
    assert matcher.finish() == (Content(b"<tool_call"),)


# -- raw values of qwen3_coder


RAW_VALUES = [
    "", " ", "\n", "\n\n", "a\n", "\na", "  indented\n    more\n", "a\r\nb", "\t", "</parameter>",
    "</parameter>\n", "x\n</parameter>", "\n</parameter>\n", "a\n</parameter>\nb", "</function>", "<parameter=path>",
    "a\n</parameter>\n</parameter>\nb", "\n</parameter>\n</tool_call>", "a</parameter>\n<parameter=b>\nc", "'\"\\{}[]",
    "\n</parameter>\n\n</function>", "\n</parameter>\n <parameter=", "\n</parameter>\n<parameter", "日本語\n😀", "true", "null", "12",
]  # fmt: skip


@pytest.mark.parametrize("value", RAW_VALUES, ids=repr)
@BOTH
def test_a_string_is_every_byte_between_the_framing_line_breaks(value: str, of: Vocabulary) -> None:
    for order in (("path", "content"), ("content", "path")):
        arguments = {key: value if key == "content" else "p" for key in order}
        place = "\0"  # the value goes in by its letters, whatever markers they spell
        text = wire_format("qwen3_coder").render_call("write_file", {**arguments, "content": place}).encode()
        before, _, after = text.partition(place.encode())
        matcher = start("qwen3_coder", of, [WRITE_FILE], CallPolicy(required=True))
        tokens = cut_with_markers(of, before) + cut(of, value.encode()) + cut_with_markers(of, after)
        (call,) = turn(read(matcher, tokens)).calls
        assert call.arguments == arguments


parts = st.sampled_from(["\n", "</parameter>", "<parameter", "=", "</function>", "a", " "])


@given(st.lists(parts, max_size=8).map("".join))
@examples(80)
def test_a_string_ends_at_its_close_marker_before_a_legal_next_piece(value: str) -> None:
    """Anything that holds no such end comes through; `=` alone cannot follow `<parameter` after the marker."""
    if "\n</parameter>\n<parameter=" in "\n" + value or "\n</parameter>\n</function>" in "\n" + value:
        return
    text = wire_format("qwen3_coder").render_call("write_file", {"path": value, "content": value})
    (call,) = turn(feed(start("qwen3_coder", tools=[WRITE_FILE]), text)).calls
    assert call.arguments == {"path": value, "content": value}


def test_after_a_close_marker_only_names_that_are_missing_can_come() -> None:
    matcher = start("qwen3_coder", tools=[WRITE_FILE], policy=CallPolicy(required=True))
    feed(matcher, "<tool_call>\n<function=write_file>\n<parameter=content>\nx\n</parameter>\n<parameter=")
    assert next_texts(matcher) == {b"p", b"m"}
    assert not accepts(matcher, "content")
    assert not accepts(matcher, "paths")
    assert feed(matcher, "path>\n")[0] == ParameterOpen("path")


def test_a_function_cannot_close_while_a_required_parameter_is_missing() -> None:
    matcher = start("qwen3_coder", tools=[WRITE_FILE], policy=CallPolicy(required=True))
    feed(matcher, "<tool_call>\n<function=write_file>\n")
    assert not accepts(matcher, "</function>")
    feed(matcher, "<parameter=content>\nx")
    assert not accepts(matcher, "\n</parameter>\n</function>")
    assert accepts(matcher, "\n</parameter>\n</functio")  # so far it may be data
    assert accepts(matcher, "\n</parameter>\n</div>\n</parameter>\n<parameter=path>\n")


def test_a_name_cannot_be_begun_when_none_is_left() -> None:
    matcher = start("qwen3_coder", tools=[Tool("f", "", {"properties": {"a": {"type": "string"}}})])
    feed(matcher, "<tool_call>\n<function=f>\n<parameter=a>\nx")
    assert not accepts(matcher, "\n</parameter>\n<parameter=")
    assert accepts(matcher, "\n</parameter>\n</function>\n</tool_call>")


@pytest.mark.parametrize(
    ("schema", "written", "expected"),
    [
        ({"type": ["string", "integer"]}, "12", 12),
        ({"type": ["string", "integer"]}, "12a", "12a"),
        ({"type": ["string", "integer"]}, "-", "-"),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "None", None),
        ({"type": ["string", "null"]}, "nullable", "nullable"),
        ({"type": ["string", "null"]}, "", ""),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, "false", False),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, '["a", [1]]', ["a", [1]]),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, '["a", ', '["a", '),
        ({}, '{"a": 1}', {"a": 1}),
        ({}, '{"a": 1', '{"a": 1'),
        ({}, "text", "text"),
        ({}, '"text"', '"text"'),
        ({}, '["text"]', ["text"]),
        ({}, "False", False),
        ({"enum": ["a", "1", 1, "two words", None]}, "a", "a"),
        ({"enum": ["a", "1", 1, "two words", None]}, "1", 1),
        ({"enum": ["a", "1", 1, "two words", None]}, "two words", "two words"),
        ({"enum": ["a", "1", 1, "two words", None]}, "null", None),
        ({"enum": [None, True, 12, 1]}, "None", None),
        ({"enum": [None, True, 12, 1]}, "True", True),
        ({"enum": [None, True, 12, 1]}, "12", 12),
        ({"anyOf": [{"enum": [None, 12, "x"]}, {"type": ["null", "integer"]}]}, "null", None),
        ({"anyOf": [{"enum": [None, 12, "x"]}, {"type": ["null", "integer"]}]}, "None", None),
        ({"anyOf": [{"enum": [None, 12, "x"]}, {"type": ["null", "integer"]}]}, "12", 12),
        ({"anyOf": [{"enum": [None, 12, "x"]}, {"type": ["null", "integer"]}]}, "123", 123),
        ({"anyOf": [{"const": [1]}, {"type": "array"}, {"type": "string"}]}, "[1]", [1]),
        ({"anyOf": [{"enum": ["12", "x"]}, {"type": "integer"}, {"type": "string"}]}, "12", 12),
        ({"enum": ["", "a"]}, "", ""),
        ({"enum": [""]}, "", ""),
        ({"const": ""}, "", ""),
        (
            {"const": "x\n</parameter>\n<parameter=y>"},
            "x\n</parameter>\n<parameter=y>",
            "x\n</parameter>\n<parameter=y>",
        ),
        ({"type": "string", "maxLength": 0}, "", ""),
        ({"type": "string", "minLength": 2, "maxLength": 2}, "é😀", "é😀"),
        ({"type": "number"}, "-1.5e-07", -1.5e-07),
    ],
)
@BOTH
def test_a_value_has_the_type_that_its_text_fits(
    schema: Any, written: str, expected: Any, of: Vocabulary
) -> None:
    tool = Tool("f", "", {"properties": {"v": schema}, "required": ["v"]})
    text = f"<tool_call>\n<function=f>\n<parameter=v>\n{written}\n</parameter>\n</function>\n</tool_call>"
    tokens = cut_with_markers(of, text.encode(), Random(2))
    matcher = start("qwen3_coder", of, [tool], CallPolicy(required=True))
    for token in tokens:
        assert token in allowed(matcher.mask())
        matcher.advance(token)
    matcher.rollback(len(tokens))
    (call,) = turn(read(matcher, tokens)).calls
    assert call.arguments is not None
    assert same(call.arguments["v"], expected)


def test_a_string_beside_another_type_streams_once_it_can_be_nothing_else() -> None:
    tool = Tool("f", "", {"properties": {"v": {"type": ["string", "integer"]}}})
    matcher = start("qwen3_coder", tools=[tool], policy=CallPolicy(required=True))
    feed(matcher, "<tool_call>\n<function=f>\n<parameter=v>\n")
    assert feed(matcher, "12") == []
    assert feed(matcher, " pieces") == [Text(b"12 pieces")]
    assert feed(matcher, "!") == [Text(b"!")]


# -- names


@FORMATS
@pytest.mark.parametrize("tool", ["", "a\nb", "\x00", "\u200b", "\ud800", "a\u2028b"])
def test_tool_names_that_no_text_can_carry_are_refused(name: str, tool: str) -> None:
    refuse(name, Tool(tool), InvalidToolName, tool, None)


@pytest.mark.parametrize("tool", ["a>b", ">"])
def test_qwen3_coder_refuses_tool_names_that_would_end_its_tag(tool: str) -> None:
    refuse("qwen3_coder", Tool(tool), InvalidToolName, tool, None)
    start("hermes", tools=[Tool(tool)])


@pytest.mark.parametrize(
    ("parameter", "pointer"), [("", ""), ("a>b", "a>b"), ("a\nb", "a\nb"), ("~/>", "~0~1>"), ("\x7f", "\x7f")]
)
def test_qwen3_coder_refuses_parameter_names_that_its_tag_cannot_hold(parameter: str, pointer: str) -> None:
    tool = Tool("f", "", {"properties": {"fine": {}, parameter: {}}})
    refuse("qwen3_coder", tool, InvalidToolName, "f", f"/properties/{pointer}")
    matcher = start("hermes", tools=[tool])
    text = wire_format("hermes").render_call("f", {parameter: 1})
    assert turn(feed(matcher, text)).calls[0].arguments == {parameter: 1}


@FORMATS
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"\ud800": {"type": "null"}}},
        {"properties": {"o": {"type": "object", "properties": {"\ud800": {"type": "null"}}}}},
        {"properties": {"e": {"enum": ["a", "\udc00"]}}},
        {"properties": {"e": {"const": {"k": ["\udc00"]}}}},
    ],
)
def test_names_and_constants_that_are_no_unicode_text_are_refused(name: str, schema: dict[str, Any]) -> None:
    with pytest.raises(GrammarsError):
        start(name, tools=[Tool("f", "", schema)])


@pytest.mark.parametrize("extra", [True, {"type": "string"}])
def test_qwen3_coder_refuses_parameters_that_are_not_declared(extra: Any) -> None:
    tool = Tool("f", "", {"properties": {}, "additionalProperties": extra})
    error = refuse("qwen3_coder", tool, UnsupportedKeyword, "f", "/additionalProperties")
    assert error.keyword == "additionalProperties"
    matcher = start("hermes", tools=[tool])
    assert turn(feed(matcher, wire_format("hermes").render_call("f", {"x": "y"}))).calls[0].arguments == {
        "x": "y"
    }


@FORMATS
@pytest.mark.parametrize(
    "tool",
    ["get-weather", "a.b", "mcp__x:y", "été", "日本", 'q"uote', "back\\slash", "{x}", "a b", "<f", "123"],
)
@pytest.mark.parametrize(
    "parameter", ["simple", "-x", "é", 'q"', "back\\slash", "a/b", "two words", "{", "</parameter", "=", "1"]
)
def test_odd_names_are_carried(name: str, tool: str, parameter: str) -> None:
    one = Tool(
        tool,
        "",
        {"properties": {parameter: {"type": "string"}, "l": {"type": "array"}}, "required": [parameter]},
    )
    matcher = start(name, tools=[PING, one])
    arguments = {"l": ["a"], parameter: "v"}
    (call,) = turn(feed(matcher, wire_format(name).render_call(tool, arguments))).calls
    assert (call.name, call.arguments) == (tool, arguments)


@FORMATS
@pytest.mark.parametrize(
    "names", [("value", "é"), ("string", "é"), ("parameter", "parameter"), ("start", "calls"), ("x", "X")]
)
def test_names_like_those_of_the_grammar_itself_are_told_apart(name: str, names: tuple[str, str]) -> None:
    tool, parameter = names
    schema = {
        "properties": {parameter: {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}}
    }
    matcher = start(name, tools=[Tool(tool, "", schema)])
    arguments = {parameter: "v", "l": ["a"]}
    (call,) = turn(feed(matcher, wire_format(name).render_call(tool, arguments))).calls
    assert call.arguments == arguments
    matcher = start(name, tools=[Tool(tool, "", schema)])
    assert not accepts(matcher, wire_format(name).render_call(tool, {"not_" + parameter: "v"}))


def refuse(
    name: str, tool: Tool, error: type[GrammarsError], named: str, pointer: str | None
) -> GrammarsError:
    with pytest.raises(error) as refused:
        start(name, tools=[PING, tool])
    assert refused.value.tool == named
    assert refused.value.pointer == pointer
    assert name in str(refused.value)
    return refused.value


# -- requests


@FORMATS
def test_two_tools_of_one_name_are_refused(name: str) -> None:
    with pytest.raises(DuplicateTool, match="'ping'") as refused:
        start(name, tools=[PING, WEATHER, Tool("ping", "again")])
    assert refused.value.tool == "ping"


@FORMATS
def test_a_call_without_tools_is_refused(name: str) -> None:
    with pytest.raises(NoTools, match="no tools"):
        start(name, tools=[])
    with pytest.raises(NoTools, match="'other'"):
        start(name, policy=CallPolicy(only="other"))


@FORMATS
def test_a_tool_whose_schema_is_refused_is_named(name: str) -> None:
    odd = Tool("send", "", {"properties": {"to": {"$ref": "http://example.com/address"}}})
    with pytest.raises(GrammarsError) as refused:
        start(name, tools=[PING, odd])
    error = refused.value
    assert (error.tool, error.pointer, error.keyword) == ("send", "/properties/to/$ref", "$ref")
    with pytest.raises(InvalidSchema) as invalid:
        start(name, tools=[Tool("send", "", {"properties": 3})])
    assert invalid.value.tool == "send"


@FORMATS
def test_a_tool_that_may_not_be_called_is_not_read(name: str) -> None:
    odd = Tool("send", "", {"properties": {"to": {"$ref": "http://example.com/address"}}})
    start(name, tools=[PING, odd], policy=CallPolicy(only="ping"))


@FORMATS
def test_the_same_request_has_the_same_grammar(name: str) -> None:
    wire = wire_format(name)
    policy = CallPolicy(required=True)
    one = wire.grammar([WEATHER, SEARCH], policy, LETTERS)
    again = [
        Tool(t.name, "described otherwise", json.loads(json.dumps(t.parameters))) for t in (WEATHER, SEARCH)
    ]
    assert wire.grammar(again, CallPolicy(required=True), LETTERS) is one
    assert wire.grammar([WEATHER], policy, LETTERS) is not one
    assert wire.grammar([WEATHER, SEARCH], CallPolicy(), LETTERS) is not one


def test_an_unknown_format_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(UnknownFormat) as refused:
        wire_format("qwen")
    for name in format_names():
        assert name in str(refused.value)


@FORMATS
def test_a_format_is_known_by_its_name(name: str) -> None:
    assert isinstance(wire_format(name), WireFormat)
    assert wire_format(name).name == name
    assert wire_format(name) is wire_format(name)


def test_there_are_the_formats_of_this_project() -> None:
    assert {"hermes", "qwen3_coder"} <= set(format_names())


# -- recorded reports


def case(number: str) -> dict[str, Any]:
    folder = os.environ.get("LARKSONG_CASES")
    if not folder:
        pytest.skip("LARKSONG_CASES does not name a folder of recorded cases")
    for line in (Path(folder) / "bug_reports.jsonl").read_text().splitlines():
        found: dict[str, Any] = json.loads(line)
        if found["id"] == number:
            return found
    raise AssertionError(f"no case {number}")


def case_tools(found: dict[str, Any]) -> list[Tool]:
    return [Tool(t["function"]["name"], "", t["function"]["parameters"]) for t in found["tools"]]


def test_report_054_the_token_after_the_trigger_is_masked() -> None:
    found = case("bug-054")
    before, token, after = (text.encode() for text in found["model_output"])
    of = vocabulary((token, token + after, b"=read"))
    matcher = start(found["format"], of, case_tools(found), CallPolicy(required=True))
    feed(matcher, before.decode())
    assert not matcher.allows(256)
    assert not matcher.allows(257)
    assert next_texts(matcher) == {b"=", b"=read"}


def test_report_063_after_the_first_call_only_the_end_is_reachable() -> None:
    found = case("bug-063")
    assert found["request"] == {"parallel_tool_calls": False}
    whole: str = found["model_output"]
    first = whole[: whole.index("</tool_call>") + len("</tool_call>")]
    for of in (LETTERS, IDS):
        matcher = start(found["format"], of, case_tools(found), CallPolicy(max_calls=1))
        assert len(turn(feed(matcher, first)).calls) == 1
        assert allowed(matcher.mask()) == of.eos_ids
