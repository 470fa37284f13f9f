"""Answers that follow a regular expression, one of some texts, or a Lark grammar of the caller's."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Lark
from lark.exceptions import LarkError
from lark.lexer import PatternStr, TerminalDef

from larksong.engine.automata.product import is_empty
from larksong.engine.automata.regex import compile_regex
from larksong.engine.errors import GrammarConflict, UnsupportedPattern
from larksong.engine.grammar.grammar import Definition, Grammar, Rule, Terminal
from larksong.engine.grammar.terminals import Choice, Literal, Pattern, Role, Special
from larksong.engine.parsing.tables import Symbols
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.caching import per_vocabulary
from larksong.grammars.errors import InvalidConstraint

_CACHED = 256
_LONGEST = 65_536  # characters of a caller's pattern or grammar


def regex_grammar(pattern: str, vocabulary: Vocabulary) -> Grammar:
    """The grammar of a turn that `pattern` (ECMA-262) matches as a whole. Raises InvalidConstraint."""
    return _regex_grammar(vocabulary, pattern)


@per_vocabulary(_CACHED)
def _regex_grammar(vocabulary: Vocabulary, pattern: str) -> Grammar:
    return _one_terminal(_pattern(pattern, "the regular expression"), vocabulary, "regex")


def choice_grammar(choices: Sequence[str], vocabulary: Vocabulary) -> Grammar:
    """The grammar of a turn that is one of `choices`. Raises InvalidConstraint."""
    return _choice_grammar(vocabulary, tuple(dict.fromkeys(choices)))


@per_vocabulary(_CACHED)
def _choice_grammar(vocabulary: Vocabulary, choices: tuple[str, ...]) -> Grammar:
    if not choices or "" in choices:
        raise InvalidConstraint("the choices must be texts that are not empty, at least one")
    return _one_terminal(Choice(tuple((text, None) for text in choices)), vocabulary, "choice")


def _one_terminal(definition: Definition, vocabulary: Vocabulary, title: str) -> Grammar:
    terminals = {"ANSWER": Terminal("ANSWER", definition, Role.CONTENT), "END": _end(vocabulary)}
    return Grammar((Rule("start", ("ANSWER", "END")),), terminals, title=title)


def lark_grammar(text: str, vocabulary: Vocabulary) -> Grammar:
    """The grammar of a turn that Lark's grammar `text` (LALR(1), start symbol `start`) describes.

    Lark itself reads the text. Its terminals may be read in more than one way where they match the same text:
    an answer is allowed if any reading fits. What `%ignore` names may stand before, after and between all
    terminals. Imports from Lark's own library of terminals (`%import common.INT`) work. Raises
    InvalidConstraint.
    """
    return _lark_grammar(vocabulary, text)


@per_vocabulary(_CACHED)
def _lark_grammar(vocabulary: Vocabulary, text: str) -> Grammar:
    lark = _read_by_lark(text)
    terminals = {f"USER_{each.name}": _terminal(each) for each in lark.terminals}
    ignored = [f"USER_{name}" for name in lark.ignore_tokens]
    blanks = ("ignored",) if ignored else ()
    rules = [Rule("start", (*blanks, "user_start", "END"))]
    for rule in lark.rules:
        expansion: list[str] = []
        for symbol in rule.expansion:
            expansion += [f"USER_{symbol.name}", *blanks] if symbol.is_term else [f"user_{symbol.name}"]
        rules.append(Rule(f"user_{rule.origin.name}", tuple(expansion)))
    if ignored:
        rules += [Rule("ignored", ()), *(Rule("ignored", ("ignored", name)) for name in ignored)]
    used = {name for rule in rules for name in rule.expansion}
    kept = {name: terminal for name, terminal in terminals.items() if name in used}
    grammar = Grammar(tuple(rules), {**kept, "END": _end(vocabulary)}, title="the answer's grammar")
    _refuse_endless(grammar)
    try:
        Symbols(grammar)
    except GrammarConflict as error:
        raise InvalidConstraint(str(error)) from error
    return grammar


def _read_by_lark(text: str) -> Lark:
    if len(text) > _LONGEST:
        raise InvalidConstraint(f"the grammar is longer than {_LONGEST} characters")
    if "%import ." in text or "%import." in text:
        raise InvalidConstraint("a grammar cannot import from files")
    try:
        return Lark(text, parser="lalr", lexer="basic", maybe_placeholders=False, import_paths=[])
    except (LarkError, OSError, ValueError, RecursionError) as error:
        raise InvalidConstraint(f"Lark cannot read the grammar: {error}") from error


def _terminal(terminal: TerminalDef) -> Terminal:
    name = f"USER_{terminal.name}"
    pattern = terminal.pattern
    if isinstance(pattern, PatternStr) and not pattern.flags:
        definition: Definition = Literal(pattern.value)
    else:
        definition = _pattern(pattern.to_regexp(), f"the terminal {terminal.name}")
    return Terminal(name, definition, Role.CONTENT)


def _pattern(pattern: str, what: str) -> Pattern:
    if len(pattern) > _LONGEST:
        raise InvalidConstraint(f"{what} is longer than {_LONGEST} characters")
    try:
        dfa = compile_regex(pattern, anchored=True)
        nothing = is_empty(dfa)
    except (UnsupportedPattern, RecursionError) as error:
        raise InvalidConstraint(f"{what} cannot be enforced: {error}") from error
    if nothing:
        raise InvalidConstraint(f"{what} matches no text")
    return Pattern(pattern)


def _refuse_endless(grammar: Grammar) -> None:
    """Refuse a rule of which no text ever ends."""
    ending: set[str] = set(grammar.terminals)
    grown = True
    while grown:
        more = {rule.origin for rule in grammar.rules if ending.issuperset(rule.expansion)} - ending
        ending |= more
        grown = bool(more)
    if endless := {rule.origin for rule in grammar.rules} - ending:
        names = ", ".join(sorted(name.removeprefix("user_") for name in endless))
        raise InvalidConstraint(f"no text of these rules ever ends: {names}")


def _end(vocabulary: Vocabulary) -> Terminal:
    return Terminal("END", Special(vocabulary.eos_ids, "<end>"))
