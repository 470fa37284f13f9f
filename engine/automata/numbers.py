"""Byte automata for JSON numbers within bounds, and for multiples of a number.

Digits are bounded so that no model can idle in them. Comparison goes digit by digit: while the digits read so
far equal the first ones of a bound, the next digit decides; a longer integer part is the larger number, since
there are no leading zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from larksong.engine.automata.dfa import DEAD, DFA, Row, Table
from larksong.engine.automata.nfa import LazyAutomaton
from larksong.engine.automata.product import difference, is_empty
from larksong.engine.automata.regex import compile_regex
from larksong.engine.errors import UnsupportedPattern

INTEGER_DIGITS = 18
FRACTION_DIGITS = 17
UNSIGNED = rf"(?:0|[1-9][0-9]{{0,{INTEGER_DIGITS - 1}}})"
FRACTION = rf"\.[0-9]{{1,{FRACTION_DIGITS}}}"
EXPONENT = r"[eE][+-]?[0-9]{1,2}"
INTEGER = "-?" + UNSIGNED
NUMBER = rf"{INTEGER}(?:{FRACTION})?(?:{EXPONENT})?"
LARGEST = Decimal("1e117")
"""No number that `NUMBER` can spell is larger: a bound beyond it says nothing."""
_ZERO = rf"-?0(?:\.0+)?(?:{EXPONENT})?"
_MAX_REMAINDERS = 20_000


class NumberBound(NamedTuple):
    """An end of an interval; `inclusive`: whether it belongs to the interval."""

    value: Decimal
    inclusive: bool

    def negated(self) -> NumberBound:
        return NumberBound(-self.value, self.inclusive)


_ZERO_BOUND = NumberBound(Decimal(0), True)


def in_range(lower: NumberBound | None, upper: NumberBound | None, fractions: bool) -> DFA:
    """Numbers between two bounds; `fractions`: whether digits may follow a point.

    With a bound other than 0 numbers are written without exponents.
    """
    if (lower is None or upper is None) and (lower or upper or _ZERO_BOUND).value == 0:
        return _signed(lower, upper, fractions)
    edges: list[dict[int, int]] = [{}]
    accepting: set[int] = set()
    if upper is None or upper.value >= 0:
        _Magnitudes(_above_zero(lower), upper, fractions, edges, accepting).add(0)
    if lower is None or lower.value <= 0:
        edges.append({})
        edges[0][ord("-")] = root = len(edges) - 1
        mirrored = lower and lower.negated()
        _Magnitudes(_above_zero(upper and upper.negated()), mirrored, fractions, edges, accepting).add(root)
    return _trimmed(edges, accepting)


def no_number(lower: NumberBound | None, upper: NumberBound | None, fractions: bool) -> bool:
    """Whether no number can be written between the bounds."""
    wide = lower is None or upper is None or lower.value < upper.value - 1
    small = all(bound is None or abs(bound.value) < 10 ** (INTEGER_DIGITS - 1) for bound in (lower, upper))
    return not (wide and small) and is_empty(in_range(lower, upper, fractions))


def _above_zero(lower: NumberBound | None) -> NumberBound:
    """The lower bound of absolute values, which are never below zero."""
    return lower if lower is not None and lower.value >= 0 else NumberBound(Decimal(0), True)


def _signed(lower: NumberBound | None, upper: NumberBound | None, fractions: bool) -> DFA:
    body = UNSIGNED + (rf"(?:{FRACTION})?(?:{EXPONENT})?" if fractions else "")
    bound = lower or upper
    if bound is None:
        return compile_regex("-?" + body, anchored=True)
    pattern = body if lower is not None else f"-{body}|{_ZERO}"
    numbers = compile_regex(pattern, anchored=True)
    return numbers if bound.inclusive else difference(numbers, compile_regex(_ZERO, anchored=True))


class _Digits(NamedTuple):
    """The digits of a bound: of its integer part, and after the point."""

    whole: str
    fraction: str

    @classmethod
    def of(cls, value: Decimal) -> _Digits:
        whole, _, fraction = f"{value:f}".partition(".")
        return cls(whole.lstrip("0") or "0", fraction.rstrip("0"))

    def compare(self, so_far: int, digit: int, at: int) -> int:
        """One more digit of an integer part: -1, 0 or 1, as far as the first digits tell."""
        if at >= len(self.whole):
            return 1
        return so_far or _sign(digit - int(self.whole[at]))

    def compare_fraction(self, so_far: int, digit: int, at: int) -> int:
        other = int(self.fraction[at]) if at < len(self.fraction) else 0
        return so_far or _sign(digit - other)

    def whole_ends(self, so_far: int, count: int) -> int:
        """How the integer part compares if it has `count` digits."""
        return so_far if count == len(self.whole) else _sign(count - len(self.whole))


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


class _Progress(NamedTuple):
    """`digits` read of the integer part or (`point`) of the fraction; how they compare with both bounds."""

    point: bool
    digits: int
    low: int
    high: int
    leading_zero: bool = False


class _Magnitudes:
    """Adds the unsigned numbers from `lower` (0 or more) to `upper` to an automaton."""

    def __init__(
        self,
        lower: NumberBound,
        upper: NumberBound | None,
        fractions: bool,
        edges: list[dict[int, int]],
        accepting: set[int],
    ) -> None:
        self._fractions, self._edges, self._accepting = fractions, edges, accepting
        self._lower = lower
        # Without an upper bound all numbers are below one that has more digits than can be written.
        self._upper = upper or NumberBound(Decimal(10**INTEGER_DIGITS), True)
        self._low, self._high = _Digits.of(self._lower.value), _Digits.of(self._upper.value)
        self._ids: dict[_Progress, int] = {}
        self._pending: list[_Progress] = []

    def add(self, root: int) -> None:
        """The first digits lead from state `root`."""
        for digit in range(10):
            self._edges[root][ord("0") + digit] = self._state(self._integer(_Progress(False, 0, 0, 0), digit))
        while self._pending:
            progress = self._pending.pop()
            row = self._edges[self._ids[progress]]
            for byte, following in self._following(progress):
                row[byte] = self._state(following)

    def _state(self, progress: _Progress) -> int:
        found = self._ids.get(progress)
        if found is None:
            found = self._ids[progress] = len(self._edges)
            self._edges.append({})
            self._pending.append(progress)
            if self._accepts(progress):
                self._accepting.add(found)
        return found

    def _integer(self, progress: _Progress, digit: int) -> _Progress:
        low = self._low.compare(progress.low, digit, progress.digits)
        high = self._high.compare(progress.high, digit, progress.digits)
        return _Progress(False, progress.digits + 1, low, high, progress.digits == 0 and digit == 0)

    def _whole(self, progress: _Progress) -> tuple[int, int]:
        if progress.point:
            return progress.low, progress.high
        return (
            self._low.whole_ends(progress.low, progress.digits),
            self._high.whole_ends(progress.high, progress.digits),
        )

    def _accepts(self, progress: _Progress) -> bool:
        if progress.point and progress.digits == 0:
            return False
        low, high = self._whole(progress)
        read = progress.digits if progress.point else 0
        # The digits that a bound still has make it the larger number.
        if low == 0 and self._low.fraction[read:]:
            low = -1
        if high == 0 and self._high.fraction[read:]:
            high = -1
        above = low > 0 or (low == 0 and self._lower.inclusive)
        return above and (high < 0 or (high == 0 and self._upper.inclusive))

    def _following(self, progress: _Progress) -> Iterator[tuple[int, _Progress]]:
        if not progress.point:
            if not progress.leading_zero and progress.digits < min(INTEGER_DIGITS, len(self._high.whole)):
                for digit in range(10):
                    yield ord("0") + digit, self._integer(progress, digit)
            low, high = self._whole(progress)
            if self._fractions and low >= 0 and high <= 0:
                yield ord("."), _Progress(True, 0, low, high)
        elif progress.digits < FRACTION_DIGITS:
            for digit in range(10):
                low = self._low.compare_fraction(progress.low, digit, progress.digits)
                high = self._high.compare_fraction(progress.high, digit, progress.digits)
                if low >= 0 and high <= 0:
                    yield ord("0") + digit, _Progress(True, progress.digits + 1, low, high)


def _trimmed(edges: list[dict[int, int]], accepting: set[int]) -> Table:
    """The automaton without the states from which nothing is accepted."""
    before: list[list[int]] = [[] for _ in edges]
    for state, row in enumerate(edges):
        for following in row.values():
            before[following].append(state)
    live, pending = set(accepting), list(accepting)
    while pending:
        for state in before[pending.pop()]:
            if state not in live:
                live.add(state)
                pending.append(state)
    return Table([{b: to for b, to in row.items() if to in live} for row in edges], accepting)


class Multiples(LazyAutomaton[tuple[int, int]]):
    """Decimal numbers that are a multiple of `divisor` (a finite decimal above 0), without exponents.

    A key is (digits read after the point or -1, remainder); -2 and -3 stand for the start and for a sign. The
    remainder is that of the digits read, as an integer, by `divisor` scaled to an integer.
    """

    def __init__(self, divisor: Decimal) -> None:
        super().__init__()
        _, digits, exponent = divisor.as_tuple()
        assert isinstance(exponent, int)
        scaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
        self._places = max(-exponent, 0)
        self._modulus = scaled
        if scaled * (self._places + 1) > _MAX_REMAINDERS:
            raise UnsupportedPattern(f"multiples of {divisor} have too many remainders")
        self.start = self._intern((-2, 0), False)

    def _expand(self, state: int) -> Row:
        place, remainder = self._keys[state]
        row = [DEAD] * 256
        if place == -2:
            row[ord("-")] = self._intern((-3, 0), False)
        for digit in range(10):
            row[ord("0") + digit] = self._target(max(place, -1) if place >= -1 else -1, remainder, digit)
        if place == -1 and self._may_end(0, remainder):
            row[ord(".")] = self._state(0, remainder)
        return row

    def _target(self, place: int, remainder: int, digit: int) -> int:
        if place >= self._places:
            return self._state(place, remainder) if digit == 0 else DEAD
        remainder = (remainder * 10 + digit) % self._modulus
        if place >= 0:
            place += 1
            if not self._may_end(place, remainder):
                return DEAD
        return self._state(place, remainder)

    def _may_end(self, place: int, remainder: int) -> bool:
        """Whether digits up to the last place that counts can complete a multiple."""
        rest = 10 ** (self._places - place)
        return bool(-(remainder * rest) % self._modulus < rest)

    def _state(self, place: int, remainder: int) -> int:
        rest = 10 ** (self._places - max(place, 0))
        accepting = remainder * rest % self._modulus == 0
        return self._intern((place, remainder), accepting)


def spellings(value: Decimal) -> DFA:
    """All texts without an exponent that stand for `value`."""
    whole, _, fraction = f"{abs(value):f}".partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    sign = "-?" if value == 0 else "-" if value < 0 else ""
    tail = rf"\.{fraction}0*" if fraction else r"(?:\.0+)?"
    return compile_regex(f"{sign}{whole}{tail}", anchored=True)
