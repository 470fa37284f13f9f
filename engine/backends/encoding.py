"""From text to token ids, as a model's tokenizer writes them."""

from __future__ import annotations

from tokenizers import Tokenizer

from larksong.engine.vocabulary import Vocabulary

_LONG_TEXT = 4096


def encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a text, without the tokens that some tokenizers put around it."""
    if len(text) < _LONG_TEXT:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    else:
        # A batch is encoded without Python's lock, which `encode` would hold for seconds.
        [encoding] = tokenizer.encode_batch_fast([text], add_special_tokens=False)
        ids = encoding.ids
    return ids


def text_ids(tokenizer: Tokenizer, vocabulary: Vocabulary, text: str) -> list[int]:
    """The ids of a text in the middle of a turn: without the blank that some tokenizers put before a text."""
    if not vocabulary.prefix:
        return encoded(tokenizer, text)
    # Written after a character that joins with nothing, and cut off after it.
    lead = "\x02"
    ids = encoded(tokenizer, lead + text)
    written = b""
    for cut, token in enumerate(ids, start=1):
        written += vocabulary.tokens[token]
        if written.removeprefix(vocabulary.prefix) == lead.encode():
            return ids[cut:]
    raise ValueError(f"the tokenizer does not keep {lead!r} apart from the text after it")
