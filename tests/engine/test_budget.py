"""Finishing within a budget: with enough tokens every turn ends, and all its calls are complete and valid."""

import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from larksong.engine.budget import Budgeted
from larksong.engine.engine import Engine
from larksong.engine.events import Content, FunctionOpen, ParseEvent
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars import CallPolicy, Tool, format_names, wire_format
from tests.support.calls import Call
from tests.support.emitted import emitted_calls
from tests.support.examples import examples
from tests.support.masks import allowed
from tests.support.random_tools import grammar_of, of_kind, policies, some_tools
from tests.support.schemas import meaning
from tests.support.turns import TOOLS, WEATHER
from tests.support.vocabularies import cut, cut_with_markers, vocabulary
from tests.support.walks import Walker

FORMATS = pytest.mark.parametrize("name", format_names())
MARKERS = ("<tool_call>", "</tool_call>")
PIECES = (
    *(
        b"\n<",
        b"</",
        b"<parameter=",
        b"\n</parameter>\n",
        b"parameter",
        b"<function=",
        b">\n",
        b"\n\n",
        b"  ",
        b"x>\n",
    ),
    *(
        b'{"',
        b'"}',
        b'"}}',
        b'": ',
        b'": "',
        b'", "',
        b'",',
        b'":',
        b", ",
        b"},",
        b"]}",
        b"[]",
        b"{}",
        b'""',
        b"[[",
    ),
    *(
        b"<tool_call>\n",
        b'{"name": "',
        b"read",
        b"_file",
        b"arguments",
        b"true",
        b"null",
        b"city",
        b"12",
        b"\\u00",
    ),
    *(
        b"\\ud83d",
        b"\xf0\x9f",
        b"\xc3",
        b"aaaaaaaa",
        b"a\n</parameter>\n<parameter=",
        b'"city":',
        b'[{"',
        b"<tool",
    ),
)
VOCABULARIES = {"markers": vocabulary(PIECES, MARKERS), "letters": vocabulary(PIECES), "bytes": vocabulary()}
ENGINES = {name: Engine(of) for name, of in VOCABULARIES.items()}
WALKERS = {name: Walker(of) for name, of in VOCABULARIES.items()}
REQUIRED = CallPolicy(required=True, min_calls=1)
FOREVER = 1 << 30


def matcher(
    name: str, kind: str = "markers", policy: CallPolicy = REQUIRED, tools: list[Tool] = TOOLS
) -> Matcher:
    engine = ENGINES[kind]
    return engine.matcher(grammar_of(name, tools, policy, engine.vocabulary))


def walk(walker: Walker, budgeted: Budgeted, rng: Random, budget: int) -> list[Call]:
    """Write any tokens that the masks allow, at most `budget`; the calls that they make."""
    events = []
    for _ in range(budget):
        choices = allowed(budgeted.mask())
        assert choices
        events += budgeted.advance(walker._any(choices, rng))
        assert budgeted.fault is None
        if budgeted.finished:
            break
    return emitted_calls([*events, *budgeted.finish()])


def check(calls: list[Call], tools: list[Tool]) -> None:
    by_name = {tool.name: tool for tool in tools}
    for call in calls:
        assert call.arguments is not None
        Draft202012Validator(meaning(by_name[call.name].parameters, closed=True)).validate(call.arguments)


@FORMATS
@given(
    some_tools(),
    policies,
    st.sampled_from(sorted(ENGINES)),
    st.randoms(use_true_random=False),
    st.just(0) | st.integers(0, 80),
)
@examples(20)
def test_random_walks_finish_all_calls(
    name: str, tools: list[Tool], policy: CallPolicy, kind: str, rng: Random, more: int
) -> None:
    kind = of_kind(kind, name)
    inner = matcher(name, kind, policy, tools)
    budget = inner.needed() + more
    budgeted = Budgeted(inner, budget)
    calls = walk(WALKERS[kind], budgeted, rng, budget)
    assert budgeted.finished
    check(calls, tools)
    assert len(calls) >= policy.min_calls
    assert set(budgeted.finished_calls) <= set(range(len(calls)))


@FORMATS
@given(some_tools(), policies, st.randoms(use_true_random=False), st.just(0) | st.integers(0, 40))
@examples(2)
def test_random_walks_over_a_real_vocabulary_finish_all_calls(
    smollm2_walks: tuple[Engine, Walker],
    name: str,
    tools: list[Tool],
    policy: CallPolicy,
    rng: Random,
    more: int,
) -> None:
    engine, walker = smollm2_walks
    inner = engine.matcher(grammar_of(name, tools, policy, engine.vocabulary))
    budget = inner.needed() + more
    budgeted = Budgeted(inner, budget)
    calls = walk(walker, budgeted, rng, budget)
    assert budgeted.finished
    check(calls, tools)


@pytest.fixture(scope="module")
def smollm2_walks(smollm2_vocabulary: Vocabulary) -> tuple[Engine, Walker]:
    return Engine(smollm2_vocabulary), Walker(smollm2_vocabulary)


@FORMATS
@given(st.randoms(use_true_random=False), st.integers(1, 120))
@examples(20)
def test_masks_are_the_plain_ones_less_what_leads_too_far(name: str, rng: Random, left: int) -> None:
    inner = matcher(name)
    WALKERS["markers"].walk(inner, rng, wander=30, limit=rng.randint(0, 30))
    if inner.finished:
        return
    plain, kept = allowed(inner.mask()), allowed(inner.mask_within(left))
    assert kept <= plain
    limit = max(left, inner.needed()) - 1
    for token in [
        *rng.sample(sorted(plain), min(30, len(plain))),
        *rng.sample(sorted(kept), min(10, len(kept))),
    ]:
        at = inner.fork()
        at.advance(token)
        assert at.needed() <= limit if token in kept else at.needed() >= limit - 1


@FORMATS
def test_far_from_the_limit_the_mask_is_the_matchers_own(name: str) -> None:
    inner = matcher(name)
    rng = Random(4)
    WALKERS["markers"].walk(
        inner, rng, wander=200, limit=200, visit=lambda at, _: _same(at.mask(), at.mask_within(FOREVER))
    )


def _same(left: object, right: object) -> None:
    assert left is right


@FORMATS
def test_below_what_is_needed_masks_still_lead_towards_the_end(name: str) -> None:
    inner = matcher(name)
    needed = inner.needed()
    budgeted = Budgeted(inner, 3)
    for step in range(needed):
        assert not budgeted.finished
        assert inner.needed() == needed - step
        budgeted.advance(min(allowed(budgeted.mask())))
    assert budgeted.finished


@FORMATS
def test_without_a_budget_a_turn_is_an_honest_prefix(name: str) -> None:
    inner = matcher(name)
    needed = inner.needed()
    WALKERS["markers"].walk(inner, Random(1), wander=FOREVER, limit=needed - 1)
    assert not inner.finished
    assert inner.fault is None


def test_threads_share_one_filter() -> None:
    made = wire_format("hermes").grammar(TOOLS, REQUIRED, VOCABULARIES["letters"])
    single, shared = Engine(VOCABULARIES["letters"]), Engine(VOCABULARIES["letters"])
    tokens: list[int] = []
    WALKERS["letters"].walk(
        single.matcher(made),
        Random(9),
        wander=80,
        limit=80,
        visit=lambda at, _: tokens.__setitem__(slice(None), at._tokens),
    )

    def masks(engine: Engine) -> list[tuple[int, frozenset[int]]]:
        at = engine.matcher(made)
        found = []
        for token in tokens:
            found.append((at.needed(), frozenset(allowed(at.mask_within(at.needed() + 3)))))
            at.advance(token)
        return found

    wanted = masks(single)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == wanted for found in pool.map(masks, [shared] * 8))


# -- which calls were finished

CALL = b'<tool_call>\n{"name": "get_weather", "arguments": {"city": "'


def begun(budget: int, text: bytes = CALL, policy: CallPolicy = CallPolicy()) -> Budgeted:  # noqa: B008
    """A hermes turn in letters, `text` written and `budget` tokens left."""
    tokens = cut(VOCABULARIES["letters"], text)
    budgeted = Budgeted(matcher("hermes", "letters", policy, [WEATHER]), budget + len(tokens))
    for token in tokens:
        assert token in allowed(budgeted.mask())
        budgeted.advance(token)
    return budgeted


def write(budgeted: Budgeted, text: bytes) -> None:
    for token in cut(VOCABULARIES["letters"], text):
        assert token in allowed(budgeted.mask())
        budgeted.advance(token)


(END,) = VOCABULARIES["letters"].eos_ids


def test_a_call_that_was_cut_short_is_named() -> None:
    budgeted = begun(60)
    write(budgeted, b"a" * 34)
    while not budgeted.finished:
        budgeted.advance(min(allowed(budgeted.mask())))
    assert budgeted.finished_calls == (0,)
    assert budgeted.limited


def test_a_call_that_was_written_freely_is_not_named() -> None:
    budgeted = begun(FOREVER)
    write(budgeted, b'Paris"}}\n</tool_call>')
    budgeted.advance(END)
    assert budgeted.finished
    assert budgeted.finished_calls == ()
    assert not budgeted.limited


def test_of_two_calls_only_the_one_near_the_limit_is_named() -> None:
    first = CALL + b'Paris"}}\n</tool_call>\n'
    rest = CALL + b"b" * 20
    budgeted = begun(len(cut(VOCABULARIES["letters"], rest)) + 25, first)
    write(budgeted, rest)
    while not budgeted.finished:
        budgeted.advance(min(allowed(budgeted.mask())))
    assert budgeted.finished_calls == (1,)
    assert budgeted.limited


def test_text_that_ends_by_itself_near_the_limit_is_not_limited() -> None:
    # Somewhere on the way to a call it is certain that none would fit.
    marker = b'<tool_call>\n{"name": "'
    texts = (b"The weather is fine. " + marker[:size] for size in range(len(marker)))
    budgeted = next(
        each for each in (begun(5, text) for text in texts) if each.mask() is not each.inner.mask()
    )
    assert END in allowed(budgeted.mask())
    budgeted.advance(END)
    assert budgeted.finished
    assert not budgeted.limited
    assert budgeted.finished_calls == ()


def test_text_that_reaches_the_limit_ends_there() -> None:
    budgeted = begun(1, b"The weather is fine.")
    assert allowed(budgeted.mask()) == {END}
    budgeted.advance(END)
    assert budgeted.limited
    assert budgeted.finished_calls == ()


def test_no_call_begins_that_could_not_be_finished() -> None:
    budgeted = begun(12, b"Well: ")
    rng = Random(2)
    events = []
    while not budgeted.finished:
        events += budgeted.advance(rng.choice(sorted(allowed(budgeted.mask()))))
    assert not any(isinstance(event, FunctionOpen) for event in events)
    assert any(isinstance(event, Content) for event in events)


# -- back and forth


@FORMATS
def test_rollback_gives_the_tokens_back(name: str) -> None:
    rng = Random(3)
    budgeted = Budgeted(matcher(name), 80)
    masks = []
    taken: list[int] = []
    while not budgeted.finished:
        masks.append(budgeted.mask())
        taken.append(WALKERS["markers"]._any(allowed(masks[-1]), rng))
        budgeted.advance(taken[-1])
    told = budgeted.finished_calls, budgeted.limited
    budgeted.rollback(len(taken))
    for mask, token in zip(masks, taken, strict=True):
        assert budgeted.mask() is mask
        budgeted.advance(token)
    assert (budgeted.finished_calls, budgeted.limited) == told


def test_a_fork_has_its_own_budget() -> None:
    budgeted = begun(200)
    fork = budgeted.fork()
    write(budgeted, b"a" * 190)
    write(fork, b'Paris"}}\n</tool_call>')
    fork.advance(END)
    assert fork.finished_calls == ()
    assert not budgeted.finished
    assert budgeted.left == 200 - len(cut(VOCABULARIES["letters"], b"a" * 190))
    assert fork.left == 200 - len(cut(VOCABULARIES["letters"], b'Paris"}}\n</tool_call>')) - 1


def test_forced_tokens_leave_enough_to_finish() -> None:
    of = vocabulary((b'"arguments":',))
    engine = Engine(of, encode=lambda text: list(text.encode()))  # a tokenizer that knows no longer tokens
    made = wire_format("hermes").grammar([WEATHER], REQUIRED, of)
    counts = {}
    for more in (0, 100):
        inner = engine.matcher(made)
        for byte in b'<tool_call>\n{"name": "get_weather"':
            inner.advance(byte)
        budgeted = Budgeted(inner, inner.needed() + more)
        forced = budgeted.forced()
        counts[more] = len(forced)
        for token in forced:
            budgeted.advance(token)
        assert inner.needed() <= budgeted.left
    # After the comma the long token would be lost, and with it the end.
    assert counts == {0: len(", "), 100: len(', "arguments": {"')}


HUGE = {
    "length": {"type": "string", "minLength": 10**15},
    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 10**9},
    "nested items": {
        "type": "array",
        "items": {"type": "array", "items": {"type": "integer"}, "minItems": 10**5},
        "minItems": 10**5,
    },
}


@FORMATS
@pytest.mark.parametrize("kind", HUGE)
def test_an_end_too_far_away_is_out_of_reach_and_costs_no_time(name: str, kind: str) -> None:
    value = HUGE[kind]
    tools = [Tool("f", "", {"type": "object", "properties": {"a": value}, "required": ["a"]})]
    began = time.thread_time()
    for policy in (REQUIRED, CallPolicy()):
        start = matcher(name, policy=policy, tools=tools)
        calls = wire_format(name).render_calls([("f", {"a": "ab" if value["type"] == "string" else [1, 1]})])
        if policy.required:
            assert start.needed() == FOREVER
        events: list[ParseEvent] = []
        for token in cut_with_markers(VOCABULARIES["markers"], calls.encode()):
            if not start.allows(token):
                break
            assert allowed(start.mask_within(10)) <= allowed(start.mask())
            events += start.advance(token)
        assert FunctionOpen("f") in events
    assert time.thread_time() - began < 60  # without a limit it takes minutes


@FORMATS
def test_so_many_calls_that_they_never_end_cost_no_time(name: str) -> None:
    began = time.thread_time()
    assert matcher(name, policy=CallPolicy(required=True, min_calls=10**9)).needed() == FOREVER
    assert time.thread_time() - began < 60  # without a limit it takes minutes
