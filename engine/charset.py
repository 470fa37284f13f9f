"""Sets of characters (Unicode scalar values), and their encodings as sequences of byte ranges."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby

Range = tuple[int, int]
"""Both ends inclusive; of code points or of bytes."""

_SURROGATES = (0xD800, 0xDFFF)
_LAST = 0x10FFFF


@dataclass(frozen=True, slots=True)
class CharSet:
    """A set of characters as sorted, disjoint, non-adjacent ranges. Surrogates are never members."""

    ranges: tuple[Range, ...]

    @classmethod
    def of(cls, *ranges: Range) -> CharSet:
        """The union of `ranges`, which may overlap and come in any order; surrogates are dropped."""
        merged: list[Range] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(high, merged[-1][1])
            else:
                merged.append((low, high))
        pieces: list[Range] = []
        for low, high in merged:
            if high < _SURROGATES[0] or low > _SURROGATES[1]:
                pieces.append((low, high))
            else:
                around = (low, _SURROGATES[0] - 1), (_SURROGATES[1] + 1, high)
                pieces += [piece for piece in around if piece[0] <= piece[1]]
        return cls(tuple(pieces))

    def __or__(self, other: CharSet) -> CharSet:
        return CharSet.of(*self.ranges, *other.ranges)

    def __invert__(self) -> CharSet:
        edges = [-1, *(edge for low, high in self.ranges for edge in (low, high)), _LAST + 1]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return CharSet.of(*((low + 1, high - 1) for low, high in gaps if low + 1 < high))

    def __and__(self, other: CharSet) -> CharSet:
        overlaps = ((max(a, c), min(b, d)) for a, b in self.ranges for c, d in other.ranges)
        return CharSet(tuple((low, high) for low, high in overlaps if low <= high))

    def __bool__(self) -> bool:
        return bool(self.ranges)


ANY = CharSet.of((0, _LAST))
_ASCII = CharSet.of((0, 0x7F))
_ESCAPED_IN_JSON = CharSet.of((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
_RAW_IN_JSON = ~_ESCAPED_IN_JSON
_JSON_ESCAPES = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 0x22: '"', 0x5C: "\\"}


def utf8_sequences(chars: CharSet) -> Iterator[tuple[Range, ...]]:
    """Sequences of byte ranges that together match exactly the UTF-8 encodings of `chars`.

    The splitting of RE2's compiler (Russ Cox, "Regular Expression Matching in the Wild", 2010): cut a
    range where the length of the encoding changes, then wherever a continuation byte would not run
    from 80 to BF, until each byte position is a range of its own. Two sequences that begin with the
    same byte begin with the same range.
    """
    pending = list(reversed(chars.ranges))
    while pending:
        low, high = pending.pop()
        cut = _cut(low, high)
        if cut is None:
            yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
        else:
            pending += [(cut, high), (low, cut - 1)]


def _cut(low: int, high: int) -> int | None:
    """Where the range has to be split (the first code point of the upper part), if anywhere."""
    for last in (0x7F, 0x7FF, 0xFFFF):
        if low <= last < high:
            return last + 1
    if high <= 0x7F:
        return None
    for block in (1 << 6, 1 << 12, 1 << 18):
        if low // block != high // block:
            if low % block:
                return low - low % block + block
            if (high + 1) % block:
                return high - high % block
    return None


def json_sequences(chars: CharSet) -> Iterator[tuple[Range, ...]]:
    """As `utf8_sequences`, for characters inside a JSON string in their canonical spelling.

    Canonical is what `json.dumps(..., ensure_ascii=False)` writes: two-character escapes where JSON has
    them, `\\u00xx` in lower case for the other control characters, everything else raw.
    """
    yield from utf8_sequences(chars & _RAW_IN_JSON)
    for low, high in (chars & _ESCAPED_IN_JSON).ranges:
        for code in range(low, high + 1):
            escape = "\\" + _JSON_ESCAPES.get(code, f"u{code:04x}")
            yield tuple((byte, byte) for byte in escape.encode())


_CATEGORY_NAMES = """
L Letter Lu Uppercase_Letter Ll Lowercase_Letter Lt Titlecase_Letter LC Cased_Letter Lm Modifier_Letter
Lo Other_Letter M Mark M Combining_Mark Mn Nonspacing_Mark Mc Spacing_Mark Me Enclosing_Mark N Number
Nd Decimal_Number Nd digit Nl Letter_Number No Other_Number P Punctuation P punct
Pc Connector_Punctuation Pd Dash_Punctuation Ps Open_Punctuation Pe Close_Punctuation
Pi Initial_Punctuation Pf Final_Punctuation Po Other_Punctuation S Symbol Sm Math_Symbol
Sc Currency_Symbol Sk Modifier_Symbol So Other_Symbol Z Separator Zs Space_Separator
Zl Line_Separator Zp Paragraph_Separator C Other Cc Control Cc cntrl Cf Format Co Private_Use
Cn Unassigned
""".split()
_LONG_NAMES = dict(zip(_CATEGORY_NAMES[1::2], _CATEGORY_NAMES[::2], strict=True))


def unicode_property(expression: str) -> CharSet | None:
    r"""The characters of `\p{expression}` as ECMA-262 names it, by the Unicode version of `unicodedata`.

    Known are general categories (`Lu`, `Letter`, `gc=Nd`, `General_Category=P`), `Any`, `ASCII` and
    `Assigned`; None for everything else, above all scripts and the other binary properties.
    """
    key, _, value = expression.rpartition("=")
    if not key and value in ("Any", "ASCII", "Assigned"):
        return {"Any": ANY, "ASCII": _ASCII}.get(value) or ~_categories()["Cn"]
    name = _LONG_NAMES.get(value, value)
    if key not in ("", "gc", "General_Category") or name not in _LONG_NAMES.values():
        return None
    members = ("Lu", "Ll", "Lt") if name == "LC" else tuple(k for k in _categories() if k.startswith(name))
    return CharSet.of(*(r for member in members for r in _categories()[member].ranges))


@cache
def _categories() -> dict[str, CharSet]:
    """All characters by two-letter general category: one pass over Unicode, made when first needed."""
    runs: dict[str, list[Range]] = {}
    low = 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(_LAST + 1)))):
        high = low + sum(1 for _ in run)
        runs.setdefault(category, []).append((low, high - 1))
        low = high
    return {category: CharSet.of(*ranges) for category, ranges in runs.items()}
