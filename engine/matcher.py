"""The matcher: the cursor of one sequence over the configurations of an automaton."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larksong.engine.automaton import Automaton
from larksong.engine.events import Content, Events, Reasoning, coalesce
from larksong.engine.stack import Configuration, Edge
from larksong.engine.terminals import Role

log = logging.getLogger(__name__)


class _Held(NamedTuple):
    """Events of one reading of a value whose type is still open, newest first."""

    earlier: _Held | None
    events: Events


class _Point(NamedTuple):
    """A place in the sequence. `held`: the readings of an open value, by whether they read a raw string."""

    configuration: Configuration
    held: tuple[tuple[bool, _Held | None], ...]
    fault: str | None


class Matcher:
    """Constrains one sequence and reads it: `mask()` before a token is sampled, `advance()` after.

    Configurations are immutable, so going back is an index (`rollback`) and a copy costs nothing (`fork`).
    Inside a decoding loop nothing raises: a refused token or a dead end is kept in `fault`, and from then on
    only an end-of-sequence token is allowed.
    """

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._points = [_Point(automaton.start, (), None)]
        self._opening = automaton.start_events

    @property
    def fault(self) -> str | None:
        """Why the sequence was ended by the matcher, or None."""
        return self._points[-1].fault

    @property
    def finished(self) -> bool:
        """Whether an end-of-sequence token was accepted."""
        return self._points[-1].configuration.end

    @property
    def complete(self) -> bool:
        """Whether the text so far is a whole turn: it has ended, or may end here."""
        return self.finished or any(self.allows(token) for token in self._automaton.vocabulary.eos_ids)

    def mask(self) -> NDArray[np.int32]:
        """The tokens that may come next.

        Packed: bit `i & 31` of word `i >> 5`, shape (ceil(width / 32),). Read-only and shared: the same
        object for the same set of tokens. Never empty.
        """
        point = self._points[-1]
        if point.fault is not None:
            return self._automaton.end_mask
        return self._automaton.mask(point.configuration)

    def allows(self, token: int) -> bool:
        """Whether `token` may come next."""
        point = self._points[-1]
        if point.fault is not None or point.configuration.end:
            return token in self._automaton.vocabulary.eos_ids
        return self._automaton.edge(point.configuration, token) is not None

    def advance(self, token: int) -> Events:
        """Accept a token; returns what it made certain."""
        point = self._points[-1]
        edge: Edge | None = None
        if point.fault is None and not point.configuration.end:
            edge = self._automaton.edge(point.configuration, token)
        if edge is None:
            self._points.append(self._refuse(point, token))
            return ()
        if not edge.branches:
            self._points.append(_Point(edge.target, (), None))
            events = edge.events
        else:
            events = self._choose(point, edge)
        if self._opening and len(self._points) == 2:
            return self._opening + events
        return events

    def _choose(self, point: _Point, edge: Edge) -> Events:
        """Keep the readings of a value apart while its type is open; give out the one that is left."""
        before = dict(point.held)
        after: dict[bool, _Held | None] = {}
        for branch in edge.branches:
            if branch.is_text not in after:
                earlier = before.get(branch.was_text)
                after[branch.is_text] = _Held(earlier, branch.events) if branch.events else earlier
        if len(after) > 1:
            self._points.append(_Point(edge.target, tuple(after.items()), None))
            return edge.events
        self._points.append(_Point(edge.target, (), None))
        (left,) = after.values()
        collected: list[Events] = []
        while left is not None:
            collected.append(left.events)
            left = left.earlier
        return coalesce([*edge.events, *(event for events in reversed(collected) for event in events)])

    def _refuse(self, point: _Point, token: int) -> _Point:
        if point.fault is not None or point.configuration.end:
            return point
        number = len(self._points) - 1
        fault = f"token {token} at position {number} is not allowed by the grammar"
        log.error("%s", fault)
        return point._replace(fault=fault, held=())

    def rollback(self, count: int) -> None:
        """Take back the last `count` tokens."""
        if not 0 <= count < len(self._points):
            raise ValueError(f"cannot roll back {count} of {len(self._points) - 1} tokens")
        if count:
            del self._points[-count:]

    def fork(self) -> Matcher:
        """A second cursor at the same place."""
        other = Matcher(self._automaton)
        other._points = self._points.copy()
        return other

    def finish(self) -> Events:
        """The end of the text: visible text that was held back because it could have begun a marker.

        A value that is cut off gives nothing: what was held back of it may be its close marker.
        """
        point = self._points[-1]
        for thread in point.configuration.threads:
            held = thread.bound.lexeme.held(thread.state)
            if held and thread.bound.terminal.role is Role.CONTENT:
                return (Content(held),)
            if held and thread.bound.terminal.role is Role.REASONING:
                return (Reasoning(held),)
        return ()
