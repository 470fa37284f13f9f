"""What terminals match. A definition is plain data: it is printed in the grammar, it makes the byte DFA,
and it is the key under which everything that depends on the terminal alone is cached."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum

from larksong.engine.automata.dfa import DFA, Quoted, StringsExcept, Words, counted_json_string, json_string
from larksong.engine.automata.languages import Language
from larksong.engine.automata.numbers import (
    INTEGER,
    INTEGER_DIGITS,
    NUMBER,
    Multiples,
    NumberBound,
    in_range,
    no_number,
    spellings,
)
from larksong.engine.automata.product import difference, intersection, is_empty
from larksong.engine.automata.regex import compile_regex
from larksong.engine.automata.text_until import AhoCorasick, MatchedText, Stop, counted_text
from larksong.engine.grammar.attributes import Member, Value

# Product states that are looked at to find out whether a number can be completed.
_SEARCHED = 3000


class Role(Enum):
    """What a terminal means to a reader."""

    MARKUP = "markup"
    NAME = "name of a function or parameter that is not declared"
    BEFORE_NAME = "what may stand before a function's name, or be the beginning of one"
    NAME_END = "end of a function's name that is not declared"
    FUNCTION_OPEN = "function open"
    PARAMETER_OPEN = "parameter open"
    TEXT = "raw string value"
    JSON = "JSON value"
    PARAMETER_CLOSE = "parameter close"
    CALL_CLOSE = "call close"
    CONTENT = "content"
    REASONING = "reasoning"


def lark_string(text: str) -> str:
    """`text` as a Lark string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    escaped = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", escaped)
    return f'"{escaped}"'


def lark_regex(pattern: str) -> str:
    """`pattern` between slashes, as Lark reads it."""
    return "/" + pattern.replace("/", "\\/").replace("\\\n", "\\n").replace("\n", "\\n") + "/"


def _repeat(minimum: int, maximum: int | None, unbounded: str) -> str:
    if not minimum and maximum is None:
        return unbounded
    return f"{{{minimum},{'' if maximum is None else maximum}}}"


_NOT_EMPTY = {"": r"[^\s\S]", r"\n{0,2}": r"\n{1,2}", r"\n*": r"\n+"}


@dataclass(frozen=True)
class Literal:
    """Exactly this text."""

    text: str

    def dfa(self) -> DFA:
        return Words([(self.text.encode(), None)])

    def lark(self) -> str:
        return lark_string(self.text)


@dataclass(frozen=True)
class Choice:
    """One of a finite set of texts; each has a label: the value that the terminal pushes.

    In terminals with the role JSON a label of type str is the JSON text to report instead (`True` → `true`).
    `prefix`: what stands before each of them.
    """

    words: tuple[tuple[str, Value], ...]
    prefix: str = ""

    def dfa(self) -> DFA:
        return Words([(text.encode(), label) for text, label in self.words], self.prefix.encode())

    def lark(self) -> str:
        return " | ".join(lark_string(self.prefix + text) for text, _ in self.words)


@dataclass(frozen=True)
class Keys:
    """The names of members whose values have one type; each is read, and may be refused, by itself.

    One terminal for all of them keeps the LALR tables small: they do not grow with the number of names.
    """

    words: tuple[tuple[str, Member], ...]

    def lark(self) -> str:
        return " | ".join(lark_string(text) for text, _ in self.words)


@dataclass(frozen=True)
class Pattern:
    """A regular expression that matches the whole terminal."""

    pattern: str

    def dfa(self) -> DFA:
        return compile_regex(self.pattern, anchored=True)

    def lark(self) -> str:
        # Lark knows no terminals that may be empty: it reads every text of theirs but the empty one.
        return lark_regex(_NOT_EMPTY.get(self.pattern, self.pattern))


@dataclass(frozen=True)
class JsonString:
    """A JSON string of `minimum` to `maximum` code points."""

    minimum: int = 0
    maximum: int | None = None

    def basis(self) -> JsonString | None:
        """What its walks are made from: the string without bounds."""
        return JsonString() if self != JsonString() else None

    def dfa(self) -> DFA:
        if self.minimum == 0 and self.maximum is None:
            return json_string()
        return counted_json_string(self.minimum, self.maximum)

    def lark(self) -> str:
        character = r'(?:[^"\\\x00-\x1f]|\\(?:["\\\/bfnrt]|u[0-9a-fA-F]{4}))'
        bounds = _repeat(self.minimum, self.maximum, "*")
        return f'/"{character}{bounds}"/'


@dataclass(frozen=True)
class JsonKey:
    """A canonically escaped JSON string other than `excluded`.

    Canonical only: with `\\u0061` for `a` a declared name could be written a second time in disguise.
    """

    excluded: tuple[str, ...]

    def basis(self) -> JsonKey | None:
        """What its walks are made from: the one without exceptions."""
        return JsonKey(()) if self.excluded else None

    def dfa(self) -> DFA:
        return StringsExcept(json.dumps(key, ensure_ascii=False).encode() for key in self.excluded)

    def lark(self) -> str:
        names = "|".join(re.escape(json.dumps(key, ensure_ascii=False)[1:-1]) for key in self.excluded)
        names = names.replace('"', r"\x22")  # Lark would take a backslash before a quote away
        guard = f'(?!(?:{names})")' if names else ""
        body = r'(?:[^"\\\x00-\x1f]|\\(?:["\\bfnrt]|u00[01][0-9a-f]))*'
        return "/" + ('"' + guard).replace("/", "\\/").replace("\n", "\\n") + body + '"/'


@dataclass(frozen=True)
class JsonText:
    """A JSON string whose value is in `language`, canonically escaped.

    Canonical only: with `\\u0061` for `a` a declared name could be written a second time in disguise.
    """

    language: Language

    def dfa(self) -> DFA:
        return Quoted(self.language.json_dfa())

    def basis(self) -> JsonText | None:
        """The terminal without bounds on the length, from whose walks this one's are made far from them."""
        plain = self.language.unbounded
        return None if plain in (self.language, Language()) else JsonText(plain)

    def lark(self) -> str:
        # Lark's own lexers get the length and the excluded texts; patterns are for the engine alone.
        words = [re.escape(json.dumps(text, ensure_ascii=False)[1:-1]) for text in self.language.excluded]
        guard = f'(?!(?:{"|".join(words)})")' if words else ""
        bounds = _repeat(self.language.minimum, self.language.maximum, "*")
        body = rf'(?:[^"\\\x00-\x1f]|\\(?:["\\bfnrt]|u00[01][0-9a-f])){bounds}'
        return "/" + ('"' + guard).replace("/", "\\/").replace("\n", "\\n") + body + '"/'


@dataclass(frozen=True)
class Number:
    """A JSON number between two bounds; `integer`: written without a point.

    It is a multiple of all `multiples` and of none of `others`, and none of `excluded`. With more than a
    bound at 0 there is no exponent, and where divisibility is asked for, no more digits than a double tells
    apart.
    """

    integer: bool = False
    lower: NumberBound | None = None
    upper: NumberBound | None = None
    multiples: tuple[Decimal, ...] = ()
    others: tuple[Decimal, ...] = ()
    excluded: tuple[Decimal, ...] = ()

    def is_empty(self) -> bool:
        """Whether there is no such number (UnsupportedPattern where that is too much to find out)."""
        if not self.multiples and not self.others and not self.excluded:
            return no_number(self.lower, self.upper, not self.integer)
        return is_empty(self.dfa())

    def dfa(self) -> DFA:
        dfa = in_range(self.lower, self.upper, not self.integer)
        without = [*map(Multiples, self.others), *map(spellings, self.excluded)]
        parts = [dfa, *map(Multiples, self.multiples)]
        if (without or self.multiples) and not self.integer:
            # Whole numbers are compared exactly by everyone, others as doubles.
            whole = all(each == each.to_integral_value() for each in (*self.multiples, *self.others))
            digits = rf"-?(?:[0-9.]{{1,16}}|[0-9]{{1,{INTEGER_DIGITS}}})" if whole else "-?[0-9.]{1,16}"
            parts.append(compile_regex(digits, anchored=True))
        dfa = parts[0] if len(parts) == 1 else intersection(*parts, limit=_SEARCHED)
        return difference(dfa, *without, limit=_SEARCHED) if without else dfa

    def lark(self) -> str:
        return lark_regex(INTEGER if self.integer else NUMBER)


@dataclass(frozen=True)
class TextUntil:
    """Raw text up to a stop (see `larksong.engine.automata.text_until`).

    `refused` are the stops that may not come now.

    With a `language` the text is one of its strings, and the bounds on its length are in there.
    `open_end`: at least one character, and it may also end where a token of its own follows.
    """

    stops: tuple[Stop, ...] = ()
    before: str = ""
    open_end: bool = False
    minimum: int = 0
    maximum: int | None = None
    refused: frozenset[int] = frozenset()
    language: Language | None = None

    def basis(self) -> TextUntil | None:
        """What its walks are made from: itself without bounds, plain text of text with stops."""
        if self.language is not None:
            return None
        unbounded = replace(self, minimum=0, maximum=None)
        if self != unbounded:
            return unbounded
        return TextUntil() if self != TextUntil() else None

    def without(self, refused: frozenset[int]) -> TextUntil:
        return replace(self, refused=refused)

    def text(self) -> AhoCorasick:
        return AhoCorasick(self.stops, self.refused, self.before.encode(), self.open_end)

    def dfa(self) -> DFA:
        if self.language is not None:
            return MatchedText(self.text(), self.language.bytes_dfa())
        if self.minimum == 0 and self.maximum is None:
            return self.text()
        return counted_text(self.text(), self.minimum, self.maximum)

    def lark(self) -> str:
        # Lark's own lexers know no empty terminals: they read every text but the empty one.
        bounds = _repeat(self.minimum, self.maximum, "+")
        ends = "|".join(re.escape(stop.marker.decode()) for stop in self.stops)
        if not ends:
            return lark_regex(f"(.|\n){bounds}")
        if self.open_end:
            return lark_regex(f"((?!{ends})(.|\n))+")
        if self.maximum == 0:
            return lark_regex("[^\\s\\S]")
        return lark_regex(f"(.|\n){bounds.replace('{0,', '{1,')}?(?={ends})")


@dataclass(frozen=True)
class Special:
    """A marker that the tokenizer holds as tokens of its own: matched by id, never by its letters."""

    ids: frozenset[int]
    text: str

    def lark(self) -> str:
        return lark_string(self.text)


Readable = Literal | Choice | Pattern | JsonString | JsonKey | JsonText | Number | TextUntil | Special
"""What a terminal automaton can be made of."""
