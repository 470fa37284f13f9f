"""Where the judges differ from the language that a grammar describes, each with a minimal case.

Every entry is checked by `test_judges.py`: when a newer version no longer differs, its entry must go. A
difference that is not listed here is a bug of ours until it is shown to be one of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """`grammar` in the judge's own language; after `text` the byte `following` is in the grammar's language.

    `allowed`: whether the judge allows it. `why`, and what the comparison does about it.
    """

    judge: str
    grammar: str
    text: bytes
    following: bytes
    allowed: bool
    why: str


KNOWN = (
    Known(
        judge="kbnf",
        grammar='start ::= "a" | "ab";',
        text=b"a",
        following=b"b",
        allowed=False,
        why="It is finished at the first place where the text may end. From there on it is not asked.",
    ),
    Known(
        judge="llguidance",
        grammar='start: "tool"',
        text=b"",
        following=b"t",
        allowed=False,
        why="Of a forced text it offers the one token that the tokenizer would write. Switched off for the "
        "comparison (no_forcing); ours does the same as a draft, and leaves the mask as it is.",
    ),
    Known(
        judge="llguidance",
        grammar='%llguidance {"no_forcing": true}\nstart: "nul" | t\nt: /[a-z]/ t | /[a-z]/',
        text=b"nu",
        following=b"m",
        allowed=False,
        why="Its lexer takes the longest lexeme and does not go back: a literal that begins like a text in "
        "single characters hides that text. So kbnf alone judges the formats whose values are raw text.",
    ),
)
