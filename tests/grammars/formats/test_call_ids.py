"""The ids of calls in a chat's history are those that the model's family writes."""

import re

import pytest

from larksong.grammars import wire_format


def test_kimis_history_has_the_ids_that_the_family_counts_or_the_model_wrote() -> None:
    wire = wire_format("kimi_k2")
    calls = [("call_a", "read"), ("functions.read:1", "read"), ("call_b", "write")]
    assert wire.history_ids(calls) == {
        "call_a": "functions.read:0",
        "functions.read:1": "functions.read:1",
        "call_b": "functions.write:2",
    }
    text = wire.render_calls([("read", {}), ("write", {"path": "functions.x:7"})])
    assert wire.written_ids(f"See {text}") == ["functions.read:0", "functions.write:1"]


@pytest.mark.parametrize("name", ["mistral_v3", "mistral_v11"])
def test_mistrals_history_has_ids_of_nine_letters_and_digits(name: str) -> None:
    wire = wire_format(name)
    ids = wire.history_ids([("call_abc", "f"), ("abcDEF123", "f")])
    assert re.fullmatch("[a-zA-Z0-9]{9}", ids["call_abc"])
    assert ids["abcDEF123"] == "abcDEF123"
    assert wire.written_ids(wire.render_calls([("f", {}), ("g", {})])) == ["000000000", "000000001"]
