"""Boolean combinations of automata, compared with the combinations of what their parts accept."""

import itertools
import json
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from larksong.engine.automata.dfa import DEAD, DFA, Words
from larksong.engine.automata.product import difference, exactly_one, intersection, is_empty
from larksong.engine.automata.regex import compile_regex
from larksong.engine.errors import UnsupportedPattern

PATTERNS = ["^a", "b$", "a|b", "ab", "^(ab)*$", "^[ab]{2,3}$", "^a*b*$", "^$", "é", "^.é?$", "[^b]{2}"]
TEXTS = [
    "".join(chars).encode() for size in range(5) for chars in itertools.product("abé", repeat=size)
]  # every text of at most four characters


def run(dfa: DFA, text: bytes) -> bool:
    state = dfa.start
    for byte in text:
        state = dfa.row(state)[byte]
        if state == DEAD:
            return False
    return dfa.accepts(state)


def language(dfa: DFA) -> set[bytes]:
    return {text for text in TEXTS if run(dfa, text)}


def reachable(dfa: DFA) -> list[int]:
    states = [dfa.start]
    for state in states:
        states += set(dfa.row(state)) - {DEAD} - set(states)
    return states


def dead_ends(dfa: DFA) -> set[int]:
    """Those states that are reached and lead to no accepting one."""
    states = reachable(dfa)
    live = {state for state in states if dfa.accepts(state)}
    while more := {state for state in states if state not in live and not live.isdisjoint(dfa.row(state))}:
        live |= more
    return set(states) - live


def search(pattern: str) -> DFA:
    return compile_regex(pattern, anchored=False)


several = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3)


@given(several)
@settings(deadline=None)
def test_intersection_accepts_what_all_accept(patterns: list[str]) -> None:
    languages = [language(search(pattern)) for pattern in patterns]
    assert language(intersection(*map(search, patterns))) == set.intersection(*languages)


@given(several)
@settings(deadline=None)
def test_difference_accepts_what_only_the_first_accepts(patterns: list[str]) -> None:
    first, *others = [language(search(pattern)) for pattern in patterns]
    assert language(difference(*map(search, patterns))) == first.difference(*others)


@given(several)
@settings(deadline=None)
def test_exactly_one_accepts_what_one_accepts_and_no_other(patterns: list[str]) -> None:
    languages = [language(search(pattern)) for pattern in patterns]
    expected = {text for text in TEXTS if sum(text in accepted for accepted in languages) == 1}
    assert language(exactly_one(*map(search, patterns))) == expected


@given(st.sampled_from([intersection, difference, exactly_one]), several)
@settings(deadline=None)
def test_no_row_leads_to_a_dead_end(combine: object, patterns: list[str]) -> None:
    assert callable(combine)
    dfa: DFA = combine(*map(search, patterns))
    assert dead_ends(dfa) <= ({dfa.start} if is_empty(dfa) else set())


@given(several, several)
@settings(deadline=None)
def test_products_combine_like_other_automata(patterns: list[str], excluded: list[str]) -> None:
    dfa = difference(intersection(*map(search, patterns)), exactly_one(*map(search, excluded)))
    assume(not is_empty(dfa))
    left = set.intersection(*(language(search(pattern)) for pattern in patterns))
    right = [language(search(pattern)) for pattern in excluded]
    assert language(dfa) == {text for text in left if sum(text in accepted for accepted in right) != 1}
    assert not dead_ends(dfa)


@pytest.mark.parametrize(
    "dfa",
    [
        intersection(search("^a"), search("^b")),
        intersection(search("^a*$"), search("b")),
        difference(search("ab"), search("b")),
        exactly_one(search("^a$"), search("^a$")),
    ],
)
def test_a_combination_that_accepts_nothing_is_empty(dfa: DFA) -> None:
    assert is_empty(dfa)
    assert set(dfa.row(dfa.start)) == {DEAD}


def test_a_combination_that_accepts_only_the_empty_text_is_not_empty() -> None:
    dfa = intersection(search("^a*$"), search("^b*$"))
    assert not is_empty(dfa)
    assert reachable(dfa) == [dfa.start]


def test_keys_other_than_the_declared_ones() -> None:
    keys = ["city", "country", "id", 'a "b"', *(f"parameter_{i:02}" for i in range(40))]
    words = Words((json.dumps(key, ensure_ascii=False)[1:-1].encode(), None) for key in keys)
    anything = compile_regex("[^]*", anchored=True, json_string=True)
    dfa = difference(anything, words)
    assert not any(run(dfa, json.dumps(key)[1:-1].encode()) for key in keys)
    for key in keys:
        assert run(dfa, json.dumps(key + "x")[1:-1].encode())
        assert run(dfa, json.dumps(key[:-1])[1:-1].encode())
    assert not dead_ends(dfa)


def test_a_word_that_is_all_that_is_left_is_a_dead_end_if_it_is_excluded() -> None:
    dfa = difference(search("^(cat|car|dog)$"), Words([(b"cat", None), (b"car", None)]))
    assert dfa.row(dfa.start)[ord("c")] == DEAD
    assert run(dfa, b"dog")


def test_a_search_beyond_the_limit_is_refused() -> None:
    a_far, b_far = search("^[ab]*a[ab]{11}$"), search("^[ab]*b[ab]{11}$")
    with pytest.raises(UnsupportedPattern, match="within 500 product states"):
        intersection(a_far, b_far, limit=500)


def test_rows_asked_for_one_by_one_do_not_repeat_the_search() -> None:
    """Each state of a chain needs to know of the end far behind it."""
    dfa = intersection(search("^a{0,3000}b$"), search("^a*b$"), search("^[ab]{2000,}$"))
    begin = time.perf_counter()
    state = dfa.start
    for _ in range(3000):
        state = dfa.row(state)[ord("a")]
    assert run(dfa, b"a" * 3000 + b"b")
    assert not run(dfa, b"a" * 1998 + b"b")
    assert time.perf_counter() - begin < 60  # a search anew for each state takes minutes
