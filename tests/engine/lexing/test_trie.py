"""The flat byte trie, its merged positions and sets of tokens, compared with plain sets of byte strings."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.lexing.trie import Position, TokenSet, Trie, clear, union
from larksong.engine.packed import set_bits
from larksong.engine.vocabulary import Vocabulary
from tests.support.examples import examples

tokens = st.lists(st.lists(st.sampled_from(b"ab\xff"), max_size=4).map(bytes), min_size=1, max_size=30)


def ids(piece: TokenSet, words: int) -> set[int]:
    packed = union([piece], words)
    return {i for i in range(words * 32) if packed[i >> 5] >> np.uint32(i & 31) & np.uint32(1)}


def at(trie: Trie, path: bytes) -> Position | None:
    position: Position | None = trie.root
    for byte in path:
        position = position.child(byte) if position is not None else None
    return position


def beginning(vocabulary: Iterable[bytes], path: bytes) -> set[int]:
    return {i for i, token in enumerate(vocabulary) if token and token.startswith(path)}


@given(tokens, st.lists(st.sampled_from(b"ab\xffc"), min_size=1, max_size=5).map(bytes))
@examples(120)
def test_a_position_has_the_tokens_that_end_there_and_those_below(
    vocabulary: list[bytes], path: bytes
) -> None:
    trie = Trie(vocabulary, len(vocabulary) + 3)
    position = at(trie, path)
    below = beginning(vocabulary, path)
    if position is None:
        assert not below
        return
    here = {i for i, token in enumerate(vocabulary) if token == path}
    assert set(position.ids.tolist()) == here
    assert ids(position.tokens, trie.words) == here
    assert ids(position.below, trie.words) == below
    assert set(trie.byte[position.nodes].tolist()) == {vocabulary[i][len(path)] for i in below - here}


@given(tokens)
@examples(100)
def test_ids_of_equal_byte_strings_are_all_kept_and_empty_ones_are_left_out(vocabulary: list[bytes]) -> None:
    doubled = [*vocabulary, b"", *vocabulary]
    trie = Trie(doubled, len(doubled))
    assert sorted(trie.ids.tolist()) == [i for i, token in enumerate(doubled) if token]
    for path in set(vocabulary) - {b""}:
        position = at(trie, path)
        assert position is not None
        assert set(position.ids.tolist()) == {i for i, token in enumerate(doubled) if token == path}


@given(tokens, st.sets(st.integers(0, 40), min_size=1))
@examples(100)
def test_a_merged_position_is_the_union_of_its_places(vocabulary: list[bytes], picked: set[int]) -> None:
    trie = Trie(vocabulary, len(vocabulary))
    paths = sorted({token[:size] for token in vocabulary for size in range(len(token) + 1)})
    paths = [path for i, path in enumerate(paths) if i in picked] or [b""]
    places = [place for path in paths if (place := at(trie, path)) is not None]
    merged = Position(
        trie, np.concatenate([p.nodes for p in places]), np.concatenate([p.ids for p in places])
    )
    for byte in b"ab\xffc":
        child = merged.child(byte)
        assert child is merged.child(byte)
        ahead = {t for path in paths for t in beginning(vocabulary, path + bytes([byte]))}
        assert (set() if child is None else ids(child.below, trie.words)) == ahead


def test_one_place_is_one_object_wherever_it_is_reached_from() -> None:
    trie = Trie([b"ab", b"abc", b"b"], 3)
    root = trie.root
    merged = Position(trie, root.nodes, np.zeros(0, np.int64))
    assert merged.child(ord("a")) is root.child(ord("a"))


@given(tokens, st.lists(st.sampled_from(b"ab\xff"), min_size=1, max_size=3).map(bytes))
@examples(120)
def test_a_text_is_inside_a_token_if_it_comes_after_its_first_byte(
    vocabulary: list[bytes], text: bytes
) -> None:
    trie = Trie(vocabulary, len(vocabulary))
    assert trie.inside_a_token(text) == any(text in token[1:] for token in vocabulary)


@pytest.mark.parametrize("count", [0, 1, 23, 24, 400, 401, 2000])
def test_small_and_large_sets_pack_alike(count: int) -> None:
    words = 100
    chosen = np.random.default_rng(count).choice(words * 32, count, replace=False).astype(np.int64)
    piece = TokenSet.of(chosen, words)
    assert bool(piece) == (count > 0)
    expected = np.zeros(words, np.uint32)
    set_bits(expected, chosen.tolist())
    assert np.array_equal(union([piece], words), expected)
    assert ids(piece, words) == set(chosen.tolist())


@given(st.lists(st.sets(st.integers(0, 95), max_size=60), max_size=4), st.booleans())
@examples(100)
def test_the_union_of_pieces_has_the_tokens_of_each(sets: list[set[int]], dense: bool) -> None:
    pieces = []
    for numbers in sets:
        packed = np.zeros(3, np.uint32)
        set_bits(packed, sorted(numbers))
        pieces.append(TokenSet([], packed) if dense else TokenSet(sorted(numbers), None))
    merged = union(pieces, 3)
    everything = set[int]().union(*sets)
    assert ids(TokenSet([], merged), 3) == everything
    for numbers, piece in zip(sets, pieces, strict=True):
        left = merged.copy()
        clear(left, piece)
        assert ids(TokenSet([], left), 3) == everything - numbers


def test_smollm2s_trie_has_every_token_once(smollm2_vocabulary: Vocabulary) -> None:
    vocabulary = smollm2_vocabulary
    trie = Trie(vocabulary.tokens, vocabulary.width)
    texts = [i for i, token in enumerate(vocabulary.tokens) if token]
    assert sorted(trie.ids.tolist()) == texts
    assert ids(trie.root.below, trie.words) == set(texts)
    assert trie.longest == max(map(len, vocabulary.tokens))
    for token in texts[::997]:
        position = at(trie, vocabulary.tokens[token])
        assert position is not None
        assert token in position.ids
