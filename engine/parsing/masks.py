"""Masks: the tokens that a configuration allows, composed of walks and what follows behind their ends."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from larksong.engine.grammar.attributes import Value
from larksong.engine.lexing.trie import Position, TokenSet, Trie, union
from larksong.engine.parsing.parser import Parser
from larksong.engine.parsing.stack import CompiledGrammar, Configuration, Fill, Stack, Thread
from larksong.engine.parsing.tables import State

log = logging.getLogger(__name__)


class Masks:
    """Makes the masks of one automaton and keeps them: the same object for the same set of tokens.

    `end`: the tokens that end a sequence. `title`: the grammar's, for the log.
    """

    def __init__(self, parser: Parser, trie: Trie, end: TokenSet, title: str) -> None:
        self._parser = parser
        self._trie = trie
        self._title = title
        self._known: dict[frozenset[TokenSet], NDArray[np.int32]] = {}
        self._distinct: dict[bytes, NDArray[np.int32]] = {}
        """by their own words, which they share"""
        self.end = self.union([end])

    def size(self) -> int:
        """The bytes that the masks take."""
        return len(self._distinct) * self._trie.words * 4

    def of(self, configuration: Configuration) -> NDArray[np.int32]:
        """The tokens that may follow: packed words, read-only, the same object for the same set."""
        mask = configuration.mask
        if mask is None:
            mask = self.end
            if not configuration.end:
                sets: list[TokenSet] = []
                self._fill(configuration.threads, self._trie.root, sets)
                if sets:
                    mask = self.union(sets)
                else:
                    log.error("dead end in the grammar %r: the sequence ends", self._title)
            configuration.mask = mask
        return mask

    def union(self, sets: Sequence[TokenSet]) -> NDArray[np.int32]:
        """The mask of several sets of tokens."""
        # The same sets make the same mask: most masks are found without making their words again.
        key = frozenset(sets)
        mask = self._known.get(key)
        if mask is None:
            words = union(key, self._trie.words).tobytes()
            mask = self._distinct.setdefault(words, np.frombuffer(words, "<i4"))
            mask = self._known.setdefault(key, mask)
        return mask

    def _fill(self, threads: Iterable[Thread], position: Position, sets: list[TokenSet]) -> None:
        """Collect the tokens of `position` that the threads can read."""
        at_root = position is self._trie.root
        for thread in threads:
            automaton = thread.bound.automaton
            if automaton.special:
                if at_root:
                    sets.append(automaton.special_tokens)
                continue
            walk = automaton.walk(thread.state, position)
            if walk.inside.some:
                sets.append(walk.inside)
            for outcome, crossed in walk.crossings:
                sets += self._after(thread, outcome, crossed)
            if at_root and not automaton.narrow and automaton.accepts(thread.state):
                sets += self._specials(thread)

    def _specials(self, thread: Thread) -> list[TokenSet]:
        """Special tokens that may come where the terminal of `thread` may end."""
        automaton = thread.bound.automaton
        stack = self._parser.complete(thread.stack, thread.bound, automaton.outcome(thread.state))
        found: list[TokenSet] = []
        for begun in self._parser.begin(stack) if stack is not None else ():
            automaton = begun.bound.automaton
            if automaton.special:
                found.append(automaton.special_tokens)
            elif not automaton.narrow and automaton.accepts(begun.state):
                found += self._specials(begun)
        return found

    def _after(self, thread: Thread, outcome: Value, position: Position) -> list[TokenSet]:
        """What may follow the terminal of `thread`, which is complete at `position`."""
        if not len(position.nodes):
            return [position.tokens] if position.tokens.some else []
        bound = thread.bound
        compiled = thread.stack.compiled
        following = thread.stack.state.actions.get(bound.number)
        if bound.automaton.text is None and isinstance(following, State) and compiled.is_plain(following):
            fill = self._plain_fill(compiled, following, position)
            if not fill.tails:
                return fill.sets
        stack = self._parser.complete(thread.stack, bound, outcome)
        return self._fill_stack(stack, position) if stack is not None else []

    def _fill_stack(self, stack: Stack, position: Position) -> list[TokenSet]:
        """The tokens of `position` that can be read from `stack` on."""
        known = stack.fills.get(position)
        if known is None:
            if stack.compiled.is_plain(stack.state):
                fill = self._plain_fill(stack.compiled, stack.state, position)
                known = list(fill.sets)
                for path, behind in fill.tails:
                    reached: Stack | None = stack
                    for number, label in path:
                        reached = self._parser.shift(reached, number, label) if reached is not None else None
                    known += self._fill_stack(reached, behind) if reached is not None else []
            else:
                known = [position.tokens]
                self._fill(self._parser.begin(stack), position, known)
            known = stack.fills.setdefault(position, [tokens for tokens in known if tokens.some])
        return known

    def _plain_fill(self, compiled: CompiledGrammar, state: State, position: Position) -> Fill:
        """What `_fill_stack` finds for every stack in a plain state: after a name mostly all of it."""
        known = compiled.fills.get((state, position))
        if known is None:
            sets = [position.tokens]
            tails: list[tuple[tuple[tuple[int, Value], ...], Position]] = []
            for number, following in state.actions.items():
                (bound,) = self._parser.bind(compiled, number, compiled.terminals[number])
                walk = bound.automaton.walk(bound.automaton.start, position)
                sets.append(walk.inside)
                for outcome, crossed in walk.crossings:
                    if not len(crossed.nodes):
                        sets.append(crossed.tokens)
                    elif isinstance(following, State) and compiled.is_plain(following):
                        further = self._plain_fill(compiled, following, crossed)
                        sets += further.sets
                        tails += [(((number, outcome), *path), behind) for path, behind in further.tails]
                    else:
                        tails.append((((number, outcome),), crossed))
            known = Fill([tokens for tokens in sets if tokens.some], tails)
            compiled.fills[state, position] = known
        return known
