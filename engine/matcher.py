"""The matcher: the cursor of one sequence over the configurations of an automaton."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from larksong.engine.completion.budget_masks import BudgetMasks
from larksong.engine.events import Content, Events, Reasoning
from larksong.engine.explain import Explanation, explain
from larksong.engine.forced import ForcedTokens
from larksong.engine.grammar.terminals import Role
from larksong.engine.parsing.ambiguity import Readings, choose
from larksong.engine.parsing.stack import Branch, Configuration
from larksong.engine.parsing.token_automaton import TokenAutomaton

log = logging.getLogger(__name__)


class Matcher:
    """Constrains one sequence and reads it: `mask()` before a token is sampled, `advance()` after.

    Configurations are immutable, so going back is an index (`rollback`) and a copy costs nothing (`fork`).
    Inside a decoding loop nothing raises: a refused token or a dead end is kept in `fault`, and from then on
    only an end-of-sequence token is allowed.
    """

    def __init__(self, automaton: TokenAutomaton, budget_masks: BudgetMasks, forced: ForcedTokens) -> None:
        self._automaton = automaton
        self._budget_masks = budget_masks
        self._forced = forced
        self._tokens: list[int] = []
        self._trail: list[Configuration] = [automaton.start]
        self._open: dict[int, Readings] = {}
        """the readings of a value whose type is open, by place in the trail"""
        self._fault: tuple[int, str] | None = None
        """the length of the trail at which a token was refused, and why"""

    @property
    def fault(self) -> str | None:
        """Why the sequence was ended by the matcher, or None."""
        return self._fault[1] if self._fault is not None else None

    @property
    def finished(self) -> bool:
        """Whether an end-of-sequence token was accepted."""
        return self._trail[-1].end

    @property
    def complete(self) -> bool:
        """Whether the text so far is a whole turn: it has ended, or may end here."""
        ends = self._automaton.vocabulary.eos_ids
        return self.finished or (self._fault is None and any(self.allows(token) for token in ends))

    def mask(self) -> NDArray[np.int32]:
        """The tokens that may come next.

        Packed: bit `i & 31` of word `i >> 5`, shape (ceil(width / 32),). Read-only and shared: the same
        object for the same set of tokens. Never empty.
        """
        if self._fault is not None:
            return self._automaton.end_mask
        mask = self._trail[-1].mask
        return mask if mask is not None else self._automaton.mask(self._trail[-1])

    @property
    def end_mask(self) -> NDArray[np.int32]:
        """The mask that allows end-of-sequence tokens alone."""
        return self._automaton.end_mask

    def needed(self) -> int:
        """The tokens, the end-of-sequence token included, in which the turn can be finished from here.

        Masks allow to do so, and leave the choice among the tokens that lead there.
        """
        if self._fault is not None:
            return 1
        return self._budget_masks.completion.needed(self._trail[-1])

    def mask_within(self, left: int) -> NDArray[np.int32]:
        """The tokens that may come next if the turn is to be finished within `left` tokens.

        The same object as `mask()` where nothing is left out. Never empty: with less than `needed()` left,
        it has the tokens that lead to the end on the shortest way.
        """
        if self._fault is not None:
            return self._automaton.end_mask
        return self._budget_masks.mask(self._trail[-1], left)

    def allows(self, token: int) -> bool:
        """Whether `token` may come next."""
        if self._fault is not None or self.finished:
            return token in self._automaton.vocabulary.eos_ids
        return self._automaton.edge(self._trail[-1], token) is not None

    @property
    def configuration(self) -> Configuration:
        """The state of the parse: what is being read (`larksong.engine.explain` makes it readable)."""
        return self._trail[-1]

    def explain(self, piece: int | bytes) -> Explanation:
        """Why a token id, or bytes of no particular token, may come next or not. Changes nothing.

        After a refused token: what holds at the place where it was refused.
        """
        return explain(self._automaton, self._trail[-1], piece)

    def forced(self) -> tuple[int, ...]:
        """The tokens that must come next, as the model's own tokenizer would write them; often none.

        To be given to `advance` one by one. A model may be fed all of them at once, since nothing that it
        says about them changes them.
        """
        if self._fault is not None:
            return ()
        return self._forced.after(self._automaton, self._trail[-1], self._tokens)

    def likely(self) -> tuple[int, ...]:
        """Tokens that will probably come next, those of `forced` first: drafts for a model to check."""
        if self._fault is not None:
            return ()
        return self._forced.likely(self._automaton, self._trail[-1], self._tokens)

    def advance(self, token: int) -> Events:
        """Accept a token; returns what it made certain."""
        self._tokens.append(token)
        trail = self._trail
        edge = self._automaton.edge(trail[-1], token) if self._fault is None else None
        if edge is None:
            self._refuse(token)
            return ()
        target, events, branches = edge
        trail.append(target)
        if branches:
            events = self._choose(events, branches)
        if len(trail) == 2 and self._automaton.start_events:
            events = self._automaton.start_events + events
        return events

    def _choose(self, certain: Events, branches: tuple[Branch, ...]) -> Events:
        """Keep the readings of a value apart while its type is open; give out the one that is left."""
        here = len(self._trail) - 1
        after, events = choose(self._open.get(here - 1, {}), certain, branches)
        if after:
            self._open[here] = after
        return events

    def _refuse(self, token: int) -> None:
        """The sequence ends here; refused tokens still count for `rollback`."""
        here = self._trail[-1]
        if self._fault is None and not here.end:
            message = f"token {token} at position {len(self._trail) - 1} is not allowed by the grammar"
            self._fault = (len(self._trail), message)
            log.error("%s", message)
        self._trail.append(here)

    def rollback(self, count: int) -> None:
        """Take back the last `count` tokens."""
        if not 0 <= count < len(self._trail):
            raise ValueError(f"cannot roll back {count} of {len(self._trail) - 1} tokens")
        if count:
            del self._trail[-count:]
            del self._tokens[-count:]
            self._open = {at: open_ for at, open_ in self._open.items() if at < len(self._trail)}
            if self._fault is not None and len(self._trail) <= self._fault[0]:
                self._fault = None

    def fork(self) -> Matcher:
        """A second cursor at the same place."""
        other = Matcher(self._automaton, self._budget_masks, self._forced)
        other._tokens = self._tokens.copy()
        other._trail = self._trail.copy()
        other._open = self._open.copy()
        other._fault = self._fault
        return other

    def finish(self) -> Events:
        """The end of the text: visible text that was held back because it could have begun a marker.

        A value that is cut off gives nothing: what was held back of it may be its close marker.
        """
        for thread in self._trail[-1].threads:
            held = thread.bound.automaton.held(thread.state)
            if held and thread.bound.terminal.role is Role.CONTENT:
                return (Content(held),)
            if held and thread.bound.terminal.role is Role.REASONING:
                return (Reasoning(held),)
        return ()
