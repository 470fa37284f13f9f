"""One job under our filter: what exllamav3 asks of it, in which order, and what comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from larksong.engine.backends.exllamav3.filter import MatcherFilter
from larksong.engine.events import CallClose, FunctionOpen
from larksong.grammars import CallPolicy, wire_format
from tests.exllamav3.rig import Ran, Rig
from tests.support.calls import turn
from tests.support.generations import CALL_TEXT


def events_of(filter: MatcherFilter) -> list[Any]:
    return [event for token in filter.accepted for event in token.events]


def arguments(filter: MatcherFilter) -> list[dict[str, Any] | None]:
    return [call.arguments for call in turn((*events_of(filter), *filter.finish())).calls]


def test_a_call_comes_out_whole_and_its_events_tell_it(rig: Rig) -> None:
    rig.follow({"hello": CALL_TEXT})
    ours = rig.filter()
    (ran,) = rig.run(rig.generator(), rig.job("hello", ours))
    assert ran.reason == "stop_token"
    assert arguments(ours) == [{"city": "Amsterdam", "unit": "celsius"}]
    assert FunctionOpen("get_weather") in events_of(ours)
    assert events_of(ours)[-1] == CallClose()
    assert ours.finished
    assert ours.fault is None


def test_tokens_that_the_mask_refuses_never_come(rig: Rig) -> None:
    """The model wants something else at every step; the call is valid all the same."""
    for seed in range(20):
        ours = rig.filter()
        (ran,) = rig.run(rig.generator(), rig.job("hello", ours, seed=seed, max_new_tokens=3000))
        assert ran.ids == [token.token for token in ours.accepted]
        if ran.reason == "stop_token":
            (call,) = arguments(ours)
            assert call is not None
            assert call["unit"] in ("celsius", "fahrenheit")
            assert isinstance(call["city"], str)
        else:
            assert ran.reason == "max_new_tokens"
        assert ours.fault is None
