"""Where the tokens that stay inside a terminal leave its automaton.

Masks do not ask: they need to know only that a token may come. How dear it is to finish behind it depends on
the state: in the middle of an escape, or with half a marker written, it is another distance to the end.

One sweep through the vocabulary sorts its tokens by state; for text it is that of plain text, since a token
ends in a node of the markers' automaton only if its last bytes begin a marker, and those tokens are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from larksong.engine.automata.dfa import Counted, Words
from larksong.engine.automata.text_until import AhoCorasick
from larksong.engine.lexing.sweep import Sweep, groups
from larksong.engine.lexing.trie import Position, TokenSet, Trie, clear
from larksong.engine.lexing.walks import LengthProfile
from larksong.engine.packed import allows, unpack

Ending = tuple[int, TokenSet]
"""An end state, with the tokens that lead there."""


def of_words(words: Words, state: int, position: Position) -> Iterator[Ending]:
    """A finite set of strings: followed along both tries."""
    todo = [(state, position)]
    for node, at in todo:
        for byte, following in words.edges[node].items():
            child = at.child(byte)
            if child is not None:
                if len(child.ids):
                    yield following, child.tokens
                if len(child.nodes) and following not in words.labels:
                    todo.append((following, child))


def of_profile(profile: LengthProfile, dfa: Counted, count: int) -> Iterator[Ending]:
    """Near a bound, after `count` characters: what of the `profile` of a state the bounds allow."""
    stayed = [(end, more, _without(tokens, profile.moved)) for end, more, tokens in profile.inside]
    for end, more, tokens in (*stayed, *profile.extra):
        reached = dfa.within(end, count + more)
        if reached >= 0:
            yield dfa.state(end, reached), tokens


def of_sweep(sweep: Sweep, trie: Trie) -> Iterator[Ending]:
    """What a sweep found."""
    complete = ((exit.state, 0, exit.ids) for exit in sweep.exits if len(exit.ids))
    for end, _, ids in (*groups(sweep), *complete):
        yield end, TokenSet.of(ids, trie.words)


def of_text(
    text: AhoCorasick, plain: Iterable[Ending], inside: TokenSet, state: int, position: Position
) -> Iterator[Ending]:
    """Text with stops, between characters: the tokens `inside`, by the endings of `plain` text."""
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
    for end, tokens in plain:
        ids = np.flatnonzero(_bits(tokens, trie) & allowed)
        nodes = node_of[ids]
        for node in np.unique(nodes).tolist():
            # Within a character that begins no marker there is a state for each kind.
            yield node or (text.nodes + end - 1 if end else 0), TokenSet.of(ids[nodes == node], trie.words)


def _suffixes(text: AhoCorasick, trie: Trie) -> Iterator[tuple[int, NDArray[np.int64]]]:
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


def _along(text: AhoCorasick, node: int, position: Position) -> Iterator[tuple[int, Position]]:
    """The nodes that lie behind `node`, and the tokens that lead to them."""
    todo = [(node, position)]
    for here, at in todo:
        for byte, child in text.edges[here].items():
            following = at.child(byte)
            if following is not None:
                yield child, following
                todo.append((child, following))


def _without(tokens: TokenSet, others: TokenSet) -> TokenSet:
    if tokens.words is None:
        words = others.words
        kept = [i for i in tokens.ids if words is None or not allows(words, i)]
        return TokenSet([i for i in kept if i not in others.ids], None)
    words = tokens.words.copy()
    clear(words, others)
    return TokenSet([], words)


def _bits(tokens: TokenSet, trie: Trie) -> NDArray[np.bool_]:
    bits = np.zeros(trie.words * 32, np.bool_)
    if tokens.words is not None:
        bits = unpack(tokens.words)
    bits[tokens.ids] = True
    return bits
