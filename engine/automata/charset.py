"""Sets of characters (Unicode scalar values), and their encodings as sequences of byte ranges."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby

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


def unicode_property(expression: str) -> CharSet | None:
    r"""The characters of `\p{expression}`, by the version of Unicode that `unicodedata` has.

    Known are `Any`, `ASCII` and the general categories by their short names (`Lu`, `L`, `gc=Nd`); None for
    everything else, above all scripts, of which the standard library knows nothing.
    """
    if expression in ("Any", "ASCII"):
        return ANY if expression == "Any" else _ASCII
    name = expression.removeprefix("General_Category=").removeprefix("gc=")
    members = [ranges for category, ranges in _categories().items() if name in (category, category[0])]
    return CharSet.of(*chain.from_iterable(members)) if members else None


@cache
def _categories() -> dict[str, list[Range]]:
    """All code points by two-letter general category: one pass over Unicode, made when first needed."""
    runs: dict[str, list[Range]] = {}
    low = 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(_LAST + 1)))):
        high = low + sum(1 for _ in run)
        runs.setdefault(category, []).append((low, high - 1))
        low = high
    return runs
