"""The filter and its deltas in programs of other people."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from exllamav3 import LLGuidanceFilter

from larksong.api import DeltaStream, LarksongFilter
from larksong.grammars import UnknownFormat, format_names, wire_format
from tests.exllamav3.contract import ARGUMENTS
from tests.exllamav3.rig import Rig
from tests.support.generations import CALL_TEXT, WEATHER

EXAMPLE = Path(__file__).parents[2] / "examples" / "exllamav3_filter.py"
SPEC: dict[str, Any] = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": dict(WEATHER.parameters)},
}


def call_of(deltas: list[Any]) -> tuple[str, Any]:
    functions = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    return functions[0]["name"], json.loads("".join(each["arguments"] for each in functions))


def run(rig: Rig, filter: LarksongFilter, **options: Any) -> tuple[list[Any], DeltaStream]:
    stream = DeltaStream(filter)
    generator = rig.generator(**options.pop("generator", {}))
    stops = [*filter.stop_conditions, *options.pop("stops", ())]
    generator.enqueue(rig.job("hello", filter, stops=stops, **options))
    deltas = []
    while generator.num_remaining_jobs():
        for result in generator.iterate():
            deltas += stream.feed(result)
    return deltas, stream


@pytest.mark.parametrize("format", format_names())
def test_a_call_in_every_format(rig: Rig, format: str) -> None:
    rig.follow({"hello": wire_format(format).render_call("get_weather", ARGUMENTS)})
    deltas, stream = run(rig, LarksongFilter(rig.tokenizer, [SPEC], format=format))
    assert call_of(deltas) == ("get_weather", ARGUMENTS)
    assert (stream.finish_reason, stream.error) == ("tool_calls", None)


def test_text_without_a_call(rig: Rig) -> None:
    rig.follow({"hello": "It rains."})
    deltas, stream = run(rig, LarksongFilter(rig.tokenizer, [WEATHER], format="hermes"))
    assert "".join(delta["content"] for delta in deltas) == "It rains."
    assert stream.finish_reason == "stop"


def test_a_required_call_whatever_the_model_wants(rig: Rig) -> None:
    rig.follow({"hello": "It rains."})
    filter = LarksongFilter(rig.tokenizer, [SPEC], format="hermes", only="get_weather", max_calls=1)
    deltas, stream = run(rig, filter, max_new_tokens=400)
    if stream.finish_reason == "tool_calls":
        jsonschema.validate(call_of(deltas)[1], SPEC["function"]["parameters"])
    else:
        assert stream.finish_reason == "length"


def test_banned_strings_do_not_reach_the_deltas(rig: Rig) -> None:
    rig.follow({"hello": CALL_TEXT})
    for drafts in ({}, {"ngram_match_min": 1}):
        filter = LarksongFilter(rig.tokenizer, [SPEC], format="hermes", required=True)
        deltas, _ = run(rig, filter, banned_strings=["amster"], max_new_tokens=120, generator=drafts)
        assert "amster" not in json.dumps(deltas).lower()
        assert "get_weather" in json.dumps(deltas)


def test_deltas_behind_a_trigger_are_what_was_kept_where_strings_are_banned(rig: Rig) -> None:
    """Tokens before the trigger are not the filter's, and do not count as given out by it."""
    trigger = rig.vocabulary.special["<think>"]
    rig.follow({"hello": f"one two three four five six seven eight<think>{CALL_TEXT}"})
    for drafts in ({}, {"ngram_match_min": 1}, {"forced": 16}):
        filter = LarksongFilter(rig.tokenizer, [SPEC], format="hermes", required=True, trigger_token=trigger)
        deltas, stream = run(rig, filter, banned_strings=["amster"], max_new_tokens=120, generator=drafts)
        assert (stream.finish_reason, stream.error) == ("length", None)
        kept = b"".join(rig.vocabulary.tokens[token.token] for token in filter.accepted).decode(
            errors="ignore"
        )
        calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
        arguments = "".join(call["arguments"] for call in calls)
        assert arguments.startswith('{"city": "')
        assert arguments[:40] in kept


def test_an_end_that_is_not_the_grammars_is_no_limit_either(rig: Rig) -> None:
    rig.follow({"hello": "It rains. Or not."})
    trigger = rig.vocabulary.special["<think>"]
    _, stream = run(rig, LarksongFilter(rig.tokenizer, [SPEC], format="hermes", trigger_token=trigger))
    assert stream.finish_reason == "stop"
    for reason, options in (("length", {"max_new_tokens": 3}), ("stop", {"stops": ["rains"]})):
        filter = LarksongFilter(rig.tokenizer, [SPEC], format="hermes")
        _, stream = run(rig, filter, **options)
        assert stream.finish_reason == reason


def test_streams_of_several_jobs_may_be_given_every_result(rig: Rig) -> None:
    rig.follow({"hello": CALL_TEXT, "other": "It rains."})
    filters = [LarksongFilter(rig.tokenizer, [SPEC], format="hermes") for _ in range(2)]
    streams = [DeltaStream(filter) for filter in filters]
    generator = rig.generator()
    generator.enqueue([rig.job(*pair) for pair in zip(("hello", "other"), filters, strict=True)])
    told: list[list[Any]] = [[], []]
    while generator.num_remaining_jobs():
        for result in generator.iterate():
            for stream, deltas in zip(streams, told, strict=True):
                deltas += stream.feed(result)
    assert [stream.finish_reason for stream in streams] == ["tool_calls", "stop"]
    assert call_of(told[0]) == ("get_weather", ARGUMENTS)
    assert "".join(delta["content"] for delta in told[1]) == "It rains."


def test_a_filter_serves_one_job_after_another(rig: Rig) -> None:
    rig.follow({"hello": CALL_TEXT})
    filter = LarksongFilter(rig.tokenizer, [SPEC], format="hermes")
    for _ in range(2):
        deltas, stream = run(rig, filter)
        assert call_of(deltas) == ("get_weather", ARGUMENTS)
        assert stream.finish_reason == "tool_calls"


def test_a_filter_of_two_jobs_that_run_fails_both_and_says_why(rig: Rig) -> None:
    rig.follow({"hello": CALL_TEXT, "other": CALL_TEXT, "third": CALL_TEXT})
    filter, good = (LarksongFilter(rig.tokenizer, [SPEC], format="hermes") for _ in range(2))
    jobs = [rig.job(*pair) for pair in (("hello", filter), ("other", filter), ("third", good))]
    *both, third = rig.run(rig.generator(), *jobs)
    assert filter.fault == "this filter belongs to a job that is still running: each job needs one of its own"
    assert all(ran.last["eos"] and len(ran.ids) <= 2 for ran in both)
    assert (third.reason, good.fault) == ("stop_token", None)
    _, stream = run(rig, filter)
    assert stream.finish_reason == "tool_calls"


def test_a_fault_of_another_filter_is_one_line(rig: Rig) -> None:
    """llguidance's mask allows the marker's token for the marker's letters, and then it does not take it."""
    theirs = LLGuidanceFilter(rig.tokenizer, None, None, True, lark_grammar='start: "<tool_call>" /(.|\\n)*/')
    rig.follow({"hello": CALL_TEXT})
    filter = LarksongFilter(rig.tokenizer, [SPEC], format="hermes", also=[theirs])
    _, stream = run(rig, filter)
    assert stream.finish_reason == "error"
    assert "llguidance matcher error" in (stream.error or "")
    assert "\n" not in (stream.error or "")


def test_other_filters_that_leave_nothing_end_the_job_with_an_error(rig: Rig) -> None:
    contrary = LLGuidanceFilter(rig.tokenizer, None, None, False, regex="[0-9]+")
    filter = LarksongFilter(rig.tokenizer, [SPEC], format="hermes", required=True, also=[contrary])
    _, stream = run(rig, filter)
    assert stream.finish_reason == "error"
    assert "no token in common" in (stream.error or "")


def test_the_shared_work_is_done_once(rig: Rig) -> None:
    first, second = (LarksongFilter(rig.tokenizer, [SPEC], format="hermes") for _ in range(2))
    assert first._start._automaton is second._start._automaton


def test_an_unknown_format_is_refused(rig: Rig) -> None:
    with pytest.raises(UnknownFormat):
        LarksongFilter(rig.tokenizer, [SPEC], format="nobody")


def test_the_example_prints_a_valid_call(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = runpy.run_path(str(EXAMPLE), run_name="example")
    program["main"](str(folder), device="cpu")
    *lines, last = capsys.readouterr().out.splitlines()
    name, arguments = call_of([json.loads(line) for line in lines])
    assert name == "get_weather"
    jsonschema.validate(arguments, program["WEATHER"]["function"]["parameters"])
    assert last.strip() == "tool_calls"
