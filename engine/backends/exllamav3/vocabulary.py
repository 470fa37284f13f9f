"""A vocabulary from exllamav3's tokenizer.

exllamav3's own lists of pieces are text: a piece that is half a character is U+FFFD in them. The bytes come
from the Hugging Face tokenizer inside. Three widths must be told apart:

- the tokens that the tokenizer knows (`actual_vocab_size`): the rest of the logits is never sampled;
- the columns of the model's logits (`config.vocab_size`): the vocabulary's `width`, and that of its masks;
- the same, padded to a multiple of 32 (`Generator.padded_vocab_size`): what dense masks would have to be.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from tokenizers import Tokenizer

from larksong.engine.backends.encoding import text_ids
from larksong.engine.forced import Encode
from larksong.engine.vocabulary import Vocabulary


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """The bytes of every token of an `exllamav3.Tokenizer`; all its model's end tokens end a turn.

    Raises VocabularyError for a tokenizer whose tokens cannot be mapped to bytes.
    """
    config = tokenizer.config
    ends = {*_ids(config.eos_token_id_list), *_ids(tokenizer.eos_token_id)}
    found = Vocabulary.from_tokenizer(tokenizer.tokenizer, eos=ends, width=config.vocab_size)
    # tokenizer_config.json may name markers that tokenizer.json lacks. exllamav3's list of all markers
    # (`extended_piece_to_id`) also has ordinary tokens: where a model has no token that begins a text, id 1.
    extra = {
        piece: token
        for piece, token in tokenizer.missing_special_piece_to_id.items()
        if token < found.width and token not in found.special.values()
    }
    if not extra:
        return found
    tokens = list(found.tokens)
    tokens += [b""] * (max(extra.values()) + 1 - len(tokens))
    for token in extra.values():
        tokens[token] = b""
    return replace(found, tokens=tuple(tokens), special={**found.special, **extra})


def encoder_of(tokenizer: Any, vocabulary: Vocabulary) -> Encode:
    """How the model's tokenizer writes text in the middle of a turn.

    Works on a copy: exllamav3 switches the tokenizer inside between two modes whenever it encodes.
    """
    return partial(text_ids, Tokenizer.from_str(tokenizer.tokenizer.to_str()), vocabulary)


def _ids(value: int | list[int] | None) -> list[int]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple | set) else [value]
