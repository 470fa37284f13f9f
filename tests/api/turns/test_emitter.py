import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from larksong.api.turns.emitter import DeltaEmitter, new_call_id
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


def _emitter() -> DeltaEmitter:
    ids = itertools.count()
    return DeltaEmitter(call_id=lambda: f"call_{next(ids)}")


def _steps(*steps: Sequence[ParseEvent]) -> list[list[Delta]]:
    emitter = _emitter()
    return [emitter.feed(events) for events in steps]


def _flat(steps: list[list[Delta]]) -> list[Delta]:
    return list(itertools.chain.from_iterable(steps))


def _arguments(deltas: Sequence[Delta], index: int = 0) -> str:
    return "".join(d.fragment for d in deltas if isinstance(d, ArgumentsDelta) and d.index == index)


def test_a_string_parameter_streams_with_its_key_and_quotes() -> None:
    assert _steps(
        [FunctionOpen("get_weather")],
        [ParameterOpen("city")],
        [Text(b"New ")],
        [Text(b'"York"')],
        [ParameterClose(), CallClose()],
    ) == [
        [CallDelta(0, "call_0", "get_weather")],
        [ArgumentsDelta(0, '{"city": ')],
        [ArgumentsDelta(0, '"New ')],
        [ArgumentsDelta(0, '\\"York\\"')],
        [ArgumentsDelta(0, '"}')],
    ]


def test_json_outside_of_calls_is_content_that_ends_inside_no_escape() -> None:
    assert _steps([Json(b'{"a"')], [Json(b': "\\')], [Json(b"n\xc3")], [Json(b'\xa9"}')]) == [
        [ContentDelta('{"a"')],
        [ContentDelta(': "')],
        [ContentDelta("\\n")],
        [ContentDelta('é"}')],
    ]


def test_typed_values_pass_as_written_between_parameters() -> None:
    deltas = _steps(
        [FunctionOpen("f"), ParameterOpen("a"), Json(b"3"), ParameterClose()],
        [ParameterOpen("b"), Json(b"[1,"), Json(b" 2]"), ParameterClose()],
        [ParameterOpen("größe"), Text(b""), ParameterClose(), CallClose()],
    )
    assert _arguments(_flat(deltas)) == '{"a": 3, "b": [1, 2], "größe": ""}'


def test_a_parameter_without_any_piece_is_an_empty_string() -> None:
    [deltas] = _steps([FunctionOpen("f"), ParameterOpen("a"), ParameterClose(), CallClose()])
    assert _arguments(deltas) == '{"a": ""}'


def test_a_call_without_parameters_has_an_empty_object() -> None:
    assert _steps([FunctionOpen("f")], [CallClose()])[1] == [ArgumentsDelta(0, "{}")]


def test_json_arguments_pass_as_the_model_wrote_them() -> None:
    deltas = _steps([FunctionOpen("f"), Json(b'{ "a" :')], [Json(b"1}")], [CallClose()])
    assert deltas == [
        [CallDelta(0, "call_0", "f"), ArgumentsDelta(0, '{ "a" :')],
        [ArgumentsDelta(0, "1}")],
        [],
    ]


def test_calls_are_counted_from_zero_and_each_has_its_id() -> None:
    deltas = _flat(
        _steps(
            [FunctionOpen("f"), Json(b"{}"), CallClose()],
            [FunctionOpen("g"), ParameterOpen("x"), Json(b"true"), ParameterClose(), CallClose()],
        )
    )
    assert [d for d in deltas if isinstance(d, CallDelta)] == [
        CallDelta(0, "call_0", "f"),
        CallDelta(1, "call_1", "g"),
    ]
    assert (_arguments(deltas, 0), _arguments(deltas, 1)) == ("{}", '{"x": true}')


def test_content_and_reasoning_are_decoded_apart() -> None:
    assert _steps(
        [Reasoning(b"hm \xc3"), Content(b"\xe6\x9d")],
        [Reasoning(b"\xa9"), Content(b"\xb1")],
        [Content(b"")],
    ) == [[ReasoningDelta("hm ")], [ReasoningDelta("é"), ContentDelta("東")], []]


def test_ids_are_call_and_24_letters_or_digits() -> None:
    ids = {new_call_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(i) == 29 and i.startswith("call_") and i[5:].isalnum() and i.isascii() for i in ids)


# One call of each family from the same arguments, its bytes cut anywhere and dealt to steps anyhow.

texts = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('"\\\n\x00é東🗼')))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments_objects = st.dictionaries(texts, values, max_size=4)


def _pieces(data: st.DataObject, kind: type[Text] | type[Json], raw: bytes) -> Iterator[ParseEvent]:
    edges = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    for start, end in itertools.pairwise([0, *edges, len(raw)]):
        yield kind(raw[start:end])


def _elements(data: st.DataObject, arguments: dict[str, Any]) -> Iterator[ParseEvent]:
    yield FunctionOpen("f")
    for name, value in arguments.items():
        yield ParameterOpen(name)
        if isinstance(value, str):
            yield from _pieces(data, Text, value.encode())
        else:
            yield from _pieces(data, Json, json.dumps(value, ensure_ascii=False).encode())
        yield ParameterClose()
    yield CallClose()


def _deal(data: st.DataObject, events: list[ParseEvent]) -> list[list[ParseEvent]]:
    edges = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=8)))
    return [events[start:end] for start, end in itertools.pairwise([0, *edges, len(events)])]


@given(st.data(), arguments_objects)
def test_elements_concatenate_to_json_dumps_of_the_arguments(
    data: st.DataObject, arguments: dict[str, Any]
) -> None:
    emitter = _emitter()
    steps = [emitter.feed(events) for events in _deal(data, list(_elements(data, arguments)))]
    assert _arguments(_flat(steps)) == json.dumps(arguments, ensure_ascii=False)


@given(st.data(), arguments_objects, st.booleans())
def test_json_arguments_concatenate_to_what_was_written(
    data: st.DataObject, arguments: dict[str, Any], ascii_only: bool
) -> None:
    written = json.dumps(arguments, ensure_ascii=ascii_only)
    events = [FunctionOpen("f"), *_pieces(data, Json, written.encode()), CallClose()]
    emitter = _emitter()
    steps = [emitter.feed(step) for step in _deal(data, events)]
    assert _arguments(_flat(steps)) == written


@given(st.data(), arguments_objects)
def test_no_fragment_is_empty_and_each_can_be_encoded(data: st.DataObject, arguments: dict[str, Any]) -> None:
    emitter = _emitter()
    for events in _deal(data, list(_elements(data, arguments))):
        for delta in emitter.feed(events):
            if isinstance(delta, ArgumentsDelta):
                assert delta.fragment
                delta.fragment.encode()
