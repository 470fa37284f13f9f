import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.api.runtime.incremental_text import EscapedText, JsonText, PlainText


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


texts = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('"\\/\n\t\x00é東🗼')))
cuts = st.lists(st.integers(0, 10_000))


@given(texts, cuts)
def test_plain_text_comes_out_whole_however_its_bytes_are_cut(text: str, places: list[int]) -> None:
    plain = PlainText()
    assert "".join(plain.feed(piece) for piece in _cut(text.encode(), places)) == text


@given(texts, cuts)
def test_escaped_text_is_what_json_dumps_writes(text: str, places: list[int]) -> None:
    escaped = EscapedText()
    pieces = [escaped.feed(piece) for piece in _cut(text.encode(), places)]
    assert '"' + "".join(pieces) + '"' == json.dumps(text, ensure_ascii=False)


@given(texts, cuts)
def test_no_piece_of_escaped_text_splits_an_escape(text: str, places: list[int]) -> None:
    escaped = EscapedText()
    for piece in _cut(text.encode(), places):
        json.loads('"' + escaped.feed(piece) + '"')


@given(texts, st.booleans(), cuts)
def test_json_text_passes_as_written_and_no_piece_splits_an_escape(
    text: str, ascii_only: bool, places: list[int]
) -> None:
    written = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    passed = JsonText()
    pieces = [passed.feed(piece) for piece in _cut(written.encode(), places)]
    assert "".join(pieces) == written
    for piece in pieces:
        # A lone surrogate would load too, but cannot be encoded.
        json.loads(f'"{piece}"').encode()


@pytest.mark.parametrize(
    ("pieces", "given_out"),
    [
        ([b"a\\", b'"b'], ["a", '\\"b']),
        ([b"\\u12", b"34"], ["", "\\u1234"]),
        ([b"\\\\", b"u12"], ["\\\\", "u12"]),
        ([b"\\ud83d", b"\\ude00"], ["", "\\ud83d\\ude00"]),
        ([b"x\\ud83d\\", b"ude0", b"0y"], ["x", "", "\\ud83d\\ude00y"]),
        ([b"\\ud83d", b"x"], ["", "\\ud83dx"]),
        ([b"\\ud83d\\", b"n"], ["", "\\ud83d\\n"]),
        ([b"\xf0\x9f", b"\x97", b"\xbc"], ["", "", "🗼"]),
    ],
)
def test_a_piece_waits_only_for_what_completes_it(pieces: list[bytes], given_out: list[str]) -> None:
    passed = JsonText()
    assert [passed.feed(piece) for piece in pieces] == given_out


def test_malformed_utf8_becomes_the_replacement_character() -> None:
    plain = PlainText()
    assert plain.feed(b"a\xffb") + plain.feed(b"\xc3") + plain.feed(b"(") == "a\ufffdb\ufffd("
