"""The engine's errors, each with the sentence that a user reads."""

from __future__ import annotations


class EngineError(Exception):
    """Base of all errors of the engine."""


class GrammarConflict(EngineError):
    """The grammar is not LALR(1)."""

    def __init__(self, title: str, detail: str) -> None:
        super().__init__(f"the grammar {title!r} is not LALR(1): {detail}")


class NoEndToken(EngineError):
    """A vocabulary without an end-of-sequence token cannot end a constrained turn."""

    def __init__(self) -> None:
        super().__init__(
            "the vocabulary has no end-of-sequence token; name one with Vocabulary.from_tokenizer(…, eos=…)"
        )


class UnsupportedPattern(EngineError, ValueError):
    """A regular expression that cannot be turned into a byte DFA exactly."""


class InvalidPattern(UnsupportedPattern):
    """No regular expression of ECMA-262, nor of the dialects near it."""
