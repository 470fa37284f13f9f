"""Regular expressions with the syntax and meaning of ECMA-262, as JSON Schema wants them, to byte DFAs.

The grammar is ECMA-262's with the `u` flag (section 22.2.1), read by recursive descent. Of the older forms
in its Annex B those are taken that cannot be misunderstood: lone `{`, `}` and `]`, escaped punctuation, a
hyphen beside a class escape. What is not regular, or means something else in other dialects, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from larksong.engine.automata.charset import ANY, CharSet, Range, unicode_property
from larksong.engine.automata.dfa import DFA
from larksong.engine.automata.nfa import BEGIN, END, NFA, LazyDFA
from larksong.engine.automata.product import difference, intersection
from larksong.engine.errors import InvalidPattern, UnsupportedPattern


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Concatenation:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`low` to `high` times, without bound if None. Greed does not change the language."""

    item: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Anchor:
    """`^` or `$` by its guard, `BEGIN` or `END`."""

    guard: int


@dataclass(frozen=True, slots=True)
class Lookahead:
    """`(?=item)` or `(?!item)`."""

    item: Node
    negative: bool
    offset: int


Node = Chars | Concatenation | Alternation | Repetition | Anchor | Lookahead

_ANY = Chars(ANY)
_ANYTHING = Repetition(_ANY, 0, None)
_DOT = Chars(~CharSet.of((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)))
_DIGIT = CharSet.of((0x30, 0x39))
_WORD = CharSet.of((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE = CharSet.of(
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_CLASS_ESCAPES = {"d": _DIGIT, "D": ~_DIGIT, "w": _WORD, "W": ~_WORD, "s": _SPACE, "S": ~_SPACE}
_CONTROL_ESCAPES = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_HEX = "[0-9a-fA-F]"
_LONG_ESCAPE = re.compile(
    rf"\\u(?P<high>[dD][89abAB]{_HEX}{{2}})\\u(?P<low>[dD][c-fC-F]{_HEX}{{2}})"
    rf"|\\u\{{(?P<braced>{_HEX}+)\}}|\\u(?P<four>{_HEX}{{4}})|\\x(?P<two>{_HEX}{{2}})"
    r"|\\c(?P<control>[a-zA-Z])|\\0(?![0-9])|\\(?P<sign>[pP])\{(?P<property>[^}]*)\}"
)
_REFUSED_ESCAPES = {
    **dict.fromkeys("bB", "word boundary"),
    **dict.fromkeys("123456789k", "back reference"),
    "0": "octal escape",
}
_QUANTIFIER = re.compile(r"(?:([*+?])|\{([0-9]+)(?:(,)([0-9]*))?\})\??")
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_SHOWN = 200  # characters of a pattern in a message
_GROUP = re.compile(r"\((?:\?(:|=|!|<=|<!|<[\w$]+>))?(?!\?)")


def _count(digits: str) -> int:
    """Cut to ten digits: beyond any limit as well, and quickly read."""
    return int(digits.lstrip("0")[:10] or 0)


@lru_cache(maxsize=1024)
def _character(code: int) -> Chars:
    return Chars(CharSet.of((code, code)))


def _concatenation(items: Iterable[Node]) -> Node:
    """Lays inner concatenations flat; groups leave no trace, so `^((?!x)y)` reads as `^(?!x)y`."""
    flat: list[Node] = []
    for item in items:
        flat += item.items if isinstance(item, Concatenation) else (item,)
    return flat[0] if len(flat) == 1 else Concatenation(tuple(flat))


def _alternation(branches: list[Node]) -> Node:
    if all(isinstance(branch, Chars) for branch in branches):
        ranges = (r for branch in branches if isinstance(branch, Chars) for r in branch.chars.ranges)
        return branches[0] if len(branches) == 1 else Chars(CharSet.of(*ranges))
    return branches[0] if len(branches) == 1 else Alternation(tuple(branches))


class _PatternParser:
    """Recursive descent; the methods follow the productions of ECMA-262."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def parse(self) -> Node:
        node = self._disjunction()
        if self._at < len(self._pattern):
            raise self.invalid("unmatched )", self._at)
        return node

    def refuse(self, construct: str, offset: int) -> UnsupportedPattern:
        return UnsupportedPattern(self._where(construct, offset))

    def invalid(self, construct: str, offset: int) -> InvalidPattern:
        return InvalidPattern(self._where(construct, offset))

    def _where(self, construct: str, offset: int) -> str:
        pattern = self._pattern
        shown = repr(pattern) if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]!r}…"
        return f"{construct} at offset {offset} of the pattern {shown}"

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _disjunction(self) -> Node:
        branches = [self._alternative()]
        while self._next() == "|":
            self._at += 1
            branches.append(self._alternative())
        return _alternation(branches)

    def _alternative(self) -> Node:
        terms: list[Node] = []
        while (char := self._next()) and char not in "|)":
            if _QUANTIFIER.match(self._pattern, self._at):
                raise self._nothing_to_repeat(char, terms)
            terms.append(self._term(char))
        return _concatenation(terms)

    def _term(self, char: str) -> Node:
        start = self._at
        if char == "(":
            atom = self._group()
        elif char == "[":
            atom = Chars(self._class())
        elif char == "\\":
            escape = self._escape(in_class=False)
            atom = self._literal(escape, start) if isinstance(escape, int) else Chars(escape)
        else:
            self._at += 1
            if char in "^$":
                return Anchor(BEGIN if char == "^" else END)
            atom = _DOT if char == "." else self._literal(ord(char), start)
        if isinstance(atom, Lookahead):
            return atom
        quantifier = _QUANTIFIER.match(self._pattern, self._at)
        return atom if quantifier is None else self._quantified(atom, quantifier)

    def _nothing_to_repeat(self, char: str, terms: list[Node]) -> UnsupportedPattern:
        """Other dialects repeat anchors, have `a++`, or read `{2}` as text; nobody reads `*a` or `a**`."""
        nobody = char != "{" and (not terms or (char != "+" and isinstance(terms[-1], Repetition)))
        refuse = self.invalid if nobody else self.refuse
        return refuse("nothing to repeat", self._at)

    def _literal(self, code: int, offset: int) -> Chars:
        char = _character(code)
        if not char.chars:
            raise self.refuse("lone surrogate", offset)
        return char

    def _quantified(self, atom: Node, quantifier: re.Match[str]) -> Node:
        self._at = quantifier.end()
        sign, least, comma, most = quantifier.groups()
        low, high = _SIGNS[sign] if sign else (_count(least), _count(most or least))
        if comma and not most:
            high = None
        if high is not None and high < low:
            raise self.invalid("repetition with its bounds out of order", quantifier.start())
        return Repetition(atom, low, high) if atom != Concatenation(()) else atom

    def _group(self) -> Node:
        start = self._at
        match = _GROUP.match(self._pattern, start)
        if match is None:
            raise self.refuse(f"group {self._pattern[start : start + 3]}", start)
        kind = match[1]
        if kind in ("<=", "<!"):
            raise self.refuse("look-behind", start)
        self._at = match.end()
        node = self._disjunction()
        if self._next() != ")":
            raise self.invalid("unterminated group", start)
        self._at += 1
        return Lookahead(node, kind == "!", start) if kind in ("=", "!") else node

    def _class(self) -> CharSet:
        start = self._at
        self._at += 1
        negated = self._next() == "^"
        self._at += negated
        ranges: list[Range] = []
        while self._next() != "]":
            low = high = self._class_atom(start)
            if self._next() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._class_atom(start)
                if isinstance(low, CharSet) or isinstance(high, CharSet):
                    ranges.append((ord("-"), ord("-")))
            if isinstance(low, CharSet) or isinstance(high, CharSet):
                for atom in (low, high):
                    ranges += atom.ranges if isinstance(atom, CharSet) else ((atom, atom),)
            elif low <= high:
                ranges.append((low, high))
            else:
                raise self.invalid("range with its ends out of order in a class", start)
        self._at += 1
        chars = CharSet.of(*ranges)
        if ranges and not chars and not negated:
            raise self.refuse("class of lone surrogates", start)
        return ~chars if negated else chars

    def _class_atom(self, start: int) -> int | CharSet:
        char = self._next()
        if not char:
            raise self.invalid("unterminated class", start)
        if char == "\\":
            return self._escape(in_class=True)
        self._at += 1
        return ord(char)

    def _escape(self, in_class: bool) -> int | CharSet:
        """A code point or a set. In a class a code point may be the end of a range."""
        start = self._at
        letter = self._pattern[start + 1 : start + 2]
        self._at += 2
        if letter in _CLASS_ESCAPES:
            return _CLASS_ESCAPES[letter]
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter == "b" and in_class:
            return 0x08
        match = _LONG_ESCAPE.match(self._pattern, start)
        if match is not None:
            self._at = match.end()
            return self._long_escape(match)
        if not letter:
            raise self.invalid("trailing backslash", start)
        if letter.isascii() and letter.isalnum():
            raise self.refuse(f"{_REFUSED_ESCAPES.get(letter, 'unknown escape')} \\{letter}", start)
        return ord(letter)

    def _long_escape(self, match: re.Match[str]) -> int | CharSet:
        if match["property"] is not None:
            chars = unicode_property(match["property"])
            if chars is None:
                raise self.refuse(f"property {match[0]}", match.start())
            return chars if match["sign"] == "p" else ~chars
        if match["low"]:
            return 0x10000 + (int(match["high"], 16) - 0xD800 << 10) + int(match["low"], 16) - 0xDC00
        if match["control"]:
            return ord(match["control"]) % 32
        code = int(match["braced"] or match["four"] or match["two"] or "0", 16)
        if code > 0x10FFFF:
            raise self.refuse(f"no character {match[0]}", match.start())
        return code


class _PatternCompiler:
    """Builds the automata of one pattern; `limit` bounds their NFA nodes and their searches."""

    def __init__(self, parser: _PatternParser, json_string: bool, limit: int) -> None:
        self._parser = parser
        self._json_string = json_string
        self._limit = limit

    def compile(self, node: Node, anchored: bool) -> DFA:
        """`node` without its look-aheads, and what each of those says of the whole text."""
        wanted: list[DFA] = []
        unwanted: list[DFA] = []
        kept: list[Node] = []
        items = node.items if isinstance(node, Concatenation) else (node,)
        from_start = anchored or items[:1] == (Anchor(BEGIN),)
        for index, item in enumerate(items):
            distance = _width(Concatenation(items[:index])) if isinstance(item, Lookahead) else None
            if isinstance(item, Lookahead) and from_start and distance is not None:
                text = Concatenation((Repetition(_ANY, distance, distance), item.item, _ANYTHING))
                (unwanted if item.negative else wanted).append(self._automaton(text))
            else:
                kept.append(item)
        dfa: DFA = self._automaton(_framed(_concatenation(kept), anchored))
        if wanted:
            dfa = intersection(dfa, *wanted, limit=self._limit)
        return difference(dfa, *unwanted, limit=self._limit) if unwanted else dfa

    def _automaton(self, node: Node) -> LazyDFA:
        nfa = NFA(self._json_string, self._limit)
        start = nfa.node()
        return LazyDFA(nfa, start, self._build(nfa, node, start))

    def _build(self, nfa: NFA, node: Node, source: int) -> int:
        """Adds `node` behind the NFA node `source`, gives the NFA node behind it."""
        match node:
            case Chars(chars):
                target = nfa.node()
                nfa.move(source, chars, target)
            case Concatenation(items):
                target = source
                for item in items:
                    target = self._build(nfa, item, target)
            case Alternation(branches):
                target = nfa.node()
                for branch in branches:
                    entry = nfa.node()
                    nfa.link(source, entry)
                    nfa.link(self._build(nfa, branch, entry), target)
            case Repetition():
                target = self._repeat(nfa, node, source)
            case Anchor(guard):
                target = nfa.node()
                nfa.link(source, target, guard)
            case Lookahead():
                raise self._parser.refuse("look-ahead not at a fixed distance from the start", node.offset)
        return target

    def _repeat(self, nfa: NFA, node: Repetition, source: int) -> int:
        if max(node.low, node.high or 0) > self._limit:
            raise UnsupportedPattern(f"a repetition of more than {self._limit} times")
        for _ in range(node.low):
            source = self._build(nfa, node.item, source)
        target = nfa.node()
        for _ in range((node.high or 0) - node.low):
            nfa.link(source, target)
            source = self._build(nfa, node.item, source)
        if node.high is not None:
            nfa.link(source, target)
            return target
        loop = nfa.node()
        nfa.link(source, loop)
        nfa.link(loop, target)
        if isinstance(node.item, Chars):
            nfa.move(loop, node.item.chars, loop)
        else:
            nfa.link(self._build(nfa, node.item, loop), loop)
        return target


def _framed(node: Node, anchored: bool) -> Node:
    """`node` so that it has to match the whole text: with anything around it, except at an anchor."""
    margin = () if anchored else (_ANYTHING,)
    frames: dict[tuple[tuple[Node, ...], tuple[Node, ...]], list[Node]] = {}
    for branch in node.branches if isinstance(node, Alternation) else (node,):
        items = branch.items if isinstance(branch, Concatenation) else (branch,)
        front = back = margin
        if items[:1] == (Anchor(BEGIN),):
            items, front = items[1:], ()
        if items[-1:] == (Anchor(END),):
            items, back = items[:-1], ()
        frames.setdefault((front, back), []).append(_concatenation(items))
    return _alternation(
        [Concatenation((*front, _alternation(inner), *back)) for (front, back), inner in frames.items()]
    )


def _width(node: Node) -> int | None:
    """How many characters `node` matches, if that is one number."""
    match node:
        case Chars():
            return 1
        case Concatenation(items):
            widths = [_width(item) for item in items]
            return None if None in widths else sum(width for width in widths if width is not None)
        case Alternation(branches):
            different = {_width(branch) for branch in branches}
            return different.pop() if len(different) == 1 else None
        case Repetition(item, low, high):
            width = _width(item)
            return width * low if width is not None and low == high else None
        case Anchor() | Lookahead():
            return 0


@lru_cache(maxsize=256)
def _parsed(pattern: str) -> Node:
    return _PatternParser(pattern).parse()


def check_syntax(pattern: str) -> None:
    """Raises `InvalidPattern` for what is no regular expression; one that is refused is none the less."""
    try:
        _parsed(pattern)
    except InvalidPattern:
        raise
    except (UnsupportedPattern, RecursionError):
        return


def compile_regex(
    pattern: str, *, anchored: bool, json_string: bool = False, max_states: int = 20_000
) -> DFA:
    """The texts that `pattern` matches, as a lazy automaton over their UTF-8 bytes.

    `anchored`: the whole text has to match; else somewhere in it, as JSON Schema's `pattern` has it.
    `json_string`: the bytes are those between the quotes of a JSON string whose value matches, in the
    spelling of `json.dumps(..., ensure_ascii=False)`.
    Look-aheads are taken at a fixed distance from the start of the text, such as `^(?=.*[a-z])(?!-)`.

    Raises `UnsupportedPattern`, which says what and where, for a pattern that is not valid (`InvalidPattern`)
    or not regular, or whose NFA has more than `max_states` nodes. States of the DFA are made as they are met,
    without a bound; the searches that look-aheads need visit at most `max_states` states each.
    """
    try:
        return _PatternCompiler(_PatternParser(pattern), json_string, max_states).compile(
            _parsed(pattern), anchored
        )
    except RecursionError:
        raise UnsupportedPattern(f"groups nested too deeply in the pattern {pattern[:40]!r}…") from None
