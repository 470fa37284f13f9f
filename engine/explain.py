"""Why a token or a text is refused: where its bytes leave the grammar, what was being read, what may come."""

from __future__ import annotations

from dataclasses import dataclass

from larksong.engine.grammar.grammar import Sub
from larksong.engine.grammar.terminals import Keys, Role
from larksong.engine.packed import ids_of
from larksong.engine.parsing.stack import Configuration
from larksong.engine.parsing.token_automaton import TokenAutomaton
from larksong.engine.vocabulary import Vocabulary

NEAREST = 5
"""allowed tokens that are named"""
_MAX_LIVE = 32


@dataclass(frozen=True)
class LiveTerminal:
    """A terminal that is being read: its name in the grammar, its role, its definition as Lark text."""

    name: str
    role: Role
    text: str


@dataclass(frozen=True)
class Explanation:
    """What the engine knows of a token (or text) at one place.

    `offset`: how many of its bytes are still in the grammar (all of them where it is allowed). `live`: the
    terminals that are being read there, at most 32. `nearest`: allowed tokens in the place of this one, those
    first that begin like it.
    """

    allowed: bool
    offset: int
    live: tuple[LiveTerminal, ...]
    nearest: tuple[int, ...]


def explain(automaton: TokenAutomaton, configuration: Configuration, piece: int | bytes) -> Explanation:
    """Explains a token id, or bytes of no particular token, at a configuration."""
    tokens = automaton.vocabulary.tokens
    data = piece
    if isinstance(data, int):
        data = tokens[data] if 0 <= data < len(tokens) else b""
    special = isinstance(piece, int) and not data
    offset, here = read(automaton, configuration, data)
    if isinstance(piece, int) and configuration.end:
        allowed = piece in automaton.vocabulary.eos_ids
    elif isinstance(piece, int) and special:
        edge = automaton.edge(configuration, piece)
        allowed = edge is not None
        here = here if edge is None else edge.target
    else:
        allowed = offset == len(data)
    return Explanation(allowed, offset, live(here), nearest(automaton, configuration, data))


def read(automaton: TokenAutomaton, configuration: Configuration, data: bytes) -> tuple[int, Configuration]:
    """How many bytes of `data` can be read, and where they lead. Nothing is kept of it."""
    for at in range(len(data)):
        edge = automaton.transitions.step(configuration, data[at : at + 1])
        if edge is None:
            return at, configuration
        configuration = edge.target
    return len(data), configuration


def live(configuration: Configuration) -> tuple[LiveTerminal, ...]:
    """The terminals that are being read, each once, by name."""
    found: dict[LiveTerminal, None] = {}
    for thread in configuration.threads:
        terminal = thread.bound.terminal
        definition = terminal.definition
        text = thread.bound.automaton.definition.lark() if isinstance(definition, Keys) else None
        if text is None and not isinstance(definition, Sub | Keys):
            text = definition.lark()
        found[LiveTerminal(terminal.name, terminal.role, text or "")] = None
    return tuple(sorted(found, key=lambda each: (each.name, each.text))[:_MAX_LIVE])


def nearest(
    automaton: TokenAutomaton, configuration: Configuration, data: bytes, count: int = NEAREST
) -> tuple[int, ...]:
    """Allowed tokens: those first that share the longest beginning with `data`, then the shortest of them."""
    mask = automaton.end_mask if configuration.end else automaton.mask(configuration)
    tokens = automaton.vocabulary.tokens

    def distance(token: int) -> tuple[int, int, int]:
        text = tokens[token] if token < len(tokens) else b""
        return -_alike(text, data), abs(len(text) - len(data)), token

    return tuple(sorted(ids_of(mask), key=distance)[:count])


def _alike(one: bytes, other: bytes) -> int:
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return min(len(one), len(other))


def byte_vocabulary(vocabulary: Vocabulary) -> tuple[Vocabulary, dict[int, int]]:
    """A vocabulary of the 256 bytes with the same markers, and its id for each of their ids."""
    names = sorted(vocabulary.special, key=vocabulary.special.__getitem__)
    special = {name: 256 + i for i, name in enumerate(names)}
    renamed = {vocabulary.special[name]: special[name] for name in names}
    twin = Vocabulary(
        tokens=(*(bytes([byte]) for byte in range(256)), *[b""] * len(special)),
        special=special,
        eos_ids=frozenset(renamed[token] for token in vocabulary.eos_ids if token in renamed),
        width=256 + len(special),
    )
    return twin, renamed
