"""Finishing within a budget: near the limit a mask keeps the tokens from which the end can still be reached.

    ⟨tokens left⟩   40 … 13   12     11     10   …   2     1
                    no filter │← the band: only tokens t with cost(after t) ≤ left - 1 →│ end

What one token can lead to is collected once for each configuration, as parts of its mask with an upper bound
on the cost behind them. While the tokens left are above the highest bound the mask is the plain one, so far
from the limit a step costs one comparison. Below it, parts that are too dear are left out, and a part whose
tokens lead to different states of a terminal (the inside of a string) is taken apart by them.

Costs fall by one along a shortest way (see `larksong.engine.closing`), so a mask in the band is never empty
while the tokens left are at least the cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.attributes import Value
from larksong.engine.closing import UNREACHABLE, Closing
from larksong.engine.shortest import endings, farthest, shortest_ends
from larksong.engine.stack import Bound, Configuration, Stack, Thread
from larksong.engine.trie import Piece, Position

if TYPE_CHECKING:
    from larksong.engine.automaton import Automaton


class Part(NamedTuple):
    """Tokens of a mask. None of them leads to a configuration that costs more than `highest`.

    `thread`: they end inside its terminal, read from `position` on, each perhaps in another state; None where
    all of them cost the same.
    """

    highest: int
    piece: Piece
    thread: Thread | None
    position: Position


class Profile(NamedTuple):
    """What the tokens of a mask may cost: all parts, and the highest of their bounds."""

    highest: int
    parts: tuple[Part, ...]


class Band:
    """The filter over the masks of one automaton."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._root: Position = automaton._trie.root
        self.closing = Closing(automaton)
        self._profiles: dict[Configuration, Profile] = {}
        self._crossed: dict[tuple[Stack, Position], list[Part]] = {}
        self._taken_apart: dict[tuple[Thread, Position], list[tuple[int, Piece]]] = {}

    def mask(self, configuration: Configuration, left: int) -> NDArray[np.int32]:
        """The tokens that may follow when at most `left` tokens, the next one included, may be written.

        The plain mask, the same object, where nothing has to be left out. Where the end is out of reach, the
        tokens that lead to the lowest cost.
        """
        profile = self._profile(configuration)
        if left > profile.highest or configuration.end:
            return self._automaton.mask(configuration)
        pieces = self._within(profile, left - 1)
        if not any(pieces):
            lowest = min(cost for part in profile.parts for cost, _ in self._apart(part))
            pieces = self._within(profile, lowest)
        return self._automaton._union(pieces)

    def _within(self, profile: Profile, limit: int) -> list[Piece]:
        """The tokens with a cost of at most `limit`."""
        pieces: list[Piece] = []
        for part in profile.parts:
            if part.highest <= limit:
                pieces.append(part.piece)
            else:
                pieces += [piece for cost, piece in self._apart(part) if cost <= limit]
        return pieces

    def _apart(self, part: Part) -> list[tuple[int, Piece]]:
        """The tokens of a part by their exact costs."""
        thread = part.thread
        if thread is None:
            return [(part.highest, part.piece)]
        key = (thread, part.position)
        found = self._taken_apart.get(key)
        if found is None:
            stack, bound = thread.stack, thread.bound
            found = [
                (self.closing.cost(stack.thread(bound, state)), piece)
                for state, piece in endings(bound.lexeme, thread.state, part.position)
            ]
            self._taken_apart.setdefault(key, found)
        return found

    # -- what one token can lead to (along the lines of Automaton._fill)

    def _profile(self, configuration: Configuration) -> Profile:
        profile = self._profiles.get(configuration)
        if profile is None:
            parts = self._parts(configuration.threads, self._root)
            highest = max((part.highest for part in parts), default=0)
            profile = self._profiles.setdefault(configuration, Profile(highest, tuple(parts)))
        return profile

    def _parts(self, threads: Iterable[Thread], position: Position) -> list[Part]:
        parts: list[Part] = []
        at_root = position is self._root
        for thread in threads:
            lexeme = thread.bound.lexeme
            if lexeme.special:
                if at_root:
                    parts.append(self._special(thread))
                continue
            walk = lexeme.walk(thread.state, position)
            if walk.inside:
                parts.append(Part(self._highest_inside(thread), walk.inside, thread, position))
            for outcome, crossed in walk.crossings:
                parts += self._behind(thread.bound, thread.stack, outcome, crossed)
            if at_root and not lexeme.narrow and lexeme.accepts(thread.state):
                parts += self._specials(thread)
        return parts

    def _special(self, thread: Thread) -> Part:
        (lead,) = self.closing.leads(thread)[:1]
        path = self.closing.path(lead[1])
        cost = path.cost if path is not None else UNREACHABLE
        return Part(cost, thread.bound.lexeme.special_piece, None, self._root)

    def _specials(self, thread: Thread) -> list[Part]:
        """Special tokens that may come where the terminal of `thread` may end."""
        lexeme = thread.bound.lexeme
        stack = self.closing.complete(thread.bound, thread.stack, lexeme.outcome(thread.state))
        found: list[Part] = []
        for begun in self._fresh(stack):
            if begun.bound.lexeme.special:
                found.append(self._special(begun))
            elif not begun.bound.lexeme.narrow and begun.bound.lexeme.accepts(begun.state):
                found += self._specials(begun)
        return found

    def _behind(self, bound: Bound, stack: Stack, outcome: Value, position: Position) -> list[Part]:
        """Behind a terminal that is complete at `position`."""
        after = self.closing.complete(bound, stack, outcome)
        if after is None:
            return []
        key = (after, position)
        parts = self._crossed.get(key)
        if parts is None:
            parts = []
            if position.piece:
                parts.append(Part(self.closing.after(after), position.piece, None, position))
            if len(position.nodes):
                parts += self._parts(self._fresh(after), position)
            self._crossed.setdefault(key, parts)
        return parts

    def _fresh(self, stack: Stack | None) -> list[Thread]:
        return [thread for thread, _ in self._automaton._fresh(stack)] if stack is not None else []

    def _highest_inside(self, thread: Thread) -> int:
        """An upper bound on the cost in any state of the terminal that can be reached from here."""
        lexeme = thread.bound.lexeme
        paths = [self.closing.path(node) for _, node in self.closing.leads(thread)]
        behind = max((path.cost if path is not None else UNREACHABLE for path in paths), default=0)
        if lexeme.words is not None:
            longest: int | None = max(len(end.text) for end in shortest_ends(lexeme, thread.state))
        else:
            longest = farthest(lexeme)
        return behind + longest if longest is not None else UNREACHABLE
