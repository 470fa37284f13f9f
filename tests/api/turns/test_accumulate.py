"""Chunks of many servers' spellings add up to the same messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.api.turns.accumulate import Accumulator, StreamFault, accumulate
from tests.support.examples import examples

ARGUMENTS = '{"city": "São \\"Paulo\\"\\n", "days": 3}'
PIECES = ['{"city": "São', ' \\"Paulo\\"\\n"', ', "days"', ": 3}"]


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": reason}], **more}


def call(
    index: int | None = None, id: Any = ..., name: Any = ..., arguments: Any = ..., type: Any = ...
) -> Any:
    """A chunk of one delta of a call; what is not given is absent."""
    function = {key: each for key, each in (("name", name), ("arguments", arguments)) if each is not ...}
    found: dict[str, Any] = {"function": function} if function else {}
    found |= {
        key: each for key, each in (("index", index), ("id", id), ("type", type)) if each not in (..., None)
    }
    if id is None:
        found["id"] = None
    return chunk({"tool_calls": [found]})


def calls(chunks: Sequence[Any]) -> list[tuple[str, str, Any]]:
    [message] = accumulate(chunks).messages
    return [
        (each["id"], each["function"]["name"], json.loads(each["function"]["arguments"]))
        for each in message["tool_calls"]
    ]


EXPECTED = [("a", "f", json.loads(ARGUMENTS))]
ROLE = chunk({"role": "assistant", "content": ""})
END = chunk({}, "tool_calls")

VARIANTS = {
    "standard": [call(0, "a", "f", "", "function"), *(call(0, arguments=each) for each in PIECES)],
    "no index": [call(None, "a", "f", ""), *(call(None, arguments=each) for each in PIECES)],
    "id and type repeated": [
        call(0, "a", "f", ""),
        *(call(0, "a", arguments=p, type="function") for p in PIECES),
    ],
    "name repeated": [call(0, "a", "f", ""), *(call(0, name="f", arguments=each) for each in PIECES)],
    "id and name repeated": [call(0, "a", "f", each) for each in PIECES],
    "id and name repeated, no index": [call(None, "a", "f", each) for each in PIECES],
    "nulls later": [call(0, "a", "f", ""), *(call(0, None, None, each, None) for each in PIECES)],
    "empty texts later": [call(0, "a", "f", ""), *(call(0, "", "", each) for each in PIECES)],
    "no type": [call(0, "a", "f", ""), *(call(0, arguments=each) for each in PIECES)],
    "no arguments first": [call(0, "a", "f"), *(call(0, arguments=each) for each in PIECES)],
    "null arguments first": [call(0, "a", "f", None), *(call(0, arguments=each) for each in PIECES)],
    "an empty object first": [call(0, "a", "f", {}), *(call(0, arguments=each) for each in PIECES)],
    "a written empty object first": [call(0, "a", "f", "{}"), *(call(0, arguments=each) for each in PIECES)],
    "everything at once": [call(0, "a", "f", ARGUMENTS)],
    "an object": [call(0, "a", "f", json.loads(ARGUMENTS))],
    "an object after its stand-in": [call(0, "a", "f", "{}"), call(0, arguments=json.loads(ARGUMENTS))],
    "an object twice": [call(0, "a", "f", json.loads(ARGUMENTS))] * 2,
    "another id in every delta": [call(0, str(i or "a"), "f", each) for i, each in enumerate(PIECES)],
    "the name in pieces": [call(0, "a", "", ""), call(0, name="f"), call(0, arguments=ARGUMENTS)],
    "a whole message": [
        {
            "choices": [
                {"message": {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ARGUMENTS}}]}}
            ]
        }
    ],
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_spelling_of_a_call_adds_up_to_it(variant: str) -> None:
    assert calls([ROLE, *VARIANTS[variant], END]) == EXPECTED


@pytest.mark.parametrize(
    "chunks",
    [
        [call(0, "a", "f", "{"), call(1, "b", "g", '{"x'), call(0, arguments="}"), call(1, arguments='": 1}')],
        [call(None, "a", "f", "{"), call(None, "b", "g", '{"x'), call(None, "a", arguments="}"), call(None, "b", arguments='": 1}')],
        [call(None, "a", "f", "{}"), call(None, "b", "g", ""), call(None, arguments='{"x": 1}')],
        [call(0, "a", "f", "{}"), call(0, "b", "g", '{"x": 1}')],
        [call(0, "a", "f", None), call(1, "b", "g", {"x": 1})],
        [call(None, "a", "f", None), call(None, "b", "g", {"x": 1})],
    ],
    ids=["by index", "by id", "without index", "all index 0", "null and an object", "no index, no arguments"],
)  # fmt: skip
def test_several_calls_stay_apart(chunks: list[Any]) -> None:
    assert calls(chunks) == [("a", "f", {}), ("b", "g", {"x": 1})]


def test_two_calls_of_one_function_stay_apart_without_index_and_id() -> None:
    chunks = [call(None, ..., "f", '{"x": 1}'), call(None, ..., "f", '{"x": '), call(None, arguments="2}")]
    assert [arguments for _, _, arguments in calls(chunks)] == [{"x": 1}, {"x": 2}]


def test_a_call_without_an_id_gets_one_that_stays() -> None:
    accumulator = Accumulator()
    accumulator.add(call(0, ..., "f", "{}"))
    first, second = accumulator.result(), accumulator.result()
    assert first == second
    assert first.messages[0]["tool_calls"][0]["id"].startswith("call_")


def test_a_call_without_arguments_has_none() -> None:
    assert calls([call(0, "a", "f", "")]) == [("a", "f", {})]


@pytest.mark.parametrize("arguments", ['{"x": "lo', '{"x": "lo ', '{"x": ', ' {"x": 1} \n'])
def test_arguments_stay_as_they_are_also_where_they_were_cut_short(arguments: str) -> None:
    [message] = accumulate([call(0, "a", "f", arguments), chunk({}, "length")]).messages
    assert message["tool_calls"][0]["function"]["arguments"] == arguments


def test_a_stream_without_choices_has_no_messages() -> None:
    found = accumulate([{"choices": []}, {"usage": {"total_tokens": 3}}])
    assert (found.messages, found.finish_reasons, found.usage) == ([], [], {"total_tokens": 3})


def test_chunks_without_choices_are_passed_over() -> None:
    empty = {"choices": []}
    found = accumulate(
        [empty, ROLE, empty, *VARIANTS["standard"][:3], empty, *VARIANTS["standard"][3:], END, empty]
    )
    assert json.loads(found.messages[0]["tool_calls"][0]["function"]["arguments"]) == EXPECTED[0][2]
    assert found.finish_reasons == ["tool_calls"]


@pytest.mark.parametrize("field", [["reasoning_content"], ["reasoning"], ["reasoning_content", "reasoning"]])
def test_reasoning_has_one_field_whatever_the_server_calls_it(field: list[str]) -> None:
    chunks = [chunk(dict.fromkeys(field, each)) for each in ("Let ", "me.")]
    [message] = accumulate([ROLE, *chunks, chunk({"content": "Yes"}), chunk({"content": None})]).messages
    assert message == {"role": "assistant", "content": "Yes", "reasoning_content": "Let me."}


def test_content_may_come_in_parts_and_nulls_say_nothing() -> None:
    deltas: list[Any] = [
        {"content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}, None]},
        {"content": None, "tool_calls": [None]},
        {"tool_calls": None},
        None,
    ]
    chunks = [{"choices": [None, {"index": 0, "delta": delta}]} for delta in deltas]
    assert accumulate(chunks).messages == [{"role": "assistant", "content": "Hi there"}]


def test_several_choices_have_a_message_each() -> None:
    def of(index: int, text: str) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": {"content": text}}]}

    found = accumulate([of(1, "c"), of(0, "a"), of(1, "d"), of(0, "b")])
    assert [message["content"] for message in found.messages] == ["ab", "cd"]


def test_the_call_of_a_legacy_stream_is_a_function_call() -> None:
    deltas = [{"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": "{}"}}]
    [message] = accumulate(map(chunk, deltas)).messages
    assert message["function_call"] == {"name": "f", "arguments": "{}"}


def test_an_error_in_the_stream_is_raised() -> None:
    with pytest.raises(StreamFault, match="gone"):
        accumulate([ROLE, {"error": {"message": "The model is gone."}}])


members = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=6) | st.none(), max_size=3)


@given(st.data(), st.lists(members, min_size=1, max_size=4), st.booleans())
@examples(60)
def test_interleaved_pieces_find_their_calls(
    data: st.DataObject, arguments: list[Any], indexed: bool
) -> None:
    waiting: list[list[Any]] = []
    for place, each in enumerate(arguments):
        text = json.dumps(each)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        index, id = (place, ...) if indexed else (None, f"id{place}")
        waiting.append([call(index, f"id{place}", "f", ""), *(call(index, id, arguments=p) for p in pieces)])
    chunks = [own.pop(0) for own in waiting]
    while any(waiting):
        chunks.append(data.draw(st.sampled_from([own for own in waiting if own])).pop(0))
    assert calls(chunks) == [(f"id{place}", "f", each) for place, each in enumerate(arguments)]
