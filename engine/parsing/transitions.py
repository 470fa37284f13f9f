"""Transitions: where tokens lead from a configuration, and what they reveal.

Reading goes byte by byte. A byte continues a terminal, or completes it: then the parser shifts the terminal
(reducing first where the LALR table says so) and the terminals that may follow begin. Within one terminal the
longest match holds; between terminals that match the same bytes all readings go on side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from larksong.engine.events import Events, FunctionOpen, coalesce
from larksong.engine.grammar.terminals import Role
from larksong.engine.parsing.emitted_events import (
    Reached,
    closing,
    common,
    continuation,
    name_parameters,
    opening,
    piece,
    stopped,
)
from larksong.engine.parsing.parser import Parser
from larksong.engine.parsing.stack import Branch, Configuration, Edge, Reading, Stack, Thread


class Transitions:
    """Makes configurations and the edges between them. Edges are kept by whoever asks."""

    def __init__(self, parser: Parser, tokens: Sequence[bytes]) -> None:
        self._parser = parser
        self._tokens = tokens
        self.configurations: dict[tuple[Thread, ...], Configuration] = {}
        self.end = Configuration((), end=True)

    def fresh(self, stack: Stack) -> tuple[tuple[Thread, Events], ...]:
        """The threads that begin on a stack, with what their beginning already tells."""
        if stack.fresh is None:
            stack.fresh = tuple((begun, opening(begun.bound)) for begun in self._parser.begin(stack))
        return stack.fresh

    def configuration(self, threads: Sequence[Thread]) -> Configuration:
        """The configuration of some threads."""
        # Readings as JSON come first: where two readings meet again, the typed one is kept.
        if len(threads) > 1:
            threads = sorted(set(threads), key=lambda thread: (thread.reading, thread.order))
        key = tuple(threads)
        found = self.configurations.get(key)
        if found is None:
            found = self.configurations.setdefault(key, Configuration(key, end=False))
        return found

    def find(self, configuration: Configuration, token: int) -> Edge | None:
        """Where a token leads, or None where it is refused."""
        tokens = self._tokens
        data = tokens[token] if 0 <= token < len(tokens) else b""
        if not data:
            return self._special_edge(configuration, token)
        if len(configuration.threads) == 1:
            (thread,) = configuration.threads
            if thread.bound.automaton.words is None:
                inside = thread.bound.automaton.inside(thread.state, data)
                if inside is not None:
                    following, released = inside
                    if following != thread.state:
                        configuration = self.configuration((thread.stack.thread(thread.bound, following),))
                    return Edge(configuration, piece(thread.bound, released))
        return self.step(configuration, data)

    def step(self, configuration: Configuration, data: bytes) -> Edge | None:
        """Where any bytes lead, or None where they are refused. Nothing is kept."""
        reached: Reached = {}
        for thread in configuration.threads:
            found: list[tuple[Thread, Events]] = []
            self._read(thread, data, 0, (), found)
            for target, events in found:
                reached.setdefault(target, (thread.reading, events))
        return self._resolve(configuration, reached)

    def _read(
        self, thread: Thread, data: bytes, at: int, events: Events, found: list[tuple[Thread, Events]]
    ) -> None:
        """Read `data` from `at` on: all threads that it leads to, with what was revealed on the way."""
        bound = thread.bound
        automaton = bound.automaton
        row, final, state = automaton.row, automaton.final, thread.state
        begin, size = at, len(data)
        while at < size:
            following = row(state)[data[at]]
            if following < 0:
                # The longest match ends here, if it may end at all.
                if not automaton.accepts(state):
                    return
                break
            at += 1
            state = following
            if final(state):
                break
        else:
            if at > begin:
                events += continuation(bound, thread.state, data[begin:at], state)
            found.append((thread.stack.thread(bound, state), events))
            return
        if at > begin:
            events += continuation(bound, thread.state, data[begin:at], state)
        stack, events = self.complete(thread, state, events)
        if stack is not None:
            for begun, more in self.fresh(stack):
                self._read(begun, data, at, events + more, found)

    def complete(self, thread: Thread, state: int, events: Events) -> tuple[Stack | None, Events]:
        """The terminal of `thread` is complete in `state`: shift it, and what its text already committed."""
        bound = thread.bound
        stack = thread.stack
        outcome = bound.automaton.outcome(state)
        label = bound.label_of(outcome)
        after = self._parser.shift(stack, bound.number, label)
        if bound.terminal.role is Role.FUNCTION_OPEN and bound.unique and bound.unique[state] is None:
            events += (FunctionOpen(str(label)),)  # the beginning of another name, told apart by what follows
        elif after is not None:
            events += closing(bound.terminal, label, after.value)
        if bound.automaton.text is not None and isinstance(outcome, int):
            for name, value in bound.automaton.text.stops[outcome].shifts():
                number = stack.compiled.number[name]
                after = self._parser.shift(after, number, value) if after is not None else None
                if after is not None:
                    events += stopped(stack.compiled.terminals[number], value, after.value)
        return after, events

    def _special_edge(self, configuration: Configuration, token: int) -> Edge | None:
        reached: Reached = {}
        for thread in configuration.threads:
            for stack, events in self._special(thread, token, ()):
                if self._parser.live(stack).end:
                    return Edge(self.end, coalesce(list(events)))
                for begun, more in self.fresh(stack):
                    reached.setdefault(begun, (thread.reading, events + more))
        return self._resolve(configuration, reached)

    def _special(self, thread: Thread, token: int, events: Events) -> Iterable[tuple[Stack, Events]]:
        """The stacks that a special token leads to, through terminals that may end before it."""
        automaton = thread.bound.automaton
        if automaton.special:
            if token not in automaton.special:
                return
            stack, events = self.complete(thread, thread.state, events)
            if stack is not None:
                yield stack, events
        elif automaton.accepts(thread.state) and (
            thread.state == automaton.start or not automaton.final(thread.state)
        ):
            events += piece(thread.bound, automaton.held(thread.state))
            stack, events = self.complete(thread, thread.state, events)
            if stack is not None:
                for begun, more in self.fresh(stack):
                    yield from self._special(begun, token, events + more)

    def _resolve(self, before: Configuration, reached: Reached) -> Edge | None:
        """Make one edge of all threads that a token leads to."""
        if not reached:
            return None
        target = self.configuration(tuple(reached))
        if before.parameter is not None or target.parameter is not None:
            reached = name_parameters(before, target, reached)
        if len(reached) == 1 and not before.ambiguous:
            ((_, events),) = reached.values()
            return Edge(target, coalesce(events))
        branches: dict[tuple[Reading, Reading], Events] = {}
        for thread in sorted(target.threads, key=lambda thread: reached[thread][0]):
            reading, events = reached[thread]
            branches.setdefault((reading, thread.reading), coalesce(events))
        if before.ambiguous:
            certain: Events = ()
        elif len(branches) == 1:
            return Edge(target, next(iter(branches.values())))
        else:
            certain = common(list(branches.values()))
        return Edge(
            target,
            certain,
            tuple(Branch(*readings, events[len(certain) :]) for readings, events in branches.items()),
        )
