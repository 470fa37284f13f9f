"""Reading canonical token ids with a matcher, and holding what it forces against them."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tokenizers import Tokenizer

from larksong.engine.backends.encoding import text_ids
from larksong.engine.engine import Engine
from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary


class Canon(NamedTuple):
    """A vocabulary's engine that knows its tokenizer."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    engine: Engine

    @classmethod
    def of(cls, tokenizer: Tokenizer, vocabulary: Vocabulary) -> "Canon":
        return cls(tokenizer, vocabulary, Engine(vocabulary, encode=partial(text_ids, tokenizer, vocabulary)))

    def ids(self, text: str) -> list[int]:
        """A turn as the tokenizer writes it, with an end token."""
        return [*text_ids(self.tokenizer, self.vocabulary, text), min(self.vocabulary.eos_ids)]

    def spelled(self, ids: Sequence[int]) -> str:
        """Tokens with bars between them, for messages."""
        return "|".join(
            self.vocabulary.tokens[token].decode(errors="replace") or f"<{token}>" for token in ids
        )


class Count(NamedTuple):
    """What was forced of a turn."""

    offers: int
    """times that something was"""
    tokens: int
    of: int
    """tokens of the turn that were read"""


def check(canon: Canon, matcher: Matcher, ids: Sequence[int]) -> Count:
    """Read `ids`; at every place what is forced must be what comes. Ends where the grammar refuses a token.

    Where several end tokens are known, `ids` has one of them.
    """
    offers = tokens = at = given = 0
    for at, token in enumerate(ids):
        forced = matcher.forced()
        if forced:
            offers += 1
            come = tuple(ids[at : at + len(forced)])
            assert forced == come, (
                f"forced {canon.spelled(forced)!r}, not {canon.spelled(come)!r}, "
                f"after {canon.spelled(ids[max(0, at - 8) : at])!r}"
            )
            if at >= given:  # tokens that were given before are not given again
                tokens += len(forced)
                given = at + len(forced)
        if not matcher.allows(token):
            return Count(offers, tokens, at)
        matcher.advance(token)
    return Count(offers, tokens, len(ids))
