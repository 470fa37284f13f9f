"""Where the tokens that stay inside a terminal leave its automaton.

Masks do not ask: they need to know only that a token may come. How dear it is to finish behind it depends on
the state: in the middle of an escape, or with half a marker written, it is another distance to the end.

One sweep through the vocabulary sorts its tokens by state; for text it is that of plain text, since a token
ends in a node of the markers' automaton only if its last bytes begin a marker, and those tokens are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from larksong.engine.automata.dfa import Counted, Words
from larksong.engine.automata.text_until import StopText
from larksong.engine.lexing.sweep import Sweeper, groups
from larksong.engine.lexing.terminal_automaton import TerminalAutomaton
from larksong.engine.lexing.trie import Position, TokenSet, Trie, clear
from larksong.engine.packed import allows, unpack

Endings = list[tuple[int, TokenSet]]
"""End states, each with the tokens that lead there."""

_KNOWN: WeakKeyDictionary[TerminalAutomaton, dict[int, Endings]] = WeakKeyDictionary()


def endings(automaton: TerminalAutomaton, state: int, position: Position) -> Endings:
    """The tokens of `position` that end in the terminal when they are read from `state`, by end state.

    At least those `inside` a `TerminalAutomaton.walk`; perhaps also those that end exactly where it is
    complete.
    """
    if position is not position.trie.root:
        return list(_endings(automaton, state, position))
    known = _KNOWN.setdefault(automaton, {})
    found = known.get(state)
    if found is None:
        found = known.setdefault(state, list(_endings(automaton, state, position)))
    return found


def _endings(automaton: TerminalAutomaton, state: int, position: Position) -> Iterator[tuple[int, TokenSet]]:
    dfa, text = automaton.dfa, automaton.text
    if automaton.narrow and automaton.words is not None:
        yield from _in_words(automaton.words, state, position)
    elif isinstance(dfa, Counted) and automaton._basis is not None:
        base, count = dfa.pair(state)
        profile = automaton._basis.profile(dfa, base, position)
        stayed = [(end, more, _without(piece, profile.moved)) for end, more, piece in profile.inside]
        for end, more, piece in (*stayed, *profile.extra):
            reached = dfa.bound(end, count + more)
            if reached >= 0:
                yield dfa.state(end, reached), piece
    elif (
        text is not None
        and automaton._basis is not None
        and state < text.nodes
        and text.text_state(state) == 0
    ):
        inside = automaton.walk(state, position).inside
        plain = endings(automaton._basis, 0, position)
        yield from _in_text(text, state, position, plain, inside)
    else:
        sweep = Sweeper(dfa).sweep(state, position)
        complete = ((exit.state, 0, exit.ids) for exit in sweep.exits if len(exit.ids))
        for end, _, ids in (*groups(sweep), *complete):
            yield end, TokenSet.of(ids, position.trie.words)


def _in_words(words: Words, state: int, position: Position) -> Iterator[tuple[int, TokenSet]]:
    todo = [(state, position)]
    for node, at in todo:
        for byte, following in words.edges[node].items():
            child = at.child(byte)
            if child is not None:
                if len(child.ids):
                    yield following, child.piece
                if len(child.nodes) and following not in words.labels:
                    todo.append((following, child))


def _in_text(
    text: StopText, state: int, position: Position, plain: Endings, inside: TokenSet
) -> Iterator[tuple[int, TokenSet]]:
    """`plain`: the endings of plain text, whose state 0 is between characters; `inside`: what is wanted."""
    trie = position.trie
    allowed = _bits(inside, trie)
    node_of = np.zeros(trie.words * 32, np.int32)
    # A longer suffix takes the place of a shorter one.
    for node, ids in _suffixes(text, trie):
        node_of[ids] = node
    for node in reversed(text.chain(state)):
        if node:
            for reached, at in _along(text, node, position):
                node_of[at.ids] = reached
    for end, piece in plain:
        ids = np.flatnonzero(_bits(piece, trie) & allowed)
        nodes = node_of[ids]
        for node in np.unique(nodes).tolist():
            # Within a character that begins no marker there is a state for each kind.
            yield node or (text.nodes + end - 1 if end else 0), TokenSet.of(ids[nodes == node], trie.words)


def _suffixes(text: StopText, trie: Trie) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The tokens whose last bytes lead from the root to a node, for each node, shorter ways first."""
    level = {child: np.flatnonzero(trie.byte == byte) for byte, child in text.edges[0].items()}
    while level:
        below: dict[int, NDArray[np.int64]] = {}
        for node, places in level.items():
            yield node, trie.tokens(places)[0]
            children = trie.children(places)[0]
            for byte, child in text.edges[node].items():
                following = children[trie.byte[children] == byte]
                if len(following):
                    below[child] = following
        level = below


def _along(text: StopText, node: int, position: Position) -> Iterator[tuple[int, Position]]:
    """The nodes that lie behind `node`, and the tokens that lead to them."""
    todo = [(node, position)]
    for here, at in todo:
        for byte, child in text.edges[here].items():
            following = at.child(byte)
            if following is not None:
                yield child, following
                todo.append((child, following))


def _without(piece: TokenSet, others: TokenSet) -> TokenSet:
    if piece.words is None:
        words = others.words
        kept = [i for i in piece.ids if words is None or not allows(words, i)]
        return TokenSet([i for i in kept if i not in others.ids], None)
    words = piece.words.copy()
    clear(words, others)
    return TokenSet([], words)


def _bits(piece: TokenSet, trie: Trie) -> NDArray[np.bool_]:
    bits = np.zeros(trie.words * 32, np.bool_)
    if piece.words is not None:
        bits = unpack(piece.words)
    bits[piece.ids] = True
    return bits
