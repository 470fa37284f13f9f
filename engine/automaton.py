"""The token automaton of one grammar: configurations and what tokens do to them, found lazily and kept.

Reading goes byte by byte. A byte continues a terminal, or completes it: then the parser shifts the terminal
(reducing first where the LALR table says so) and the terminals that may follow begin. Within one terminal the
longest match holds; between terminals that match the same bytes all readings go on side by side.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from larksong.engine.attributes import Value
from larksong.engine.events import (
    CallClose,
    Content,
    Events,
    FunctionOpen,
    Json,
    ParameterClose,
    ParameterOpen,
    ParseEvent,
    Reasoning,
    Text,
    coalesce,
)
from larksong.engine.grammar import Grammar
from larksong.engine.lexeme import Lexeme
from larksong.engine.stack import Bound, Branch, Configuration, Edge, Live, Return, Stack, Thread
from larksong.engine.tables import END, Production, State, Tables, tables
from larksong.engine.terminals import Definition, JsonString, Role, Special, Sub, Terminal, TextUntil
from larksong.engine.trie import Piece, Position, Trie, union
from larksong.engine.vocabulary import Vocabulary

log = logging.getLogger(__name__)


class Lexemes:
    """The lexemes of a vocabulary, by definition: shared by all grammars."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self._plain_text = Lexeme(TextUntil(), trie)
        self._known: dict[Definition, Lexeme] = {TextUntil(): self._plain_text}

    def get(self, definition: Definition) -> Lexeme:
        lexeme = self._known.get(definition)
        if lexeme is None:
            unbounded = None
            if isinstance(definition, JsonString | TextUntil) and definition != definition.unbounded():
                unbounded = self.get(definition.unbounded())
            made = Lexeme(definition, self.trie, self._plain_text, unbounded)
            lexeme = self._known.setdefault(definition, made)
        return lexeme


class Automaton:
    """The token automaton of `grammar` over `vocabulary`.

    Safe under threads: what is found twice at the same time is the same, and the first to store it wins.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, lexemes: Lexemes) -> None:
        self.vocabulary = vocabulary
        self.grammar = grammar
        self._lexemes = lexemes
        self._trie = lexemes.trie
        self._bound: dict[tuple[int, str, frozenset[int]], Bound] = {}
        self._configurations: dict[tuple[Thread, ...], Configuration] = {}
        self._masks: dict[bytes, NDArray[np.int32]] = {}
        self._lock = threading.RLock()
        ends = [i for i in vocabulary.eos_ids if i < vocabulary.width]
        self.end_mask = self._intern(union([Piece(ends, None)], self._trie.words))
        self._end = Configuration((), end=True)
        self.root = Stack(None, tables(grammar).start, None)
        self.start = self._configuration(thread for thread, _ in self._fresh(self.root))
        self.start_events: Events = _common([events for _, events in self._fresh(self.root)])

    # -- the parser: Lark's tables, stepped on interned stacks

    def _shift(self, stack: Stack, name: str, label: Value = None) -> Stack | None:
        """The stack after a terminal, reductions first; None where the table or an attribute refuses it."""
        key = (name, label)
        try:
            return stack.shifts[key]
        except KeyError:
            return stack.shifts.setdefault(key, self._parse(stack, name, label))

    def _parse(self, stack: Stack, name: str, label: Value) -> Stack | None:
        while True:
            action = stack.state.actions.get(name)
            if action is None:
                return None
            if isinstance(action, Production):
                stack = self._reduce(stack, action)
                continue
            predicate = stack.state.tables.grammar.terminals[name].predicate
            value = label
            if predicate is not None:
                value = predicate(stack.value, stack.parent.value if stack.parent else None)
                if value is None:
                    return None
            return stack.push(action, value)

    @staticmethod
    def _reduce(stack: Stack, production: Production) -> Stack:
        values = []
        for _ in range(production.size):
            values.append(stack.value)
            assert stack.parent is not None
            stack = stack.parent
        value = production.action(tuple(reversed(values))) if production.action else None
        return stack.push(stack.state.gotos[production.origin], value)

    def _leave(self, stack: Stack) -> Stack | None:
        """The bottom entry of a grammar whose start symbol is complete, else None."""
        accept = stack.state.tables.accept
        while stack.state is not accept:
            action = stack.state.actions.get(END)
            if not isinstance(action, Production):
                return None
            stack = self._reduce(stack, action)
        return stack.parent

    def _live(self, stack: Stack) -> Live:
        """What may follow, through the ends and the beginnings of sub-grammars."""
        if stack.live is not None:
            return stack.live
        found: list[tuple[Bound, Stack]] = []
        end = False
        owner = stack.state.tables
        for name in stack.state.actions:
            if name == END:
                bottom = self._leave(stack)
                if bottom is None:
                    continue
                if bottom.parent is None:
                    end = True
                    continue
                assert isinstance(bottom.value, Return)
                caller = self._shift(bottom.parent, bottom.value.terminal)
                following = self._live(caller) if caller is not None else Live((), False)
                found += following.terminals
                end = end or following.end
                continue
            terminal = owner.grammar.terminals[name]
            definition = terminal.definition
            if isinstance(definition, Sub):
                if self._shift(stack, name) is not None:
                    entered = stack.push(tables(definition.choose(stack.value)).start, Return(name))
                    found += self._live(entered).terminals
                continue
            shifted = self._shift(stack, name)
            if shifted is None:
                continue
            refused: frozenset[int] = frozenset()
            if isinstance(definition, TextUntil) and definition.stops:
                refused = self._refused_stops(shifted, definition)
                if len(refused) == len(definition.stops) and not definition.open_end:
                    continue
            found.append((self._bind(owner, terminal, refused), stack))
        stack.live = Live(tuple(found), end)
        return stack.live

    def _refused_stops(self, after: Stack, definition: TextUntil) -> frozenset[int]:
        refused = set()
        for index, stop in enumerate(definition.stops):
            stack: Stack | None = after
            for name in stop.terminals:
                stack = self._shift(stack, name) if stack is not None else None
            if stack is None:
                refused.add(index)
        return frozenset(refused)

    def _bind(self, owner: Tables, terminal: Terminal, refused: frozenset[int]) -> Bound:
        key = (id(owner), terminal.name, refused)
        bound = self._bound.get(key)
        if bound is None:
            definition = terminal.definition
            if refused and isinstance(definition, TextUntil):
                definition = definition.without(refused)
            bound = self._bound.setdefault(key, Bound(terminal, self._lexemes.get(definition)))
        return bound

    # -- reading

    def _fresh(self, stack: Stack) -> tuple[tuple[Thread, Events], ...]:
        """The threads that begin on a stack, with what their beginning already tells."""
        if stack.following is None:
            stack.following = tuple(
                (where.thread(bound, bound.lexeme.start), _opening(bound))
                for bound, where in self._live(stack).terminals
            )
        return stack.following

    def _configuration(self, threads: Iterable[Thread]) -> Configuration:
        # Readings as JSON come first: where two readings meet again, the typed one is kept.
        key = tuple(sorted(set(threads), key=lambda thread: (thread.is_text, id(thread))))
        found = self._configurations.get(key)
        if found is None:
            found = self._configurations.setdefault(key, Configuration(key, end=False))
        return found

    def successors(self, thread: Thread, byte: int) -> tuple[tuple[Thread, Events], ...]:
        """The threads that a byte leads to, each with what it revealed on the way."""
        found = thread.successors.get(byte)
        if found is None:
            found = thread.successors.setdefault(byte, self._successors(thread, byte))
        return found

    def _successors(self, thread: Thread, byte: int) -> tuple[tuple[Thread, Events], ...]:
        bound, lexeme = thread.bound, thread.bound.lexeme
        following = lexeme.row(thread.state)[byte]
        if following >= 0:
            events = _reading(bound, thread.state, bytes((byte,)), following)
            if lexeme.final(following):
                return self._complete(thread, following, events)
            return ((thread.stack.thread(bound, following), events),)
        if not lexeme.accepts(thread.state):
            return ()
        return tuple(
            (successor, events + more)
            for begun, events in self._complete(thread, thread.state, ())
            for successor, more in self.successors(begun, byte)
        )

    def _complete(self, thread: Thread, state: int, events: Events) -> tuple[tuple[Thread, Events], ...]:
        """The terminal of `thread` is complete in `state`: shift it and begin what follows."""
        stack, events = self._shift_complete(thread, state, events)
        if stack is None:
            return ()
        return tuple((begun, events + more) for begun, more in self._fresh(stack))

    def _shift_complete(self, thread: Thread, state: int, events: Events) -> tuple[Stack | None, Events]:
        terminal, lexeme = thread.bound.terminal, thread.bound.lexeme
        outcome = lexeme.outcome(state)
        stack = self._shift(thread.stack, terminal.name, outcome if lexeme.labelled else None)
        events += _completion(terminal, outcome)
        if lexeme.text is not None and isinstance(outcome, int):
            for name in lexeme.text.stops[outcome].terminals:
                if stack is None:
                    return None, events
                events += _completion(stack.state.tables.grammar.terminals[name], None)
                stack = self._shift(stack, name)
        return stack, events

    def edge(self, configuration: Configuration, token: int) -> Edge | None:
        """Where a token leads, or None where it is refused."""
        try:
            return configuration.edges[token]
        except KeyError:
            return configuration.edges.setdefault(token, self._edge(configuration, token))

    def _edge(self, configuration: Configuration, token: int) -> Edge | None:
        tokens = self.vocabulary.tokens
        data = tokens[token] if 0 <= token < len(tokens) else b""
        if not data:
            return self._special_edge(configuration, token)
        threads = configuration.threads
        if len(threads) == 1:
            return self._single_edge(threads[0], data)
        readings = {thread: (thread.is_text, ()) for thread in threads}
        return self._resolve(configuration, self._read(readings, data))

    def _single_edge(self, thread: Thread, data: bytes) -> Edge | None:
        """One thread: most tokens of a long value stay inside its terminal, and nothing else is looked at."""
        bound, lexeme, state = thread.bound, thread.bound.lexeme, thread.state
        readings: dict[Thread, tuple[bool, Events]] = {thread: (thread.is_text, ())}
        if not lexeme.narrow:
            read = 0
            for byte in data:
                following = lexeme.row(state)[byte]
                if following < 0 or lexeme.final(following):
                    break
                state = following
                read += 1
            events = _reading(bound, thread.state, data[:read], state) if read else ()
            begun = thread.stack.thread(bound, state)
            if read == len(data):
                return Edge(self._configuration((begun,)), events)
            readings = {begun: (begun.is_text, events)}
            data = data[read:]
        return self._resolve(None, self._read(readings, data))

    def _read(
        self, readings: dict[Thread, tuple[bool, Events]], data: bytes
    ) -> dict[Thread, tuple[bool, Events]]:
        for byte in data:
            after: dict[Thread, tuple[bool, Events]] = {}
            for thread, (was_text, events) in readings.items():
                for successor, more in self.successors(thread, byte):
                    known = after.get(successor)
                    if known is None or (known[0] and not was_text):
                        after[successor] = (was_text, events + more if more else events)
            readings = after
        return readings

    def _special_edge(self, configuration: Configuration, token: int) -> Edge | None:
        readings: dict[Thread, tuple[bool, Events]] = {}
        ended: Events | None = None
        for thread in configuration.threads:
            for stack, events in self._special(thread, token, ()):
                if self._live(stack).end:
                    ended = events if ended is None else ended
                for begun, more in self._fresh(stack):
                    readings.setdefault(begun, (thread.is_text, events + more))
        if ended is not None:
            return Edge(self._end, coalesce(list(ended)))
        return self._resolve(configuration, readings)

    def _special(self, thread: Thread, token: int, events: Events) -> Iterable[tuple[Stack, Events]]:
        """The stacks that a special token leads to, through terminals that may end before it."""
        lexeme = thread.bound.lexeme
        if lexeme.special:
            if token in lexeme.special:
                stack, events = self._shift_complete(thread, thread.state, events)
                if stack is not None:
                    yield stack, events
        elif lexeme.accepts(thread.state) and not lexeme.final(thread.state):
            events += _piece(thread.bound, lexeme.held(thread.state))
            for begun, more in self._complete(thread, thread.state, events):
                yield from self._special(begun, token, more)

    def _resolve(
        self, before: Configuration | None, readings: dict[Thread, tuple[bool, Events]]
    ) -> Edge | None:
        """Make one edge of all readings of a token."""
        if not readings:
            return None
        target = self._configuration(readings)
        was_ambiguous = before is not None and before.ambiguous
        branches: dict[tuple[bool, bool], Events] = {}
        for thread in target.threads:
            was_text, events = readings[thread]
            branches.setdefault((was_text, thread.is_text), coalesce(list(events)))
        if not was_ambiguous and len(branches) == 1:
            return Edge(target, next(iter(branches.values())))
        certain: Events = ()
        if not was_ambiguous:
            certain = _common(list(branches.values()))
        return Edge(
            target,
            certain,
            tuple(
                Branch(was_text, is_text, events[len(certain) :])
                for (was_text, is_text), events in branches.items()
            ),
        )

    # -- masks

    def mask(self, configuration: Configuration) -> NDArray[np.int32]:
        """The tokens that may follow: packed words, read-only, the same object for the same set."""
        mask = configuration.mask
        if mask is None:
            if configuration.end:
                mask = self.end_mask
            else:
                pieces: list[Piece] = []
                self._fill(configuration.threads, self._trie.root, pieces)
                words = union(pieces, self._trie.words)
                if words.any():
                    mask = self._intern(words)
                else:
                    log.error("dead end in the grammar %r: the sequence ends", self.grammar.title)
                    mask = self.end_mask
            configuration.mask = mask
        return mask

    def _intern(self, words: NDArray[np.uint32]) -> NDArray[np.int32]:
        key = words.tobytes()
        mask = self._masks.get(key)
        if mask is None:
            words.flags.writeable = False
            mask = self._masks.setdefault(key, words.view(np.int32))
        return mask

    def _fill(self, threads: Sequence[Thread], position: Position, pieces: list[Piece]) -> None:
        """Collect the tokens of `position` that the threads can read."""
        at_root = position is self._trie.root
        literals: list[Thread] = []
        for thread in threads:
            lexeme = thread.bound.lexeme
            if lexeme.special:
                if at_root:
                    pieces.append(Piece(list(lexeme.special), None))
                continue
            if lexeme.narrow:
                literals.append(thread)
                continue
            walk = lexeme.walk(thread.state, position)
            if walk.inside:
                pieces.append(walk.inside)
            for outcome, crossed in walk.crossings:
                self._fill_after(thread, outcome, crossed, pieces)
            if at_root and lexeme.accepts(thread.state):
                specials = self._specials(thread)
                if specials:
                    pieces.append(Piece(sorted(specials), None))
        if literals:
            self._fill_literals(literals, position, pieces)

    def _specials(self, thread: Thread) -> set[int]:
        """Special tokens that may come where the terminal of `thread` may end."""
        found: set[int] = set()
        for begun, _ in self._complete(thread, thread.state, ()):
            lexeme = begun.bound.lexeme
            if lexeme.special:
                found |= lexeme.special
            elif not lexeme.narrow and lexeme.accepts(begun.state):
                found |= self._specials(begun)
        return found

    def _fill_after(self, thread: Thread, outcome: Value, position: Position, pieces: list[Piece]) -> None:
        """Collect what may follow the terminal of `thread`, which is complete at `position`."""
        lexeme = thread.bound.lexeme
        name = thread.bound.terminal.name
        stack = self._shift(thread.stack, name, outcome if lexeme.labelled else None)
        if lexeme.text is not None and isinstance(outcome, int):
            for following in lexeme.text.stops[outcome].terminals:
                stack = self._shift(stack, following) if stack is not None else None
        if stack is None:
            return
        known = stack.fills.get(position)
        if known is None:
            known = [position.piece] if position.piece else []
            if len(position.nodes):
                self._fill([begun for begun, _ in self._fresh(stack)], position, known)
            known = stack.fills.setdefault(position, known)
        pieces += known

    def _fill_literals(self, threads: Sequence[Thread], position: Position, pieces: list[Piece]) -> None:
        """Literals and finite sets are followed together along the trie, byte by byte."""
        onward: dict[int, list[Thread]] = {}
        for thread in threads:
            words = thread.bound.lexeme.words
            assert words is not None
            for byte, following in words.edges[thread.state].items():
                onward.setdefault(byte, []).append(thread.stack.thread(thread.bound, following))
        for byte, readers in onward.items():
            at = position.child(byte)
            if at is None:
                continue
            still = []
            for thread in readers:
                lexeme = thread.bound.lexeme
                if lexeme.accepts(thread.state):
                    self._fill_after(thread, lexeme.outcome(thread.state), at, pieces)
                else:
                    still.append(thread)
            if still:
                if at.piece:
                    pieces.append(at.piece)
                if len(at.nodes):
                    self._fill_literals(still, at, pieces)


def _opening(bound: Bound) -> Events:
    """A function's name can be certain before its first byte: when there is no other."""
    if bound.terminal.role is Role.FUNCTION_OPEN and bound.unique[bound.lexeme.start] is not None:
        return (FunctionOpen(str(bound.unique[bound.lexeme.start])),)
    return ()


def _reading(bound: Bound, state: int, data: bytes, following: int) -> Events:
    """What reading `data` inside a terminal reveals."""
    if bound.terminal.role is Role.FUNCTION_OPEN:
        before, after = bound.unique[state], bound.unique[following]
        return (FunctionOpen(str(after)),) if before is None and after is not None else ()
    if not bound.streams:
        return ()
    return _piece(bound, bound.lexeme.released(state, data, following))


def _piece(bound: Bound, data: bytes) -> Events:
    if not data or not bound.streams:
        return ()
    role = bound.terminal.role
    if role is Role.JSON:
        return (Json(data),)
    if role is Role.TEXT:
        return (Text(data),)
    return (Content(data),) if role is Role.CONTENT else (Reasoning(data),)


def _completion(terminal: Terminal, outcome: Value) -> Events:
    """What the end of a terminal reveals."""
    role = terminal.role
    if role is Role.PARAMETER_OPEN:
        return (ParameterOpen(terminal.label or ""),)
    if role is Role.PARAMETER_CLOSE:
        return (ParameterClose(),)
    if role is Role.CALL_CLOSE:
        return (CallClose(),)
    if role is Role.JSON and isinstance(outcome, str):
        return (Json(outcome.encode()),)
    return ()


def _common(alternatives: list[Events]) -> Events:
    """The events with which all alternatives begin."""
    shared: list[ParseEvent] = []
    for events in zip(*alternatives, strict=False):
        if any(event != events[0] for event in events):
            break
        shared.append(events[0])
    return tuple(shared)
