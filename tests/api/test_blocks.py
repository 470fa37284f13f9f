"""Deltas in blocks: nothing is lost but blank text, and one block is open at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from larksong.api.blocks import Block, BlockClosed, BlockEvent, BlockGrown, BlockOpened, BlockWriter
from larksong.api.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from tests.support.examples import examples

texts = st.sampled_from(["\n", " ", "a", " b\n", "é"])
stretches = st.lists(
    st.tuples(st.sampled_from(["text", "reasoning", "call"]), st.lists(texts, min_size=1, max_size=4)),
    max_size=6,
)


def deltas(told: list[tuple[str, list[str]]]) -> list[Delta]:
    made: list[Delta] = []
    calls = 0
    for kind, pieces in told:
        if kind == "call":
            made.append(CallDelta(calls, f"call_{calls}", "f"))
            made += [ArgumentsDelta(calls, piece) for piece in pieces]
            calls += 1
        else:
            made += [(ContentDelta if kind == "text" else ReasoningDelta)(piece) for piece in pieces]
    return made


def expected(told: list[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    joined: list[list[str]] = []
    for kind, pieces in told:
        if joined and joined[-1][0] == kind != "call":
            joined[-1][1] += "".join(pieces)
        else:
            joined.append([kind, "".join(pieces)])
    return [(kind, text) for kind, text in joined if kind == "call" or text.strip()]


def read(events: list[BlockEvent]) -> list[Block]:
    """The blocks; checks that each is opened, grown and closed before the next."""
    blocks: list[Block] = []
    grown = ""
    is_open = False
    for event in events:
        match event:
            case BlockOpened(block):
                assert not is_open
                assert block.index == len(blocks)
                blocks.append(block)
                is_open, grown = True, ""
            case BlockGrown(block, piece):
                assert is_open
                assert block is blocks[-1]
                grown += piece
            case BlockClosed(block):
                assert is_open
                assert block is blocks[-1]
                assert block.text == grown
                is_open = False
    assert not is_open
    return blocks


@given(stretches)
@examples(300)
def test_blocks_hold_what_the_deltas_say(told: list[tuple[str, list[str]]]) -> None:
    writer = BlockWriter()
    events = [event for delta in deltas(told) for event in writer.feed([delta])]
    events += writer.end(complete=True)
    found = [(block.kind, block.text) for block in read(events)]
    merged: list[tuple[str, str]] = []
    # What blank text alone parted is one.
    for kind, text in expected(told):
        if merged and merged[-1][0] == kind != "call":
            merged[-1] = (kind, merged[-1][1] + text)
        else:
            merged.append((kind, text))
    assert found == merged
