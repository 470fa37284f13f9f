"""Walks that follow from a walk over a simpler terminal: no second pass over the vocabulary.

A string of bounded length, a name that is none of some words: nearly all their masks differ from those of the
plain string in a few tokens. What decides is kept with the plain string's walk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.dfa import JSON_BODY, JSON_END, Words
from larksong.engine.trie import Position, Trie

Numbers = NDArray[np.int64]


class Lengths(NamedTuple):
    """A walk over plain JSON strings with the characters that begin on the way.

    `inside`: tokens that end within the string. `onward`: nodes behind its closing quote; `ended`: tokens that
    end with it.
    """

    inside: Numbers
    inside_counts: Numbers
    onward: Numbers
    onward_counts: Numbers
    ended: Numbers
    ended_counts: Numbers


def json_lengths(
    rows: Callable[[Numbers], NDArray[np.int32]], trie: Trie, state: int, position: Position
) -> Lengths:
    """`rows` gives the transition table of plain JSON strings, complete for some states."""
    nodes = position.nodes
    states = np.full(len(nodes), state, np.int64)
    counts = np.zeros(len(nodes), np.int64)
    found: list[tuple[Numbers, ...]] = []
    none = np.zeros(0, np.int64)
    while len(nodes):
        following = rows(states)[states, trie.byte[nodes]].astype(np.int64)
        counts = counts + ((states == JSON_BODY) & (following != JSON_END))
        alive = following >= 0
        nodes, following, counts = nodes[alive], following[alive], counts[alive]
        closed = following == JSON_END
        behind, owner = trie.children(nodes[closed])
        tokens, token_owner = trie.tokens(nodes[closed])
        here = counts[closed]
        nodes, following, counts = nodes[~closed], following[~closed], counts[~closed]
        inside, inside_owner = trie.tokens(nodes)
        found.append((inside, counts[inside_owner], behind, here[owner], tokens, here[token_owner]))
        nodes, owner = trie.children(nodes)
        states, counts = following[owner], counts[owner]
    if not found:
        return Lengths(none, none, none, none, none, none)
    return Lengths(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def without_words(words: Words, node: int, position: Position, crossed: Position) -> Position:
    """`crossed`, where texts from `position` on have ended, without the ends of the words below `node`."""
    reached: list[Position] = []
    pending = [(node, position)]
    while pending:
        here, at = pending.pop()
        for byte, child in words.edges[here].items():
            following = at.child(byte)
            if following is None:
                continue
            if child in words.labels:
                reached.append(following)
            else:
                pending.append((child, following))
    if not reached:
        return crossed
    nodes = np.concatenate([each.nodes for each in reached])
    ids = np.concatenate([each.ids for each in reached])
    kept_nodes, kept_ids = ~np.isin(crossed.nodes, nodes), ~np.isin(crossed.ids, ids)
    return Position(crossed.trie, crossed.nodes[kept_nodes], crossed.ids[kept_ids])
