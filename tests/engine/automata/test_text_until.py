"""Text up to a stop, compared with a plain search over what has been read so far."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from larksong.engine.automata.dfa import DEAD, Counted
from larksong.engine.automata.regex import compile_regex
from larksong.engine.automata.text_until import AhoCorasick, MatchedText, Stop, counted_text
from tests.support.dfas import dead_ends, matches, reach
from tests.support.examples import examples

QWEN = (Stop(b"\n</p>\n<p=", ("CLOSE", "P")), Stop(b"\n</p>\n</f>", ("CLOSE", "F"), refused_from=9))


@dataclass(frozen=True)
class Read:
    """What a plain search says of a text: dead, stopped (where, and by which stop), or still going on."""

    dead: bool = False
    stop: int | None = None
    value: bytes = b""
    held: bytes = b""


def search(stops: Sequence[Stop], refused: frozenset[int], before: bytes, data: bytes) -> Read:
    """Read `data` with nothing but `endswith`."""
    for size in range(1, len(data) + 1):
        text = before + data[:size]
        for index, stop in enumerate(stops):
            begun = stop.marker[: stop.refused_from or None]
            if index in refused and text.endswith(begun):
                return Read(dead=True)
        for index, stop in enumerate(stops):
            if index not in refused and text.endswith(stop.marker):
                if size < len(data):
                    return Read(dead=True)
                return Read(stop=index, value=text[len(before) : len(text) - len(stop.marker)])
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if "unexpected end of data" not in str(error):
            return Read(dead=True)
    text = before + data
    begins = [at for at in range(len(text)) if any(stop.marker.startswith(text[at:]) for stop in stops)]
    held = text[max(begins[0], len(before)) :] if begins else b""
    return Read(value=data[: len(data) - len(held)], held=held)


@st.composite
def stop_sets(draw: st.DrawFn) -> tuple[tuple[Stop, ...], frozenset[int]]:
    """Stops of which none, nor the refused beginning of one, is inside another, and the refused ones."""
    markers = draw(st.lists(st.text("\n<abé", min_size=2, max_size=5), min_size=1, max_size=3, unique=True))
    refused = frozenset(i for i in range(len(markers)) if draw(st.integers(0, 3)) == 0)
    stops = []
    for index, marker in enumerate(markers):
        # A marker cannot be refused before it is told from the others and from the line break before the text.
        shared = max((_shared(marker, m) for i, m in enumerate(markers) if i != index), default=0)
        shared = max(shared, int(marker.startswith("\n")))
        can_be_early = index in refused and shared + 1 < len(marker)
        early = draw(st.integers(shared + 1, len(marker) - 1)) if can_be_early else 0
        stops.append(Stop(marker.encode(), ("X",), len(marker[:early].encode())))
    ends = [stop.marker[: stop.refused_from or None] for stop in stops]
    assume(not any(end in stop.marker[1:] for end in ends for stop in stops))
    assume(not any(a != b and b.startswith(a) for a in markers for b in markers))
    return tuple(stops), refused


def _shared(left: str, right: str) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )


texts = st.lists(st.sampled_from(["\n", "<", "a", "b", "é", "è", "😀", "x"]), max_size=14).map(
    lambda pieces: "".join(pieces).encode()
)
befores = st.sampled_from([b"", b"\n"])


@given(stop_sets(), befores, texts, st.data())
@examples(250)
def test_text_is_read_as_a_plain_search_reads_it(
    stops: tuple[tuple[Stop, ...], frozenset[int]], before: bytes, text: bytes, data: st.DataObject
) -> None:
    wanted, refused = stops
    if data.draw(st.booleans()):  # make it likely that a stop comes
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(wanted)).marker + text[at:]
    dfa = AhoCorasick(wanted, refused, before)
    for size in range(len(text) + 1):
        state = reach(dfa, text[:size])
        expected = search(wanted, refused, before, text[:size])
        assert (state == DEAD) == expected.dead
        if expected.dead:
            event("dead")
            break
        assert dfa.stop.get(state) == expected.stop
        assert dfa.accepts(state) == (expected.stop is not None)
        if expected.stop is None:
            held = dfa.held[state] if state < dfa.nodes else b""
            assert held == expected.held
            assert dfa.depth(state) == len(held.decode(errors="replace"))
        else:
            event("stopped")
            assert max(dfa.row(state)) == DEAD


@given(texts)
@examples(150)
def test_qwens_stops_are_read_as_a_plain_search_reads_them(text: bytes) -> None:
    """With the real, long markers: pieces of them are put together, so that many almost-markers come."""
    text = text.replace(b"a", b"</p>").replace(b"b", b"<p=").replace(b"x", b"</f>")
    for refused in (frozenset[int](), frozenset({0}), frozenset({1})):
        dfa = AhoCorasick(QWEN, refused, b"\n")
        expected = search(QWEN, refused, b"\n", text)
        state = reach(dfa, text)
        assert (state == DEAD) == expected.dead
        if not expected.dead:
            assert dfa.stop.get(state) == expected.stop


@pytest.mark.parametrize("refused", [frozenset(), frozenset({0}), frozenset({1})])
@pytest.mark.parametrize("before", [b"", b"\n"])
def test_no_state_is_a_dead_end(refused: frozenset[int], before: bytes) -> None:
    assert not dead_ends(AhoCorasick(QWEN, refused, before))
    assert not dead_ends(counted_text(AhoCorasick(QWEN, refused, before), 0, 3))
    assert not dead_ends(counted_text(AhoCorasick(QWEN, refused, before), 2, 2))
    assert not dead_ends(counted_text(AhoCorasick(QWEN, refused, before), 3, None))


@given(stop_sets(), befores, st.integers(0, 2), st.none() | st.integers(0, 3))
@examples(100)
def test_no_state_is_a_dead_end_whatever_the_stops(
    stops: tuple[tuple[Stop, ...], frozenset[int]], before: bytes, minimum: int, more: int | None
) -> None:
    wanted, refused = stops
    assume(len(refused) < len(wanted))
    dfa = AhoCorasick(wanted, refused, before)
    assert not dead_ends(dfa)
    assert not dead_ends(counted_text(dfa, minimum, None if more is None else minimum + more))


def test_a_value_can_be_empty_since_the_line_break_before_it_begins_its_marker() -> None:
    dfa = AhoCorasick(QWEN, frozenset(), b"\n")
    assert dfa.stop[reach(dfa, b"</p>\n<p=")] == 0
    assert dfa.stop[reach(dfa, b"\n</p>\n<p=")] == 0
    assert dfa.held[reach(dfa, b"</p>")] == b"</p>"  # the line break is not part of the value


def test_a_marker_without_a_legal_next_piece_is_data() -> None:
    dfa = AhoCorasick(QWEN, frozenset(), b"\n")
    state = reach(dfa, b"x\n</p>\nmore")
    assert dfa.depth(state) == 0
    assert not dfa.accepts(state)


def test_a_refused_stop_is_refused_from_the_byte_that_tells_it() -> None:
    dfa = AhoCorasick(QWEN, frozenset({1}), b"\n")
    assert reach(dfa, b"x\n</p>\n</") != DEAD  # may still be data
    assert reach(dfa, b"x\n</p>\n</f") == DEAD
    assert reach(dfa, b"x\n</p>\n</p>") != DEAD


def test_a_stop_that_was_refused_before_the_text_begins_is_never_reached() -> None:
    dfa = AhoCorasick([Stop(b"\na", ("X",), refused_from=1)], frozenset({0}), b"\n")
    assert reach(dfa, b"a") == DEAD
    assert reach(dfa, b"b") != DEAD


def test_text_with_an_open_end_may_end_between_any_two_characters() -> None:
    dfa = AhoCorasick([Stop(b"<call>", ("CALL",))], frozenset(), open_end=True)
    assert not matches(dfa, b"")  # at least one character
    assert matches(dfa, "é<cal".encode())
    assert not matches(dfa, "é".encode()[:1])
    assert dfa.stop[reach(dfa, b"x<call>")] == 0


def test_a_marker_may_have_characters_that_are_not_ascii() -> None:
    dfa = AhoCorasick([Stop("<｜end｜>".encode(), ("END",))], frozenset())
    assert dfa.stop[reach(dfa, "x<｜end｜>".encode())] == 0
    # The first bytes of the marker's character and of another are the same.
    assert reach(dfa, "x<＝".encode()) != DEAD


@given(stop_sets(), befores, texts, st.integers(0, 3), st.none() | st.integers(0, 3), st.data())
@examples(250)
def test_counted_text_has_a_length_within_its_bounds(
    stops: tuple[tuple[Stop, ...], frozenset[int]],
    before: bytes,
    text: bytes,
    minimum: int,
    more: int | None,
    data: st.DataObject,
) -> None:
    """The texts that a counted automaton accepts are those that the plain one does, of the right length."""
    wanted, refused = stops
    maximum = None if more is None else minimum + more
    text += data.draw(st.sampled_from(wanted)).marker
    plain = search(wanted, refused, before, text)
    dfa = counted_text(AhoCorasick(wanted, refused, before), minimum, maximum)
    length = len(plain.value.decode(errors="replace"))
    expected = plain.stop is not None and minimum <= length and (maximum is None or length <= maximum)
    event(f"accepted: {expected}")
    assert matches(dfa, text) == expected


def test_counted_text_with_an_open_end_may_end_only_within_its_bounds() -> None:
    dfa = counted_text(AhoCorasick([Stop(b"<c>", ("C",))], frozenset(), open_end=True), 2, 3)
    assert [text for text in (b"", b"a", b"ab", b"abc", b"abcd", b"a<c") if matches(dfa, text)] == [
        b"ab",
        b"abc",
        b"a<c",
    ]


def test_counted_text_counts_characters_and_not_bytes() -> None:
    dfa = counted_text(AhoCorasick(QWEN, frozenset(), b"\n"), 2, 2)
    assert matches(dfa, "é😀\n</p>\n<p=".encode())
    assert not matches(dfa, "é\n</p>\n<p=".encode())
    assert not matches(dfa, "é😀a\n</p>\n<p=".encode())


def test_counted_text_counts_an_almost_marker_only_when_it_is_data() -> None:
    dfa = counted_text(AhoCorasick(QWEN, frozenset(), b"\n"), 0, 6)
    assert matches(dfa, b"\n</p>\n\n</p>\n<p=")
    assert not matches(dfa, b"\n</p>\nx\n</p>\n<p=")
    assert reach(dfa, b"\n</p>\nx") == DEAD


def test_a_state_is_far_from_the_minimum_only_if_held_back_bytes_do_not_count() -> None:
    """What is held back may turn out not to be text: after `a\\n<` there may be one character alone."""
    dfa = counted_text(AhoCorasick(QWEN, frozenset(), b"\n"), 3, None)
    assert isinstance(dfa, Counted)
    assert not dfa.is_far(reach(dfa, b"a\n</p>"), longest=8)
    assert dfa.is_far(reach(dfa, b"abc\n</p>"), longest=8)


PATTERNS = ["[ab]*", "(?:\n|a)+b?", "", "a{2}", "(?:<|\n|/|p|>|a)*", ".{0,3}", "é|aé"]


@given(st.sampled_from(PATTERNS), texts, st.sampled_from(QWEN), befores)
@examples(200)
def test_matched_text_has_a_value_that_the_pattern_matches(
    pattern: str, text: bytes, stop: Stop, before: bytes
) -> None:
    dfa = MatchedText(AhoCorasick(QWEN, frozenset(), before), compile_regex(pattern, anchored=True))
    whole = text + stop.marker
    plain = search(QWEN, frozenset(), before, whole)
    expected = plain.stop is not None and re.fullmatch(pattern, plain.value.decode()) is not None
    event(f"accepted: {expected}")
    assert matches(dfa, whole) == expected


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("refused", [frozenset(), frozenset({0}), frozenset({1})])
def test_no_state_of_matched_text_is_a_dead_end(pattern: str, refused: frozenset[int]) -> None:
    for before in (b"", b"\n"):
        text = AhoCorasick(QWEN, refused, before)
        assert not dead_ends(MatchedText(text, compile_regex(pattern, anchored=True)))
