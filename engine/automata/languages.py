"""Sets of strings, described by what must and must not be true of them, and their byte automata."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache

from larksong.engine.automata.dfa import DEAD, DFA, Row, Words
from larksong.engine.automata.nfa import LazyAutomaton, LazyDFA
from larksong.engine.automata.product import Product, difference, intersection, is_empty
from larksong.engine.automata.regex import compile_regex

_CACHED = 2048
_SEARCHED = 2000


@dataclass(frozen=True)
class Language:
    """Strings that match all of `wanted` and none of `unwanted` (ECMA-262 patterns, found anywhere).

    They are none of `excluded` and have `minimum` to `maximum` code points.
    """

    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int | None = None

    @property
    def unbounded(self) -> Language:
        """The language without bounds on the length."""
        return replace(self, minimum=0, maximum=None)

    def bytes_dfa(self) -> DFA:
        """The strings in UTF-8."""
        return _dfa(self, False)

    def json_dfa(self) -> DFA:
        """What stands between the quotes of a JSON string, canonically escaped as `json.dumps` does."""
        return _dfa(self, True)

    def matches(self, text: str) -> bool:
        """Whether `text` is one of the strings; lone surrogates never are."""
        if not self.minimum <= len(text) <= (len(text) if self.maximum is None else self.maximum):
            return False
        if text in self.excluded:
            return False
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return False
        return all(_accepts(_regex(pattern, False), data) for pattern in self.wanted) and not any(
            _accepts(_regex(pattern, False), data) for pattern in self.unwanted
        )

    def is_empty(self) -> bool:
        """Whether there is no such string (UnsupportedPattern where that is too much to find out)."""
        if self.maximum is not None and self.minimum > self.maximum:
            return True
        if not self.wanted and not self.unwanted and (not self.excluded or self.maximum is None):
            return False
        return is_empty(self.json_dfa())


@lru_cache(maxsize=_CACHED)
def _regex(pattern: str, json_string: bool) -> DFA:
    return compile_regex(pattern, anchored=False, json_string=json_string)


@lru_cache(maxsize=2)
def _anything(json_string: bool) -> DFA:
    return compile_regex("[^]*", anchored=True, json_string=json_string)


@lru_cache(maxsize=_CACHED)
def _dfa(language: Language, json_string: bool) -> DFA:
    if language.minimum or language.maximum is not None:
        lengths = _Lengths(_anything(json_string), language.minimum, language.maximum)
        if language == Language(minimum=language.minimum, maximum=language.maximum):
            return lengths
        text = _dfa(language.unbounded, json_string)
        return BoundedText(text, lengths, language.minimum, language.maximum)
    parts = [_regex(pattern, json_string) for pattern in language.wanted] or [_anything(json_string)]
    without = [_regex(pattern, json_string) for pattern in language.unwanted]
    # A state of many automata costs more to look at.
    limit = 2 * _SEARCHED // max(2, len(parts) + len(without))
    dfa = parts[0] if len(parts) == 1 else intersection(*parts, limit=limit)
    if language.excluded:
        without.append(Words([(_spelled(text, json_string), None) for text in language.excluded]))
    return difference(dfa, *without, limit=limit) if without else dfa


def _spelled(text: str, json_string: bool) -> bytes:
    # Lone surrogates cannot be written, so that there is nothing to exclude.
    return (json.dumps(text, ensure_ascii=False)[1:-1] if json_string else text).encode(errors="replace")


def _accepts(dfa: DFA, data: bytes) -> bool:
    state = dfa.start
    for byte in data:
        state = dfa.row(state)[byte]
        if state == DEAD:
            return False
    return dfa.accepts(state)


class _Lengths(LazyAutomaton[tuple[int, int]]):
    """Texts of `minimum` to `maximum` characters. Keys: (state within a character, characters before it)."""

    def __init__(self, characters: DFA, minimum: int, maximum: int | None) -> None:
        super().__init__()
        self._characters, self._minimum, self._maximum = characters, minimum, maximum
        self.start = self._state(characters.start, 0)

    def _state(self, within: int, count: int) -> int:
        between = self._characters.accepts(within)
        if self._maximum is not None and count + (not between) > self._maximum:
            return DEAD
        if self._maximum is None:
            count = min(count, self._minimum)
        return self._intern((within, count), between and count >= self._minimum)

    def _expand(self, state: int) -> Row:
        within, count = self._keys[state]
        row = self._characters.row(within)
        targets = {
            following: DEAD
            if following == DEAD
            else self._state(following, count + self._characters.accepts(following))
            for following in set(row)
        }
        return [targets[following] for following in row]

    def count(self, state: int) -> int:
        """The characters before `state`, up to the minimum if there is no maximum."""
        return self._keys[state][1]


class BoundedText(Product):
    """The texts of an automaton that have a bounded number of characters."""

    def __init__(self, text: DFA, lengths: _Lengths, minimum: int, maximum: int | None) -> None:
        super().__init__(
            (text, lengths), viable=lambda states: min(states) >= 0, accepting=all, limit=_SEARCHED
        )
        self._text, self._lengths = text, lengths
        self._minimum, self._maximum = minimum, maximum

    def far_state(self, state: int, longest: int) -> int | None:
        """The state of the text without its bounds, if no token of `longest` characters comes near one.

        Near is also where a text could not be completed any more within the bounds.
        """
        text, lengths = self._keys[state]
        count = self._lengths.count(lengths)
        if count < self._minimum:
            return None
        if self._maximum is None:
            return text
        needed = self._text.farthest if isinstance(self._text, LazyDFA) else self._maximum
        return text if count + longest + needed <= self._maximum else None
