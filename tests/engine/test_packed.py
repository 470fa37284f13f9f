"""Packed words compared with plain sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from larksong.engine.packed import (
    allows,
    allows_each,
    clear_bits,
    count_ids,
    ids_of,
    pack,
    pack_flags,
    pack_mask,
    set_bits,
    unpack,
)

WORDS = 3
EVERY = range(32 * WORDS)
SETS = st.sets(st.sampled_from(EVERY))


@given(SETS)
def test_masks_and_words_tell_the_ids_they_were_made_of(ids: set[int]) -> None:
    for words in (pack(ids, WORDS), pack_mask(ids, WORDS)):
        assert ids_of(words) == sorted(ids)
        assert count_ids(words) == len(ids)
        assert [allows(words, i) for i in EVERY] == [i in ids for i in EVERY]
        assert allows_each(words, np.array(EVERY)).tolist() == [i in ids for i in EVERY]
        assert unpack(words).tolist() == [i in ids for i in EVERY]
        assert unpack(words, 70).tolist() == [i in ids for i in range(70)]
        assert np.array_equal(pack_flags(unpack(words)).view(words.dtype), words)


def test_a_mask_has_the_last_bit_of_a_word_as_its_sign() -> None:
    assert pack_mask([31], 2).tolist() == [-(2**31), 0]
    assert pack([31], 2).tolist() == [2**31, 0]


@given(SETS, SETS)
def test_ids_are_added_and_taken_out_in_place(ids: set[int], others: set[int]) -> None:
    words = pack(ids, WORDS)
    set_bits(words, others)
    assert ids_of(words) == sorted(ids | others)
    clear_bits(words, others)
    assert ids_of(words) == sorted(ids - others)
