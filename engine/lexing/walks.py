"""Walks: how the tokens of a trie position read one terminal.

A `Walk` is what a mask needs to know of a terminal in one state: the tokens that end inside it, and the
merged positions from which the rest of a token belongs to whatever follows. It depends on the terminal's
definition and the vocabulary alone, so all requests share it. A sweep through the whole vocabulary takes
milliseconds, so most walks are made from another one: texts differ from plain text only along their stops,
names that are not declared differ from any string only along the declared ones, bounded strings differ from
unbounded ones only by the number of characters.

Tokens that go on behind a crossing are "bridge tokens" in DOMINO and "context-dependent tokens" in xgrammar:
whether they may come depends on the stack. Those inside are "context-independent" there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from larksong.engine.automata.dfa import Counted, StringsExcept, Words
from larksong.engine.automata.text_until import AhoCorasick
from larksong.engine.lexing.interior import Ints
from larksong.engine.lexing.sweep import Exit, Sweep, groups
from larksong.engine.lexing.trie import Position, TokenSet, Trie, clear, union
from larksong.engine.packed import set_bits

Crossings = tuple[tuple[Hashable, Position], ...]
Outcome = Callable[[int], Hashable]


class Walk(NamedTuple):
    """`inside`: tokens that end within the terminal. `crossings`: (outcome, position) of its ends."""

    inside: TokenSet
    crossings: Crossings


def of_sweep(sweep: Sweep, trie: Trie, outcome: Outcome) -> Walk:
    """The walk that a sweep found."""
    ids = np.concatenate([sweep.ids, trie.tokens_below(sweep.nodes)])
    return Walk(TokenSet.of(ids, trie.words), _crossings(sweep.exits, trie, outcome))


def _crossings(exits: Iterable[Exit], trie: Trie, outcome: Outcome) -> Crossings:
    """Exits with the same outcome are one position: what may follow is explored once for all of them."""
    by_outcome: dict[Hashable, list[Exit]] = {}
    for each in exits:
        by_outcome.setdefault(outcome(each.state), []).append(each)
    return tuple(
        (
            result,
            trie.position(
                np.sort(np.concatenate([each.nodes for each in group])),
                np.sort(np.concatenate([each.ids for each in group])),
            ),
        )
        for result, group in by_outcome.items()
    )


def of_words(words: Words, state: int, position: Position) -> Walk:
    """A finite set of strings, none the beginning of another: followed along both tries."""
    inside: list[TokenSet] = []
    crossings: list[tuple[Hashable, Position]] = []
    todo = [(state, position)]
    for node, at in todo:
        for byte, following in words.edges[node].items():
            child = at.child(byte)
            if child is None:
                continue
            if following in words.labels and len(child.nodes):
                crossings.append((words.labels[following], child))
                continue
            # Where no token goes on, nothing depends on what follows.
            inside.append(child.tokens)
            if len(child.nodes):
                todo.append((following, child))
    if any(tokens.words is not None for tokens in inside):
        return Walk(TokenSet([], union(inside, position.trie.words)), tuple(crossings))
    return Walk(TokenSet([i for tokens in inside for i in tokens.ids], None), tuple(crossings))


def of_other_strings(strings: StringsExcept, any_string: Walk, state: int, position: Position) -> Walk:
    """Strings other than some: the walk of any string, less the ends of those."""
    ends = []
    todo = [(state, position)] if state < strings.nodes else []
    for node, at in todo:
        for byte, following in strings.words.edges[node].items():
            child = at.child(byte)
            if child is not None and following in strings.words.labels:
                ends.append(child)
            elif child is not None:
                todo.append((following, child))
    if not ends:
        return any_string
    ((outcome, all_ends),) = any_string.crossings
    nodes = _without(all_ends.nodes, np.concatenate([end.nodes for end in ends]))
    ids = _without(all_ends.ids, np.concatenate([end.ids for end in ends]))
    return Walk(any_string.inside, ((outcome, position.trie.position(nodes, ids)),))


def _without(all_sorted: Ints, some: Ints) -> Ints:
    """The members of a sorted array other than `some` of them."""
    kept = np.ones(len(all_sorted), bool)
    kept[np.searchsorted(all_sorted, some)] = False
    return all_sorted[kept]


class Reached(NamedTuple):
    """A node of a text's stops that tokens reach by the bytes of `path`, and where they then are."""

    node: int
    path: bytes
    at: Position


def _along_stops(text: AhoCorasick, beginnings: Iterable[int], position: Position) -> Iterator[Reached]:
    """What tokens reach along the stops whose `beginnings` are held back."""
    for begun in beginnings:
        todo = [Reached(begun, b"", position)]
        for reached in todo:
            for byte, child in text.edges[reached.node].items():
                following = reached.at.child(byte)
                if following is not None:
                    further = Reached(child, reached.path + bytes((byte,)), following)
                    yield further
                    if child not in text.refused and child not in text.stop:
                        todo.append(further)


def of_text(text: AhoCorasick, plain: Walk, state: int, position: Position) -> Walk:
    """Text with stops: plain text's walk, less the tokens that run into a stop.

    Only for vocabularies without a token that has a whole stop inside (see `Trie.inside_a_token`).
    """
    ends: dict[bytes, Reached] = {}
    for reached in _along_stops(text, text.chain(state), position):
        if reached.node in text.refused or reached.node in text.stop:
            ends.setdefault(reached.path, reached)
    if not ends:
        return plain
    words = union([plain.inside], position.trie.words)
    crossings: list[tuple[Hashable, Position]] = []
    for path, (node, _, at) in ends.items():
        if any(path != shorter and path.startswith(shorter) for shorter in ends):
            continue  # such a token has met another stop before
        clear(words, at.below)
        if node not in text.refused:
            crossings.append((text.stop[node], at))
    return Walk(TokenSet([], words), tuple(crossings))


Parts = Sequence[tuple[int, int, TokenSet]]
"""Tokens by end state and number of characters."""


class LengthProfile(NamedTuple):
    """A walk taken apart by number of characters: the tokens `inside`, and the exits.

    `moved` tokens do not end where `inside` says: `extra` has those of them that end inside.
    `walks`: what was put together again for some bounds, by the parts that they allow.
    """

    inside: Parts
    exits: Sequence[Exit]
    moved: TokenSet
    extra: Parts
    walks: dict[tuple[tuple[int, ...], ...], Walk]


def profile_of(sweep: Sweep, trie: Trie) -> LengthProfile:
    """The profile that a sweep with characters counted found."""
    inside = [(end, count, TokenSet.of(ids, trie.words)) for end, count, ids in groups(sweep)]
    return LengthProfile(inside, sweep.exits, TokenSet([], None), (), {})


def held_profile(text: AhoCorasick, between: LengthProfile, state: int, position: Position) -> LengthProfile:
    """The profile of a text in a state that holds bytes back, from that `between` two characters.

    In Aho-Corasick's automaton the held bytes have no effect on where a token ends that does not continue
    them. So only the tokens that go on along a stop that has begun end elsewhere, or in a stop.
    """
    moved: list[TokenSet] = []
    extra: list[tuple[int, int, TokenSet]] = []
    exits = list(between.exits)
    seen: set[int] = set()
    for node, path, at in _along_stops(text, [node for node in text.chain(state) if node], position):
        characters = sum(byte & 0xC0 != 0x80 for byte in path)
        if node in text.refused:
            moved.append(at.below)
        elif node in text.stop:
            moved.append(at.below)
            exits.append(Exit(node, characters, at.nodes, at.ids))
        else:
            # The longest beginnings come first, and they tell where a token ends.
            tokens = [token for token in at.ids.tolist() if token not in seen]
            seen.update(tokens)
            moved.append(at.tokens)
            extra.append((node, characters, TokenSet(tokens, None)))
    words = union(moved, position.trie.words)
    return LengthProfile(between.inside, exits, TokenSet([], words), extra, {})


def of_profile(profile: LengthProfile, dfa: Counted, count: int, trie: Trie, outcome: Outcome) -> Walk:
    """The walk near a bound, after `count` characters: what of `profile` the bounds allow."""

    def allowed(parts: Parts) -> tuple[int, ...]:
        return tuple(i for i, (end, more, _) in enumerate(parts) if dfa.within(end, count + more) >= 0)

    inside, extra = allowed(profile.inside), allowed(profile.extra)
    exits = tuple(
        i for i, each in enumerate(profile.exits) if dfa.within(each.state, count + each.characters) >= 0
    )
    key = (inside, extra, exits)
    walk = profile.walks.get(key)
    if walk is None:
        words = union([profile.inside[i][2] for i in inside], trie.words)
        clear(words, profile.moved)
        set_bits(words, [token for i in extra for token in profile.extra[i][2].ids])
        tokens = TokenSet([], words if words.any() else None)
        walk = Walk(tokens, _crossings([profile.exits[i] for i in exits], trie, outcome))
        walk = profile.walks.setdefault(key, walk)
    return walk
