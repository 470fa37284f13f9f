"""Texts become the ids that the tokenizer itself gives, with nothing put before them."""

import pytest
from tokenizers import Tokenizer

from larksong.engine.backends.encoding import encoded, text_ids
from larksong.engine.vocabulary import Vocabulary
from tests.support.tokenizers import SAMPLE, byte_fallback_tokenizer


@pytest.mark.parametrize("text", ["Hello", " two  blanks", "\n<tool_call>", "日本", ""])
@pytest.mark.parametrize("dummy_prefix", [True, False])
def test_no_blank_is_put_before_a_text_in_the_middle_of_a_turn(text: str, dummy_prefix: bool) -> None:
    tokenizer = byte_fallback_tokenizer(dummy_prefix=dummy_prefix)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=["</s>"])
    ids = text_ids(tokenizer, vocabulary, text)
    assert b"".join(vocabulary.tokens[token] for token in ids) == text.encode()


@pytest.mark.parametrize("text", [SAMPLE * 100, "a" * 5_000, "<|im_end|>日本 \n\n" * 1_000])
def test_long_texts_are_encoded_as_short_ones(byte_tokenizer: Tokenizer, text: str) -> None:
    assert encoded(byte_tokenizer, text) == byte_tokenizer.encode(text, add_special_tokens=False).ids
