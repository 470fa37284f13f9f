"""One engine, many threads: each sequence gets the masks and events that it would get alone."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier
from time import monotonic

import pytest

from larksong.engine.engine import Engine
from larksong.engine.events import Events
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, wire_format
from tests.support.calls import joined
from tests.support.examples import times
from tests.support.turns import CALLS, SEARCH, TOOLS
from tests.support.vocabularies import cut_with_markers

THREADS = 8
SECONDS = float(os.environ.get("LARKSONG_SECONDS", "2"))
FORMATS = ("hermes", "qwen3_coder", "glm_4_7", "kimi_k2")
Sequence_ = tuple[Grammar, list[int]]


@pytest.fixture(autouse=True)
def _switch_threads_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run(engine: Engine, part: Grammar, tokens: list[int]) -> tuple[list[bytes], list[Events]]:
    matcher = engine.matcher(part)
    masks, events = [], []
    for token in tokens:
        masks.append(matcher.mask().tobytes())
        events.append(matcher.advance(token))
    assert matcher.finished
    return masks, events


def sequences(of: Vocabulary, rng: Random) -> list[Sequence_]:
    """Turns of some formats, some over the same grammar, each cut in its own way."""
    found = []
    for name in FORMATS:
        wire = wire_format(name)
        shared = wire.grammar(TOOLS, CallPolicy(), of)
        # A copy of the tool with other names makes a grammar that no other test has used.
        renamed = Tool(f"search_{rng.random():.6f}", "", SEARCH.parameters)
        own = wire.grammar([renamed], CallPolicy(required=True), of)
        text = wire.render_calls(CALLS)
        found += [(shared, "Hello <tool\n" + text)] * 2
        found += [(own, wire.render_calls([(renamed.name, arguments) for _, arguments in CALLS[4:6]]))]
    ends = sorted(of.eos_ids)[:1]
    return [(part, [*cut_with_markers(of, text.encode(), rng), *ends]) for part, text in found]


@pytest.mark.parametrize("seed", range(times(1)))
def test_threads_on_one_engine_get_the_masks_that_each_gets_alone(
    seed: int, byte_vocabulary: Vocabulary
) -> None:
    turns = sequences(byte_vocabulary, Random(seed))
    alone = [run(Engine(byte_vocabulary), *turn) for turn in turns]
    engine = Engine(byte_vocabulary)
    barrier = Barrier(THREADS)

    def work(number: int) -> list[tuple[list[bytes], list[Events]]]:
        # All begin at once and in orders of their own, so that what is not known yet is asked for together.
        order = Random(number).sample(range(len(turns)), len(turns)) if number else range(len(turns))
        barrier.wait()
        done = {index: run(engine, *turns[index]) for index in order}
        return [done[index] for index in range(len(turns))]

    with ThreadPoolExecutor(THREADS) as pool:
        for results in pool.map(work, range(THREADS)):
            for (masks, events), (expected, told) in zip(results, alone, strict=True):
                assert masks == expected
                assert events == told
    assert all(joined(event for events in told for event in events) for _, told in alone)


def test_threads_over_one_grammar_share_their_masks(byte_vocabulary: Vocabulary) -> None:
    part = wire_format("qwen3_coder").grammar(TOOLS, CallPolicy(), byte_vocabulary)
    text = "\n".join(wire_format("qwen3_coder").render_call(*call) for call in CALLS).encode()
    tokens = cut_with_markers(byte_vocabulary, text, Random(7))
    engine = Engine(byte_vocabulary)
    barrier = Barrier(THREADS)

    def work(_: int) -> list[object]:
        matcher = engine.matcher(part)
        barrier.wait()
        masks: list[object] = []
        for token in tokens:
            masks.append(matcher.mask())
            matcher.advance(token)
        return masks

    with ThreadPoolExecutor(THREADS) as pool:
        first, *others = pool.map(work, range(THREADS))
    for masks in others:
        assert [id(mask) for mask in masks] == [id(mask) for mask in first]


def test_a_small_cache_under_threads_loses_nothing(byte_vocabulary: Vocabulary) -> None:
    turns = sequences(byte_vocabulary, Random(11))
    alone = [run(Engine(byte_vocabulary), *turn) for turn in turns]
    engine = Engine(byte_vocabulary, cache_bytes=1)
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda turn: run(engine, *turn), turns * 2))
    assert results == alone * 2


def test_threads_find_the_same_for_a_while_under_a_cache_that_forgets(byte_vocabulary: Vocabulary) -> None:
    """`LARKSONG_SECONDS`: how long."""
    turns = sequences(byte_vocabulary, Random(12))
    alone = [run(Engine(byte_vocabulary), *turn) for turn in turns]
    engine = Engine(byte_vocabulary, cache_bytes=4 << 20)
    end = monotonic() + SECONDS

    def work(number: int) -> int:
        rng = Random(number)
        done = 0
        while monotonic() < end:
            index = rng.randrange(len(turns))
            assert run(engine, *turns[index]) == alone[index]
            done += 1
        return done

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))
