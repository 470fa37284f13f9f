"""Deltas in blocks: nothing is lost but blank text, and one block is open at a time."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from larksong.api.turns.blocks import Block, BlockClosed, BlockEvent, BlockGrown, BlockOpened, BlockWriter
from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
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


def joined(told: list[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    """The stretches, neighbours of one kind as one."""
    found: list[tuple[str, str]] = []
    for kind, pieces in told:
        if found and found[-1][0] == kind != "call":
            found[-1] = (kind, found[-1][1] + "".join(pieces))
        else:
            found.append((kind, "".join(pieces)))
    return found


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
@examples(200)
def test_blocks_hold_what_the_deltas_say(told: list[tuple[str, list[str]]]) -> None:
    writer = BlockWriter()
    events = [event for delta in deltas(told) for event in writer.feed([delta])]
    events += writer.end(complete=True)
    found = [(block.kind, block.text) for block in read(events)]
    stretches = joined(told)
    if all(kind == "call" or text.strip() for kind, text in stretches):
        assert found == stretches
    # Blank stretches part nothing and are lost, or stand with text of their kind.
    assert all(kind == "call" or text.strip() for kind, text in found)
    assert all(a != b or a == "call" for (a, _), (b, _) in itertools.pairwise(found))
    assert [text for kind, text in found if kind == "call"] == [
        text for kind, text in stretches if kind == "call"
    ]
    for each in ("text", "reasoning"):
        inked, said = ("".join(text for kind, text in some if kind == each) for some in (found, stretches))
        assert "".join(inked.split()) == "".join(said.split())
