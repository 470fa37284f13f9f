"""Sets of characters, and their encodings as byte ranges."""

import itertools
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.automata.charset import (
    ANY,
    CharSet,
    Range,
    json_sequences,
    unicode_property,
    utf8_sequences,
)

SURROGATES = range(0xD800, 0xE000)
# Where encodings change their length or their continuation bytes, and around surrogates.
EDGES = [0, 0x1F, 0x22, 0x5C, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD7FF, 0xD800, 0xDFFF, 0xE000]
EDGES += [0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFF]
CODES = st.sampled_from(EDGES) | st.integers(0, 0x10FFFF) | st.integers(0, 0x200)
RANGES = st.lists(st.tuples(CODES, CODES).map(lambda pair: (min(pair), max(pair))), max_size=4)


def contains(chars: CharSet, code: int) -> bool:
    return any(low <= code <= high for low, high in chars.ranges)


def matches(sequences: list[tuple[Range, ...]], data: bytes) -> int:
    """How many of `sequences` match `data` from end to end."""
    return sum(
        len(sequence) == len(data)
        and all(low <= byte <= high for (low, high), byte in zip(sequence, data, strict=True))
        for sequence in sequences
    )


@given(RANGES, RANGES, st.lists(CODES))
def test_operations_are_those_of_sets_of_scalar_values(
    a: list[Range], b: list[Range], codes: list[int]
) -> None:
    first, second = CharSet.of(*a), CharSet.of(*b)
    for code in itertools.chain(codes, EDGES):
        scalar = code not in SURROGATES
        in_a = scalar and any(low <= code <= high for low, high in a)
        in_b = scalar and any(low <= code <= high for low, high in b)
        assert contains(first, code) == in_a
        assert contains(first | second, code) == (in_a or in_b)
        assert contains(first & second, code) == (in_a and in_b)
        assert contains(~first, code) == (scalar and not in_a)


@given(RANGES, RANGES)
def test_equal_sets_have_equal_ranges(a: list[Range], b: list[Range]) -> None:
    first, second = CharSet.of(*a), CharSet.of(*b)
    assert ~~first == first
    assert first | second == CharSet.of(*b, *a)
    assert first & second == ~(~first | ~second)
    assert bool(first) == (first != CharSet(()))
    for (_, high), (low, _) in itertools.pairwise(first.ranges):
        assert high + 1 < low


@given(RANGES, st.lists(CODES))
def test_sequences_match_the_encodings_of_the_members_once(ranges: list[Range], codes: list[int]) -> None:
    chars = CharSet.of(*ranges)
    raw, escaped = list(utf8_sequences(chars)), list(json_sequences(chars))
    for code in itertools.chain(codes, EDGES):
        if code not in SURROGATES:
            assert matches(raw, chr(code).encode()) == contains(chars, code)
            in_json = json.dumps(chr(code), ensure_ascii=False)[1:-1].encode()
            assert matches(escaped, in_json) == contains(chars, code)


def test_sequences_of_all_characters_are_the_table_of_the_unicode_standard() -> None:
    tail = (0x80, 0xBF)
    assert list(utf8_sequences(ANY)) == [
        ((0x00, 0x7F),),
        ((0xC2, 0xDF), tail),
        ((0xE0, 0xE0), (0xA0, 0xBF), tail),
        ((0xE1, 0xEC), tail, tail),
        ((0xED, 0xED), (0x80, 0x9F), tail),
        ((0xEE, 0xEF), tail, tail),
        ((0xF0, 0xF0), (0x90, 0xBF), tail, tail),
        ((0xF1, 0xF3), tail, tail, tail),
        ((0xF4, 0xF4), (0x80, 0x8F), tail, tail),
    ]


@given(RANGES)
def test_sequences_that_begin_alike_begin_with_the_same_range(ranges: list[Range]) -> None:
    for sequences in (list(utf8_sequences(CharSet.of(*ranges))), list(json_sequences(CharSet.of(*ranges)))):
        for size in (1, 2, 3):
            prefixes = sorted({sequence[:size] for sequence in sequences if len(sequence) >= size})
            for (*before, (_, high)), (*after, (low, _)) in itertools.pairwise(prefixes):
                assert before != after or high < low


@pytest.mark.parametrize(
    ("expression", "categories"),
    [
        ("Lu", {"Lu"}),
        ("gc=Lu", {"Lu"}),
        ("General_Category=P", {"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"}),
        ("L", {"Lu", "Ll", "Lt", "Lm", "Lo"}),
        ("Cn", {"Cn"}),
    ],
)
def test_properties_are_general_categories(expression: str, categories: set[str]) -> None:
    chars = unicode_property(expression)
    assert chars is not None
    for code in (*range(0x3000), *EDGES, 0x1F600, 0xE0001):
        assert contains(chars, code) == (
            code not in SURROGATES and unicodedata.category(chr(code)) in categories
        )


def test_any_and_ascii_are_properties() -> None:
    assert unicode_property("Any") == ANY
    assert unicode_property("ASCII") == CharSet.of((0, 0x7F))


@pytest.mark.parametrize("expression", ["Greek", "Script=Greek", "sc=Latin", "Emoji", "gc=Any", "lu", ""])
def test_other_properties_are_unknown(expression: str) -> None:
    assert unicode_property(expression) is None
