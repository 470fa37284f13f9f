"""The automata that are written by hand, compared with what Python says of the same bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.automata.dfa import (
    DEAD,
    JSON_BODY,
    JSON_END,
    Quoted,
    Table,
    Words,
    counted_json_string,
    is_final,
    json_string,
    utf8_text,
)
from tests.support.dfas import dead_ends, matches, reach, states
from tests.support.examples import examples

# Bytes that matter to UTF-8 and to JSON strings: borders of ranges, quotes, escapes.
BYTES = st.sampled_from(
    b'ab"\\/unbdDfF89cC0\n\x00\x1f\x20\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xff'
)
raw = st.lists(BYTES, max_size=8).map(bytes)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def json_text(data: bytes) -> str | None:
    """The string that `data` is the JSON text of; None if it is none or holds half a surrogate pair."""
    try:
        value = json.loads(data.decode())
        value.encode()
    except (ValueError, AttributeError):
        return None
    return value if isinstance(value, str) and data[:1] == data[-1:] == b'"' else None


@given(raw)
@examples(100)
def test_utf8_text_is_what_python_decodes(data: bytes) -> None:
    assert matches(utf8_text(), data) == is_utf8(data)


def test_every_character_is_utf8_text() -> None:
    dfa = utf8_text()
    borders = [
        0,
        0x7F,
        0x80,
        0x7FF,
        0x800,
        0xD7FF,
        0xE000,
        0xFFFF,
        0x10000,
        0x3FFFF,
        0x40000,
        0xFFFFF,
        0x10FFFF,
    ]
    sample = {*borders, *range(0, 0xD800, 251), *range(0xE000, 0x110000, 4093)}
    assert all(matches(dfa, chr(code).encode()) for code in sample)


@given(raw.map(lambda data: b'"' + data + b'"') | raw)
@examples(100)
def test_a_json_string_is_what_python_loads(data: bytes) -> None:
    assert matches(json_string(), data) == (json_text(data) is not None)


@given(st.text(), st.booleans())
@examples(100)
def test_json_dumps_writes_json_strings(value: str, ascii_only: bool) -> None:
    assert matches(json_string(), json.dumps(value, ensure_ascii=ascii_only).encode())


@pytest.mark.parametrize(
    "escaped",
    [
        "\\ud800",
        "\\udc00",
        "\\ud83d\\ud83d",
        "\\ud83dx",
        "\\ud83d\\n",
        "\\uDFFF",
        "\\ud83d\\u0041",
        "\\ude00\\ud83d",
    ],
)
def test_half_a_surrogate_pair_is_no_json_string(escaped: str) -> None:
    assert not matches(json_string(), f'"{escaped}"'.encode())


def test_a_surrogate_pair_is_one_character() -> None:
    assert matches(counted_json_string(1, 1), b'"\\ud83d\\ude00"')
    assert matches(counted_json_string(1, 1), '"😀"'.encode())
    assert not matches(counted_json_string(2, 2), b'"\\ud83d\\ude00"')


def test_the_named_states_of_a_json_string_are_where_they_are_said_to_be() -> None:
    assert reach(json_string(), b'"a') == JSON_BODY
    assert reach(json_string(), b'"a"') == JSON_END


@given(st.data(), st.integers(0, 4), st.none() | st.integers(0, 6))
@examples(100)
def test_a_counted_json_string_is_one_of_a_length_within_its_bounds(
    data: st.DataObject, minimum: int, maximum: int | None
) -> None:
    if maximum is not None and maximum < minimum:
        minimum, maximum = maximum, minimum
    value = data.draw(st.text(st.sampled_from('ab"\\\né中😀\x00'), max_size=8))
    spelled = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode()
    expected = len(value) >= minimum and (maximum is None or len(value) <= maximum)
    assert matches(counted_json_string(minimum, maximum), spelled) == expected


@given(raw, st.integers(0, 2), st.integers(2, 4))
@examples(100)
def test_a_counted_json_string_is_a_json_string(data: bytes, minimum: int, maximum: int) -> None:
    quoted = b'"' + data + b'"'
    value = json_text(quoted)
    expected = value is not None and minimum <= len(value) <= maximum
    assert matches(counted_json_string(minimum, maximum), quoted) == expected


def test_a_large_bound_makes_no_states_until_they_are_met() -> None:
    dfa = counted_json_string(0, 65_536)
    state = reach(dfa, b'"' + b"a" * 100)
    assert state < 100 * 25
    assert dfa.is_far(state, longest=128)
    assert not dfa.is_far(state, longest=65_500)


def test_a_state_is_far_from_bounds_only_if_no_token_reaches_them() -> None:
    dfa = counted_json_string(2, 10)
    assert not dfa.is_far(reach(dfa, b'"a'), longest=1)  # the minimum is still ahead
    assert dfa.is_far(reach(dfa, b'"abc'), longest=7)
    assert not dfa.is_far(reach(dfa, b'"abcd'), longest=7)
    assert dfa.pair(reach(dfa, b'"abcd')) == (JSON_BODY, 4)


words = st.lists(
    st.lists(st.sampled_from(b"abc"), max_size=3).map(bytes), min_size=1, max_size=6, unique=True
)


@given(words)
@examples(100)
def test_words_are_the_given_ones_and_no_others(given_words: list[bytes]) -> None:
    dfa = Words((word, word.decode()) for word in given_words)
    texts = {b"", *(bytes(t) for size in (1, 2, 3) for t in _texts(size))}
    assert {text for text in texts if matches(dfa, text)} == set(given_words)
    for word in given_words:
        assert dfa.labels[reach(dfa, word)] == word.decode()


def _texts(size: int) -> list[list[int]]:
    shorter = _texts(size - 1) if size > 1 else [[]]
    return [[*text, byte] for text in shorter for byte in b"abc"]


@given(words)
@examples(100)
def test_a_label_is_certain_where_all_words_ahead_have_it(given_words: list[bytes]) -> None:
    label = {word: word[:1] for word in given_words}
    dfa = Words(label.items())
    for word in given_words:
        for size in range(len(word) + 1):
            ahead = {label[other] for other in given_words if other.startswith(word[:size])}
            expected = ahead.pop() if len(ahead) == 1 else None
            assert dfa.unique[reach(dfa, word[:size])] == expected


@given(words)
@examples(100)
def test_words_are_prefix_free_if_none_begins_another_or_is_empty(given_words: list[bytes]) -> None:
    begins_another = any(a != b and b.startswith(a) for a in given_words for b in given_words)
    assert Words((word, None) for word in given_words).prefix_free == (
        not begins_another and b"" not in given_words
    )


@given(words)
@examples(100)
def test_words_may_have_something_in_front_of_all_of_them(given_words: list[bytes]) -> None:
    dfa = Words(((word, word[:1]) for word in given_words), b"<x=")
    for word in given_words:
        assert matches(dfa, b"<x=" + word)
        assert dfa.labels[reach(dfa, b"<x=" + word)] == word[:1]
    first = {word[:1] for word in given_words}
    assert dfa.unique[dfa.start] == (first.pop() if len(first) == 1 else None)
    assert not any(matches(dfa, prefix + word) for prefix in (b"", b"x=") for word in given_words)


def test_quotes_go_around_an_automaton() -> None:
    dfa = Quoted(Words([(b"", None), (b"ab", None)]))
    assert [
        text for text in (b"", b'""', b'"a"', b'"ab"', b'"ab', b'ab"', b'"ab""') if matches(dfa, text)
    ] == [
        b'""',
        b'"ab"',
    ]


def test_a_table_has_the_edges_that_it_is_given() -> None:
    dfa = Table([{97: 1}, {98: 0}], accepting=[1])
    assert [text for text in (b"", b"a", b"ab", b"aba", b"b") if matches(dfa, text)] == [b"a", b"aba"]
    assert set(dfa.row(0)) == {DEAD, 1}


def test_a_state_is_final_if_it_accepts_and_nothing_follows() -> None:
    dfa = Words([(b"a", None), (b"ab", None), (b"c", None)])
    assert [is_final(dfa, reach(dfa, text)) for text in (b"", b"a", b"ab", b"c")] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    "dfa",
    [
        utf8_text(),
        json_string(),
        counted_json_string(0, 0),
        counted_json_string(3, None),
        counted_json_string(2, 5),
        Quoted(Words([(b"", None), (b"x", None)])),
        Words([(b"one", None), (b"other", None)]),
    ],
)
def test_no_state_is_a_dead_end(dfa: Words) -> None:
    assert not dead_ends(dfa)
    assert len(states(dfa)) < 400
