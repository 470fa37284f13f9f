"""A grammar in the languages of other engines: formatron's kbnf, llama.cpp's GBNF, llguidance's Lark.

They know context-free grammars alone, so members come in a fixed order (`fixed_order`); what else is said
otherwise stands in comments at the top. The end of the turn is not written: those engines allow an
end-of-sequence token where the text may end.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import ClassVar

from larksong.engine.automata.characters import CharacterAutomaton, Range, TooManyStates
from larksong.engine.automata.dfa import DEAD, DFA, Row
from larksong.engine.automata.text_until import AhoCorasick
from larksong.engine.grammar.fixed_order import FixedOrder, fixed_order
from larksong.engine.grammar.grammar import Grammar, Sub, Terminal
from larksong.engine.grammar.terminals import Choice, JsonKey, JsonString, Keys, Literal, Special, TextUntil


class Writer(ABC):
    """Prints a grammar without attributes in one engine's language."""

    name: ClassVar[str]
    comment: ClassVar[str]
    defines: ClassVar[str] = " ::= "
    end: ClassVar[str] = ""
    greedy: ClassVar[str] = ""
    """What is to be said where a text may begin like a literal and go on otherwise."""

    @abstractmethod
    def string(self, text: str) -> str:
        """Exactly this text, which is not empty."""

    @abstractmethod
    def characters(self, ranges: Sequence[Range]) -> str:
        """One character of these ranges."""

    def rule_name(self, name: str) -> str:
        """A rule's name in this language."""
        return name.lower()

    def rule(self, name: str, alternatives: Iterable[Sequence[str]]) -> str:
        """A rule; an alternative without symbols is the empty text."""
        written = [" ".join(symbols) or self.nothing for symbols in alternatives]
        return f"{name}{self.defines}{' | '.join(written)}{self.end}"

    nothing: ClassVar[str] = '""'


class Kbnf(Writer):
    """formatron's engine, kbnf."""

    name = "kbnf"
    comment = "(* {} *)"
    end = ";"
    nothing = "''"

    def string(self, text: str) -> str:
        return _quoted(text)

    def characters(self, ranges: Sequence[Range]) -> str:
        return f"#{_quoted(_class(ranges))}"


class Gbnf(Writer):
    """llama.cpp's GBNF. Its names have no underscores, and it begins with `root`."""

    name = "gbnf"
    comment = "# {}"

    def rule_name(self, name: str) -> str:
        return "root" if name == "start" else name.lower().replace("_", "-")

    def string(self, text: str) -> str:
        return _quoted(text)

    def characters(self, ranges: Sequence[Range]) -> str:
        return _class(ranges, gbnf=True)


class LLGuidance(Writer):
    """llguidance's Lark."""

    name = "llguidance"
    comment = "// {}"
    defines = ": "
    greedy = (
        "llguidance's lexer takes the longest literal and does not go back: "
        "a text that goes on like one and then otherwise is refused"
    )

    def string(self, text: str) -> str:
        return _quoted(text)

    def characters(self, ranges: Sequence[Range]) -> str:
        return f"/{_class(ranges, also='/')}/"


WRITERS: dict[str, Writer] = {writer.name: writer for writer in (Kbnf(), Gbnf(), LLGuidance())}


def export(grammar: Grammar, target: str) -> str:
    """`grammar` in the language of `target`, a key of WRITERS.

    Raises TooManyStates, naming the terminal, where a pattern or a bounded number is too large to be written
    out.
    """
    return _Export(fixed_order(grammar), WRITERS[target]).text()


class _Export:
    """One grammar on its way into a language. Rules, terminals and states of these are all rules there."""

    def __init__(self, fixed: FixedOrder, writer: Writer) -> None:
        self._grammar = fixed.grammar
        self._writer = writer
        self._notes = list(fixed.notes)
        # Rules keep their names, and whatever else is written down goes around them.
        self._taken: set[str] = set()
        self._names: dict[str, str] = {}
        for origin in dict.fromkeys(("start", *(rule.origin for rule in self._grammar.rules))):
            self._names[origin] = self._free(origin)
        for name in self._grammar.terminals:
            self._names[name] = self._free(f"t_{name.lower()}")

    def _free(self, wanted: str) -> str:
        """A name in the language that no rule has yet."""
        names = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
        name = next(name for name in map(self._writer.rule_name, names) if name not in self._taken)
        self._taken.add(name)
        return name

    def text(self) -> str:
        bodies: dict[str, list[list[str]]] = {}
        end = self._grammar.terminals.get("END")
        ends = {"END"} if end is not None and isinstance(end.definition, Special) else set()
        for rule in self._grammar.rules:
            symbols = [self._names[name] for name in rule.expansion if name not in ends]
            bodies.setdefault(rule.origin, []).append(symbols)
        lines = [self._writer.rule(self._names[origin], found) for origin, found in bodies.items()]
        if self._writer.greedy and _has_texts_like_literals(self._grammar):
            self._notes.append(self._writer.greedy)
        for name, terminal in self._grammar.terminals.items():
            if name not in ends:
                try:
                    lines += self._terminal(terminal)
                except TooManyStates as error:
                    raise TooManyStates(f"{name} has {error}") from error
        said = [line for line in (self._grammar.title, *dict.fromkeys(self._notes)) if line]
        head = [self._writer.comment.format(" ".join(line.replace("*)", "* )").split())) for line in said]
        return "\n".join([*head, *lines]) + "\n"

    def _terminal(self, terminal: Terminal) -> list[str]:
        name, writer = self._names[terminal.name], self._writer
        match terminal.definition:
            case Literal(text):
                return [writer.rule(name, [[writer.string(text)]])]
            case Special(_, text):
                self._notes.append("markers that are tokens of their own are written as text")
                return [writer.rule(name, [[writer.string(text)]])]
            case Choice(words, prefix):
                texts = dict.fromkeys(prefix + text for text, _ in words)
                return [writer.rule(name, ([writer.string(text)] if text else [] for text in texts))]
            case TextUntil() as text:
                if text.language is not None or text.minimum or text.maximum is not None:
                    self._notes.append("patterns and lengths of raw texts are not kept")
                return self._automaton(terminal, RawText(text.text()))
            case Keys() | Sub():
                raise AssertionError(f"{name} is not in the readable form")
            case definition:
                try:
                    return self._automaton(terminal, definition.dfa())
                except TooManyStates:
                    if not isinstance(definition, JsonString):
                        raise
                    bounds = f"{definition.minimum} to {definition.maximum}"
                    self._notes.append(f"the length of {terminal.name}, {bounds}, is not kept")
                    return self._automaton(terminal, JsonString().dfa())

    def _automaton(self, terminal: Terminal, dfa: DFA) -> list[str]:
        """One rule a state: the characters that lead to the next."""
        automaton = CharacterAutomaton(dfa)
        # A state that nothing can follow needs no rule.
        needed = [state for state, edges in enumerate(automaton.edges) if edges or not state]
        names = {
            state: self._free(f"t_{terminal.name.lower()}_{state}") if state else self._names[terminal.name]
            for state in needed
        }
        lines = []
        for state in needed:
            found = []
            for target, ranges in automaton.edges[state].items():
                symbol = _one_of(self._writer, ranges)
                if target in automaton.accepting and target not in names:
                    found.append([symbol])
                else:
                    found.append([symbol, names[target]])
            if state in automaton.accepting:
                found.append([])
            lines.append(self._writer.rule(names[state], found))
        return lines


def _has_texts_like_literals(grammar: Grammar) -> bool:
    """Whether there are raw texts with ends, other names beside declared ones, or strings beside enums."""
    definitions = [terminal.definition for terminal in grammar.terminals.values()]
    strings = any(isinstance(each, JsonString) for each in definitions)
    return any(
        (isinstance(each, TextUntil) and bool(each.stops))
        or (isinstance(each, JsonKey) and bool(each.excluded))
        or (isinstance(each, Choice) and strings and any(text.startswith('"') for text, _ in each.words))
        for each in definitions
    )


def _one_of(writer: Writer, ranges: Sequence[Range]) -> str:
    (low, high), *others = ranges
    return writer.string(chr(low)) if low == high and not others else writer.characters(ranges)


class RawText:
    """What may stand before an end of a raw text: no end is in it, nor begins in it too early."""

    def __init__(self, text: AhoCorasick) -> None:
        self._text = text
        self.start = text.start

    def row(self, state: int) -> Row:
        ends = self._text.stop
        return [DEAD if following in ends else following for following in self._text.row(state)]

    def accepts(self, state: int) -> bool:
        if state in self._text.stop:
            return False
        if self._text.accepts(state):
            return True
        return any(self._reaches(state, stop.marker) for stop in self._text.stops)

    def _reaches(self, state: int, marker: bytes) -> bool:
        for at, byte in enumerate(marker):
            state = self._text.row(state)[byte]
            if state == DEAD or (state in self._text.stop) != (at + 1 == len(marker)):
                return False
        return True


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\x{ord(match[0]):02x}", escaped) + '"'


def _class(ranges: Sequence[Range], *, also: str = "", gbnf: bool = False) -> str:
    """A class of characters. `also`: what else must be escaped. GBNF knows few escapes, and no braces."""

    def one(code: int) -> str:
        character = chr(code)
        if character in "\n\r\t":
            return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
        if character in "\\]^-[&~" + also and not (gbnf and character in "^-&~"):
            return "\\" + character
        if 0x20 <= code < 0x7F and not (gbnf and character in "^-"):
            return character
        if not gbnf:
            return f"\\x{{{code:x}}}"
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    parts = [one(low) if low == high else f"{one(low)}-{one(high)}" for low, high in ranges]
    return f"[{''.join(parts)}]"
