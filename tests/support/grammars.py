"""Small grammars for tests of the engine alone."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hypothesis import strategies as st
from lark import Lark, Token
from lark.lexer import Lexer

from larksong.engine.grammar.attributes import Action, Predicate
from larksong.engine.grammar.expand import expand
from larksong.engine.grammar.grammar import Definition, Grammar, Rule, Terminal
from larksong.engine.grammar.terminals import Choice, Keys, Literal, Role, Special
from larksong.engine.vocabulary import Vocabulary


def rules(text: str) -> tuple[Rule, ...]:
    """Rules written as `origin: SYMBOL SYMBOL | …`, one origin a line."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        origin, _, alternatives = line.partition(":")
        found += [Rule(origin.strip(), tuple(part.split())) for part in alternatives.split("|")]
    return tuple(found)


@st.composite
def some_rules(draw: st.DrawFn) -> str:
    """Rules over the terminals A to D: some context-free grammar, most often a small and odd one.

    Each rule derives some text and is reached from `start`; no alternative comes twice.
    """
    symbols = st.sampled_from(["A", "B", "C", "D", "start", "x", "y"])
    found: dict[str, dict[str, None]] = {}
    for origin in ("start", "x", "y"):
        plain = draw(st.lists(st.sampled_from("ABCD"), max_size=2))
        more = draw(st.lists(st.lists(symbols, max_size=3), min_size=1, max_size=2))
        found[origin] = dict.fromkeys(map(" ".join, [plain, *more]))
    reached = ["start"]
    for origin in reached:
        reached += [s for s in found if s in " ".join(found[origin]).split() and s not in reached]
    return "\n".join(f"{origin}: " + " | ".join(found[origin]) for origin in reached)


def grammar(
    text: str,
    definitions: Mapping[str, Definition | tuple[Definition, Role]],
    vocabulary: Vocabulary,
    *,
    actions: Mapping[str, Action] | None = None,
    predicates: Mapping[str, Predicate] | None = None,
) -> Grammar:
    """A grammar whose turns are `start` and an end token."""
    terminals = {}
    for name, definition in definitions.items():
        what, role = definition if isinstance(definition, tuple) else (definition, Role.MARKUP)
        terminals[name] = Terminal(name, what, role, (predicates or {}).get(name))
    return ended(Grammar(rules(text), terminals, actions or {}), vocabulary)


def ended(part: Grammar, vocabulary: Vocabulary) -> Grammar:
    """The grammar of a part of a turn, as a turn of its own."""
    end = Terminal("END", Special(vocabulary.eos_ids, "<end>"))
    return Grammar(
        (*part.rules, Rule("turn", (part.start, "END"))),
        {**part.terminals, "END": end},
        part.actions,
        start="turn",
        title=part.title,
    )


class TooManyTerminals(Exception):
    """There are fewer letters than the grammar has terminals."""


def lettered(part: Grammar) -> tuple[Grammar, dict[str, str]]:
    """The expanded grammar with a letter for each terminal's text, and the letters: bytes stand for terminals.

    What the attributes ask for, the labels of names, stays.
    """
    readable = expand(part)
    names = [
        name for name, terminal in readable.terminals.items() if not isinstance(terminal.definition, Special)
    ]
    letters = {name: chr(0x21 + i) for i, name in enumerate(names)}
    if len(letters) >= 0x7F - 0x21:
        raise TooManyTerminals
    terminals = dict(readable.terminals)
    for name, letter in letters.items():
        was = readable.terminals[name].definition
        definition: Definition = Literal(letter)
        if isinstance(was, Keys):
            definition = Keys(((letter, was.words[0][1]),))
        elif isinstance(was, Choice):
            definition = Choice(((letter, was.words[0][1]),))
        terminals[name] = replace(readable.terminals[name], definition=definition, role=Role.MARKUP)
    return replace(readable, terminals=terminals), letters


class NoLexer(Lexer):
    """Reads nothing: for what Lark does with the rules alone."""

    def __init__(self, conf: object) -> None:
        pass

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Token]:
        return iter(())


def lark_parser(part: Grammar) -> Lark:
    """Lark's own parser for the printed grammar, conflicts refused."""
    return Lark(part.lark(), parser="lalr", strict=True, start=part.start, lexer=NoLexer)
