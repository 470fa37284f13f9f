"""Finishing within a budget: near the limit a mask keeps the tokens from which the end can still be reached.

    tokens left     200 … 61 │ 60 …        13 12 11 …        1
                    no filter│ only tokens t with cost(after t) < tokens left

What one token can lead to is collected once for each configuration, as parts of its mask with an upper bound
on the cost behind each. While the tokens left are above the highest bound the mask is the plain one, so far
from the limit a step costs one comparison. Below it the parts that are too dear are left out, and a part
whose tokens lead to different states of a terminal (the inside of a string) is taken apart by them.

Costs fall by one along a shortest way (see `larksong.engine.completion.search`), so a budget mask is never
empty while the tokens left are at least the cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.completion.search import CompletionSearch, Node
from larksong.engine.grammar.attributes import Value
from larksong.engine.lexing.trie import Position, TokenSet
from larksong.engine.parsing.masks import Masks
from larksong.engine.parsing.parser import Parser
from larksong.engine.parsing.stack import Configuration, Stack, Thread

# Measured with tracemalloc on coding tools, rounded up, each with all that it holds.
_PATH_BYTES = 700
_APART_BYTES = 3000


class Part(NamedTuple):
    """Tokens of a mask, none of which leads to a configuration that costs more than `highest`.

    `position` is None: all of them lead to `node`. Else they end inside the terminal of the thread `node`,
    read from there on, each perhaps in another state.
    """

    highest: int
    tokens: TokenSet
    node: Node
    position: Position | None


class CostProfile(NamedTuple):
    """All parts of a mask, and the highest of their bounds."""

    highest: int
    parts: tuple[Part, ...]


class BudgetMasks:
    """The filter over the masks of one grammar; for its arguments see `CompletionSearch`."""

    def __init__(
        self, parser: Parser, masks: Masks, root: Position, special: Mapping[str, int], title: str
    ) -> None:
        self._parser = parser
        self._masks = masks
        self._root = root
        self.completion = CompletionSearch(parser, root, special, title)
        self._profiles: dict[Configuration, CostProfile] = {}
        self._crossed: dict[tuple[Stack, Position], list[Part]] = {}
        self._apart: dict[tuple[Node, Position], list[tuple[int, TokenSet]]] = {}

    def size(self) -> int:
        """Roughly how many bytes are kept, beside the masks."""
        return len(self.completion) * _PATH_BYTES + len(self._apart) * _APART_BYTES

    def mask(self, configuration: Configuration, left: int) -> NDArray[np.int32]:
        """The tokens that may follow when at most `left` tokens, the next one included, may be written.

        The plain mask, the same object, where nothing has to be left out. Where the end is out of reach, the
        tokens that lead to the lowest cost.
        """
        profile = self._profile(configuration)
        if left > profile.highest or configuration.end:
            return self._masks.of(configuration)
        sets = [tokens for part in profile.parts for tokens in self._within(part, left - 1)]
        if not any(sets):
            costs = {cost for part in profile.parts for cost, _ in self._by_cost(part)}
            sets = [tokens for part in profile.parts for tokens in self._within(part, min(costs, default=0))]
        return self._masks.union(sets)

    def _within(self, part: Part, limit: int) -> Iterable[TokenSet]:
        """The tokens with a cost of at most `limit`."""
        if part.highest <= limit:
            return (part.tokens,)
        return (tokens for cost, tokens in self._by_cost(part) if cost <= limit)

    def _by_cost(self, part: Part) -> Iterable[tuple[int, TokenSet]]:
        """The tokens of a part by their exact costs."""
        _, tokens, node, position = part
        if position is None:
            return ((self.completion.cost(node), tokens),)
        found = self._apart.get((node, position))
        if found is None:
            assert isinstance(node, Thread)
            stack, bound = node.stack, node.bound
            found = [
                (self.completion.cost(stack.thread(bound, state)), ending)
                for state, ending in bound.automaton.endings(node.state, position)
            ]
            self._apart.setdefault((node, position), found)
        return found

    # -- what one token can lead to (along the lines of Masks._fill)

    def _profile(self, configuration: Configuration) -> CostProfile:
        profile = self._profiles.get(configuration)
        if profile is None:
            parts = tuple(self._parts(configuration.threads, self._root))
            highest = max((part.highest for part in parts), default=0)
            profile = self._profiles.setdefault(configuration, CostProfile(highest, parts))
        return profile

    def _parts(self, threads: Iterable[Thread], position: Position) -> Iterator[Part]:
        at_root = position is self._root
        for thread in threads:
            automaton = thread.bound.automaton
            if automaton.special:
                if at_root:
                    yield from self._special(thread)
                continue
            walk = automaton.walk(thread.state, position)
            if walk.inside:
                yield Part(self.completion.most_inside(thread), walk.inside, thread, position)
            for outcome, crossed in walk.crossings:
                yield from self._behind(thread, outcome, crossed)
            if at_root and not automaton.narrow and automaton.accepts(thread.state):
                yield from self._specials(thread)

    def _behind(self, thread: Thread, outcome: Value, position: Position) -> Iterator[Part]:
        """Behind the terminal of `thread`, which is complete at `position`."""
        after = self._parser.complete(thread.stack, thread.bound, outcome)
        if after is None:
            return
        if position.tokens:
            yield Part(self.completion.most_behind(thread, after), position.tokens, after, None)
        if len(position.nodes):
            key = (after, position)
            parts = self._crossed.get(key)
            if parts is None:
                parts = self._crossed.setdefault(key, list(self._parts(self._parser.begin(after), position)))
            yield from parts

    def _specials(self, thread: Thread) -> Iterator[Part]:
        """Special tokens that may come where the terminal of `thread` may end."""
        automaton = thread.bound.automaton
        stack = self._parser.complete(thread.stack, thread.bound, automaton.outcome(thread.state))
        for begun in self._parser.begin(stack) if stack is not None else ():
            if begun.bound.automaton.special:
                yield from self._special(begun)
            elif not begun.bound.automaton.narrow and begun.bound.automaton.accepts(begun.state):
                yield from self._specials(begun)

    def _special(self, thread: Thread) -> Iterator[Part]:
        for _, node in self.completion.ends(thread):
            yield Part(self.completion.size(node), thread.bound.automaton.special_tokens, node, None)
