"""The token automaton of one grammar: configurations and what tokens do to them, found lazily and kept.

Reading goes byte by byte. A byte continues a terminal, or completes it: then the parser shifts the terminal
(reducing first where the LALR table says so) and the terminals that may follow begin. Within one terminal the
longest match holds; between terminals that match the same bytes all readings go on side by side.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from larksong.engine.attributes import Member, Taken, Value
from larksong.engine.band import Band
from larksong.engine.events import (
    CallClose,
    Content,
    Events,
    FunctionOpen,
    Json,
    Name,
    ParameterClose,
    ParameterOpen,
    ParseEvent,
    Reasoning,
    Text,
    coalesce,
)
from larksong.engine.grammar import Grammar
from larksong.engine.lexeme import Lexeme, Meter
from larksong.engine.stack import (
    Bound,
    Branch,
    Configuration,
    Edge,
    Fill,
    Live,
    Return,
    Scope,
    Stack,
    Thread,
)
from larksong.engine.tables import END, Production, State
from larksong.engine.terminals import (
    JsonKey,
    JsonString,
    Keys,
    Literal,
    Readable,
    Role,
    Sub,
    Terminal,
    TextUntil,
)
from larksong.engine.text import Stop
from larksong.engine.trie import Piece, Position, Trie, union
from larksong.engine.vocabulary import Vocabulary

log = logging.getLogger(__name__)

# Measured with tracemalloc on coding tools, rounded up: what one entry of each kind takes with all it holds.
_CONFIGURATION_BYTES = 3000
_EDGE_BYTES = 300


class Lexemes:
    """The lexemes of a vocabulary, by definition: shared by all grammars."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.meter = Meter()
        self.shared = {
            "text": Lexeme(TextUntil(), trie, self.meter),
            "string": Lexeme(JsonString(), trie, self.meter),
            "key": Lexeme(JsonKey(()), trie, self.meter),
        }
        """what every request reads, by the name under which it is kept on disk"""
        self._known = self._core()

    def _core(self) -> dict[Readable, Lexeme]:
        return {lexeme.definition: lexeme for lexeme in self.shared.values()}

    def get(self, definition: Readable) -> Lexeme:
        """The lexeme of a definition."""
        lexeme = self._known.get(definition)
        if lexeme is None:
            basis = definition.basis() if isinstance(definition, JsonString | JsonKey | TextUntil) else None
            made = Lexeme(definition, self.trie, self.meter, self.get(basis) if basis is not None else None)
            lexeme = self._known.setdefault(definition, made)
        return lexeme

    def forget(self) -> None:
        """Begin anew with what every request needs; grammars in use keep the lexemes that they have."""
        for lexeme in self.shared.values():
            lexeme.forget()
        self._known = self._core()
        self.meter.bytes = 0


class Automaton:
    """The token automaton of `grammar` over `vocabulary`.

    Safe under threads: what is found twice at the same time is the same, and the first to store it wins.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, lexemes: Lexemes) -> None:
        self.vocabulary = vocabulary
        self.grammar = grammar
        self._lexemes = lexemes
        self._trie = lexemes.trie
        self._scopes: dict[Grammar, Scope] = {}
        self._configurations: dict[tuple[Thread, ...], Configuration] = {}
        self._masks: dict[frozenset[Piece], NDArray[np.int32]] = {}
        self._alike: dict[tuple[int, bytes], list[NDArray[np.int32]]] = {}
        self._lock = threading.Lock()
        self._distinct_masks = 0
        self._edges = 0
        ends = [i for i in vocabulary.eos_ids if i < vocabulary.width]
        self.end_mask = self._union([Piece(ends, None)])
        self._end = Configuration((), end=True)
        scope = self._scope(grammar)
        beginning = self._fresh(Stack(None, scope, scope.tables.start, None))
        self.start = self._configuration([thread for thread, _ in beginning])
        self.start_events: Events = _common([events for _, events in beginning])

    @cached_property
    def band(self) -> Band:
        """What finishing within a budget needs to know; made for the first sequence that asks."""
        return Band(self)

    def size(self) -> int:
        """Roughly how many bytes the automaton takes by now."""
        masks = self._distinct_masks * self._trie.words * 4
        band = self.band.size() if "band" in self.__dict__ else 0
        return len(self._configurations) * _CONFIGURATION_BYTES + self._edges * _EDGE_BYTES + masks + band

    def _scope(self, grammar: Grammar) -> Scope:
        scope = self._scopes.get(grammar)
        if scope is None:
            scope = self._scopes.setdefault(grammar, Scope(grammar))
        return scope

    # -- the parser: Lark's tables, stepped on interned stacks

    def _shift(self, stack: Stack, terminal: int, label: Value = None) -> Stack | None:
        """The stack after a terminal, reductions first; None where the table or an attribute refuses it."""
        key = (terminal, label)
        try:
            return stack.shifts[key]
        except KeyError:
            return stack.shifts.setdefault(key, self._parse(stack, terminal, label))

    def _parse(self, stack: Stack, terminal: int, label: Value) -> Stack | None:
        while True:
            action = stack.state.actions.get(terminal)
            if action is None:
                return None
            if isinstance(action, Production):
                stack = self._reduce(stack, action)
                continue
            predicate = stack.scope.terminals[terminal].predicate
            value = label
            if predicate is not None:
                value = predicate(stack.value, stack.parent.value if stack.parent else None, label)
                if value is None:
                    return None
            stack = stack.push(action, value)
            while stack.state.only is not None:
                stack = self._reduce(stack, stack.state.only)
            return stack

    @staticmethod
    def _reduce(stack: Stack, production: Production) -> Stack:
        action = stack.scope.actions[production.index]
        values = []
        for _ in range(production.size):
            values.append(stack.value)
            assert stack.parent is not None
            stack = stack.parent
        value = action(tuple(reversed(values))) if action else None
        return stack.push(stack.state.gotos[production.origin], value)

    def _leave(self, stack: Stack) -> Stack | None:
        """The bottom entry of a grammar whose start symbol is complete, else None."""
        accept = stack.scope.tables.accept
        while stack.state is not accept:
            action = stack.state.actions.get(END)
            if not isinstance(action, Production):
                return None
            stack = self._reduce(stack, action)
        return stack.parent

    def _live(self, stack: Stack) -> Live:
        """What may follow, through the ends and the beginnings of sub-grammars."""
        if stack.live is None:
            found: list[tuple[Bound, Stack]] = []
            end = False
            for terminal in stack.state.actions:
                if terminal == END:
                    following = self._live_after_end(stack)
                else:
                    following = self._live_terminal(stack, terminal)
                found += following.terminals
                end = end or following.end
            stack.live = Live(tuple(found), end)
        return stack.live

    def _live_after_end(self, stack: Stack) -> Live:
        bottom = self._leave(stack)
        if bottom is None:
            return _NOTHING
        if bottom.parent is None:
            return Live((), end=True)
        assert isinstance(bottom.value, Return)
        caller = self._shift(bottom.parent, bottom.value.terminal)
        return self._live(caller) if caller is not None else _NOTHING

    def _live_terminal(self, stack: Stack, number: int) -> Live:
        terminal = stack.scope.terminals[number]
        definition = terminal.definition
        if isinstance(definition, Keys):
            return Live(tuple((word, stack) for word in self._live_words(stack, number, terminal)), end=False)
        shifted = self._shift(stack, number)
        if shifted is None:
            return _NOTHING
        if isinstance(definition, Sub):
            scope = self._scope(definition.choose(stack.value))
            return Live(self._live(stack.enter(scope, number)).terminals, end=False)
        refused: frozenset[int] = frozenset()
        if isinstance(definition, TextUntil) and definition.stops:
            refused = frozenset(
                index for index, stop in enumerate(definition.stops) if self._shift_all(shifted, stop) is None
            )
            if len(refused) == len(definition.stops) and not definition.open_end:
                return _NOTHING
        (bound,) = self._bind(stack.scope, number, terminal, refused)
        return Live(((bound, stack),), end=False)

    def _live_words(self, stack: Stack, number: int, terminal: Terminal) -> Iterable[Bound]:
        """The names that may come: all wait for the same reductions; only the predicate tells them apart."""
        words = self._bind(stack.scope, number, terminal)
        action = stack.state.actions[number]
        while isinstance(action, Production):
            stack = self._reduce(stack, action)
            following = stack.state.actions.get(number)
            if following is None:
                return ()
            action = following
        allowed = terminal.predicate
        if allowed is None:
            return words
        top, below = stack.value, stack.parent.value if stack.parent else None
        return [word for word in words if allowed(top, below, word.label) is not None]

    def _shift_all(self, stack: Stack | None, stop: Stop) -> Stack | None:
        for name, label in stop.shifts():
            # A terminal that no rule has is refused like one that may not come here.
            number = stack.scope.number.get(name) if stack is not None else None
            if stack is None or number is None:
                return None
            stack = self._shift(stack, number, label)
        return stack

    def _bind(
        self, scope: Scope, number: int, terminal: Terminal, refused: frozenset[int] = frozenset()
    ) -> tuple[Bound, ...]:
        key = (number, refused)
        bound = scope.bound.get(key)
        if bound is None:
            definition = terminal.definition
            assert not isinstance(definition, Sub)
            if isinstance(definition, Keys):
                made = tuple(
                    Bound(number, terminal, self._lexemes.get(Literal(text)), label)
                    for text, label in definition.words
                )
            else:
                if refused and isinstance(definition, TextUntil):
                    definition = definition.without(refused)
                made = (Bound(number, terminal, self._lexemes.get(definition)),)
            bound = scope.bound.setdefault(key, made)
        return bound

    # -- reading

    def _fresh(self, stack: Stack) -> tuple[tuple[Thread, Events], ...]:
        """The threads that begin on a stack, with what their beginning already tells."""
        if stack.following is None:
            begun = [
                (where.thread(bound, bound.lexeme.start), _opening(bound))
                for bound, where in self._live(stack).terminals
            ]
            # Readings as JSON come first: where two readings meet again, the typed one is kept.
            stack.following = tuple(sorted(begun, key=lambda entry: entry[0].is_text))
        return stack.following

    def _configuration(self, threads: Sequence[Thread]) -> Configuration:
        # Readings as JSON come first: where two readings meet again, the typed one is kept.
        if len(threads) > 1:
            threads = sorted(set(threads), key=lambda thread: (thread.is_text, id(thread)))
        key = tuple(threads)
        found = self._configurations.get(key)
        if found is None:
            found = self._configurations.setdefault(key, Configuration(key, end=False))
        return found

    def edge(self, configuration: Configuration, token: int) -> Edge | None:
        """Where a token leads, or None where it is refused."""
        try:
            return configuration.edges[token]
        except KeyError:
            self._edges += 1
            edge = self._edge(configuration, token)
            for event in edge.events if edge is not None else ():
                if isinstance(event, FunctionOpen):
                    self._prepare(event.name)
            return configuration.edges.setdefault(token, edge)

    def _prepare(self, function: str) -> None:
        """Make a function's grammar as soon as its name is certain: no mask has to wait for it then."""
        for terminal in self.grammar.terminals.values():
            if isinstance(terminal.definition, Sub):
                self._scope(terminal.definition.choose(function))

    def _edge(self, configuration: Configuration, token: int) -> Edge | None:
        tokens = self.vocabulary.tokens
        data = tokens[token] if 0 <= token < len(tokens) else b""
        if not data:
            return self._special_edge(configuration, token)
        if len(configuration.threads) == 1:
            (thread,) = configuration.threads
            if not thread.bound.lexeme.narrow:
                inside = thread.bound.lexeme.inside(thread.state, data)
                if inside is not None:
                    following, released = inside
                    if following != thread.state:
                        configuration = self._configuration((thread.stack.thread(thread.bound, following),))
                    return Edge(configuration, _piece(thread.bound, released))
        return self.step(configuration, data)

    def step(self, configuration: Configuration, data: bytes) -> Edge | None:
        """Where any bytes lead, or None where they are refused. Nothing is kept."""
        readings: dict[Thread, tuple[int, Events]] = {}
        for thread in configuration.threads:
            found: list[tuple[Thread, Events]] = []
            self._read(thread, data, 0, (), found)
            for reached, events in found:
                readings.setdefault(reached, (thread.is_text, events))
        return self._resolve(configuration, readings)

    def _read(
        self, thread: Thread, data: bytes, at: int, events: Events, found: list[tuple[Thread, Events]]
    ) -> None:
        """Read `data` from `at` on: all threads that it leads to, with what was revealed on the way."""
        bound = thread.bound
        lexeme = bound.lexeme
        row, final, state = lexeme.row, lexeme.final, thread.state
        begin, size = at, len(data)
        while at < size:
            following = row(state)[data[at]]
            if following < 0:
                # The longest match ends here, if it may end at all.
                if not lexeme.accepts(state):
                    return
                break
            at += 1
            state = following
            if final(state):
                break
        else:
            if at > begin:
                events += _reading(bound, thread.state, data[begin:at], state)
            found.append((thread.stack.thread(bound, state), events))
            return
        if at > begin:
            events += _reading(bound, thread.state, data[begin:at], state)
        stack, events = self._complete(thread, state, events)
        if stack is not None:
            for begun, more in self._fresh(stack):
                self._read(begun, data, at, events + more, found)

    def _complete(self, thread: Thread, state: int, events: Events) -> tuple[Stack | None, Events]:
        """The terminal of `thread` is complete in `state`: shift it, and what its text already committed."""
        bound = thread.bound
        stack = thread.stack
        outcome = bound.lexeme.outcome(state)
        label = bound.label if bound.label is not None or bound.lexeme.text is not None else outcome
        after = self._shift(stack, bound.number, label)
        if bound.terminal.role is Role.FUNCTION_OPEN and bound.unique and bound.unique[state] is None:
            events += (FunctionOpen(str(label)),)  # the beginning of another name, told apart by what follows
        elif after is not None:
            events += _completion(bound.terminal, label, after.value)
        if bound.lexeme.text is not None and isinstance(outcome, int):
            for name, stopped in bound.lexeme.text.stops[outcome].shifts():
                number = stack.scope.number[name]
                after = self._shift(after, number, stopped) if after is not None else None
                if after is not None:
                    events += _stopped(stack.scope.terminals[number], stopped, after.value)
        return after, events

    def _special_edge(self, configuration: Configuration, token: int) -> Edge | None:
        readings: dict[Thread, tuple[int, Events]] = {}
        for thread in configuration.threads:
            for stack, events in self._special(thread, token, ()):
                if self._live(stack).end:
                    return Edge(self._end, coalesce(list(events)))
                for begun, more in self._fresh(stack):
                    readings.setdefault(begun, (thread.is_text, events + more))
        return self._resolve(configuration, readings)

    def _special(self, thread: Thread, token: int, events: Events) -> Iterable[tuple[Stack, Events]]:
        """The stacks that a special token leads to, through terminals that may end before it."""
        lexeme = thread.bound.lexeme
        if lexeme.special:
            if token not in lexeme.special:
                return
            stack, events = self._complete(thread, thread.state, events)
            if stack is not None:
                yield stack, events
        elif lexeme.accepts(thread.state) and (
            thread.state == lexeme.start or not lexeme.final(thread.state)
        ):
            events += _piece(thread.bound, lexeme.held(thread.state))
            stack, events = self._complete(thread, thread.state, events)
            if stack is not None:
                for begun, more in self._fresh(stack):
                    yield from self._special(begun, token, events + more)

    def _resolve(self, before: Configuration, readings: dict[Thread, tuple[int, Events]]) -> Edge | None:
        """Make one edge of all readings of a token."""
        if not readings:
            return None
        target = self._configuration(tuple(readings))
        if before.parameter is not None or target.parameter is not None:
            readings = _name_parameters(before, target, readings)
        if len(readings) == 1 and not before.ambiguous:
            ((_, events),) = readings.values()
            return Edge(target, coalesce(events))
        branches: dict[tuple[int, int], Events] = {}
        for thread in sorted(target.threads, key=lambda thread: readings[thread][0]):
            was_text, events = readings[thread]
            branches.setdefault((was_text, thread.is_text), coalesce(events))
        if before.ambiguous:
            certain: Events = ()
        elif len(branches) == 1:
            return Edge(target, next(iter(branches.values())))
        else:
            certain = _common(list(branches.values()))
        return Edge(
            target,
            certain,
            tuple(Branch(*reading, events[len(certain) :]) for reading, events in branches.items()),
        )

    # -- masks

    def mask(self, configuration: Configuration) -> NDArray[np.int32]:
        """The tokens that may follow: packed words, read-only, the same object for the same set."""
        mask = configuration.mask
        if mask is None:
            mask = self.end_mask
            if not configuration.end:
                pieces: list[Piece] = []
                self._fill(configuration.threads, self._trie.root, pieces)
                if pieces:
                    mask = self._union(pieces)
                else:
                    log.error("dead end in the grammar %r: the sequence ends", self.grammar.title)
            configuration.mask = mask
        return mask

    def _union(self, pieces: Sequence[Piece]) -> NDArray[np.int32]:
        # The same pieces make the same mask: most masks are found without making their words again.
        key = frozenset(pieces)
        mask = self._masks.get(key)
        if mask is None:
            words = union(key, self._trie.words).view(np.int32)
            words.flags.writeable = False
            # Hashing all words takes longer than making them: a sum and a sample find those to compare.
            sample = (int(words.sum()), words[::8].tobytes())
            with self._lock:
                alike = self._alike.setdefault(sample, [])
                mask = next((known for known in alike if np.array_equal(known, words)), words)
                if mask is words:
                    alike.append(words)
                    self._distinct_masks += 1
                mask = self._masks.setdefault(key, mask)
        return mask

    def _fill(self, threads: Iterable[Thread], position: Position, pieces: list[Piece]) -> None:
        """Collect the tokens of `position` that the threads can read."""
        at_root = position is self._trie.root
        for thread in threads:
            lexeme = thread.bound.lexeme
            if lexeme.special:
                if at_root:
                    pieces.append(lexeme.special_piece)
                continue
            walk = lexeme.walk(thread.state, position)
            if walk.inside.some:
                pieces.append(walk.inside)
            for outcome, crossed in walk.crossings:
                pieces += self._after(thread, outcome, crossed)
            if at_root and not lexeme.narrow and lexeme.accepts(thread.state):
                pieces += self._specials(thread)

    def _specials(self, thread: Thread) -> list[Piece]:
        """Special tokens that may come where the terminal of `thread` may end."""
        stack, _ = self._complete(thread, thread.state, ())
        found: list[Piece] = []
        for begun, _ in self._fresh(stack) if stack is not None else ():
            lexeme = begun.bound.lexeme
            if lexeme.special:
                found.append(lexeme.special_piece)
            elif not lexeme.narrow and lexeme.accepts(begun.state):
                found += self._specials(begun)
        return found

    def _after(self, thread: Thread, outcome: Value, position: Position) -> list[Piece]:
        """What may follow the terminal of `thread`, which is complete at `position`."""
        if not len(position.nodes):
            return [position.piece] if position.piece.some else []
        bound = thread.bound
        text = bound.lexeme.text
        label = bound.label if bound.label is not None or text is not None else outcome
        scope = thread.stack.scope
        following = thread.stack.state.actions.get(bound.number)
        if text is None and isinstance(following, State) and scope.is_plain(following):
            fill = self._plain_fill(scope, following, position)
            if not fill.tails:
                return fill.pieces
        stack = self._shift(thread.stack, bound.number, label)
        if text is not None and isinstance(outcome, int):
            stack = self._shift_all(stack, text.stops[outcome])
        return self._fill_stack(stack, position) if stack is not None else []

    def _fill_stack(self, stack: Stack, position: Position) -> list[Piece]:
        """The tokens of `position` that can be read from `stack` on."""
        known = stack.fills.get(position)
        if known is None:
            if stack.scope.is_plain(stack.state):
                fill = self._plain_fill(stack.scope, stack.state, position)
                known = list(fill.pieces)
                for path, behind in fill.tails:
                    reached: Stack | None = stack
                    for number, label in path:
                        reached = self._shift(reached, number, label) if reached is not None else None
                    known += self._fill_stack(reached, behind) if reached is not None else []
            else:
                known = [position.piece]
                self._fill([begun for begun, _ in self._fresh(stack)], position, known)
            known = stack.fills.setdefault(position, [piece for piece in known if piece.some])
        return known

    def _plain_fill(self, scope: Scope, state: State, position: Position) -> Fill:
        """What `_fill_stack` finds for every stack in a plain state: after a name mostly all of it."""
        known = scope.fills.get((state, position))
        if known is None:
            pieces = [position.piece]
            tails: list[tuple[tuple[tuple[int, Value], ...], Position]] = []
            for number, following in state.actions.items():
                (bound,) = self._bind(scope, number, scope.terminals[number])
                walk = bound.lexeme.walk(bound.lexeme.start, position)
                pieces.append(walk.inside)
                for outcome, crossed in walk.crossings:
                    if not len(crossed.nodes):
                        pieces.append(crossed.piece)
                    elif isinstance(following, State) and scope.is_plain(following):
                        further = self._plain_fill(scope, following, crossed)
                        pieces += further.pieces
                        tails += [(((number, outcome), *path), behind) for path, behind in further.tails]
                    else:
                        tails.append((((number, outcome),), crossed))
            known = Fill([piece for piece in pieces if piece.some], tails)
            scope.fills[state, position] = known
        return known


_NOTHING = Live((), end=False)


def _name_parameters(
    before: Configuration, target: Configuration, readings: dict[Thread, tuple[int, Events]]
) -> dict[Thread, tuple[int, Events]]:
    """Tell a parameter's name in the token that decides it, and not again where it is complete."""
    named, naming = before.parameter, target.parameter
    renamed: dict[Thread, tuple[int, Events]] = {}
    for thread, (was_text, events) in readings.items():
        told = next((i for i, event in enumerate(events) if isinstance(event, ParameterOpen)), len(events))
        # Without its completion the same name is still being read; behind it another one may have begun.
        goes_on = named is not None and told == len(events)
        if named is not None:
            events = events[:told] + events[told + 1 :]
        if naming is not None and not goes_on:
            events += _completion(naming.bound.terminal, naming.bound.label, None)
        renamed[thread] = (was_text, events)
    return renamed


def _opening(bound: Bound) -> Events:
    """What is certain before a terminal's first byte: a name where there is no other, the type of a value."""
    if bound.terminal.role is Role.TEXT:
        return (Text(b""),)
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
    if role is Role.NAME:
        return (Name(data),)
    return (Content(data),) if role is Role.CONTENT else (Reasoning(data),)


def _completion(terminal: Terminal, outcome: Value, value: Value) -> Events:
    """What the end of a terminal reveals; `value` is what it pushed."""
    role = terminal.role
    if role is Role.PARAMETER_OPEN:
        member = outcome if isinstance(outcome, Member) else value
        return (ParameterOpen(member.name if isinstance(member, Member | Taken) else ""),)
    if role is Role.NAME_END:
        return (FunctionOpen(""),)  # the pieces of the name came before
    if role is Role.PARAMETER_CLOSE:
        return (ParameterClose(),)
    if role is Role.CALL_CLOSE:
        return (CallClose(),)
    if role is Role.JSON:
        if isinstance(outcome, Member):
            return (Json(outcome.says.encode()),) if outcome.says else ()
        if isinstance(outcome, str) or terminal.says:
            return (Json((terminal.says or str(outcome)).encode()),)
    return ()


def _stopped(terminal: Terminal, label: Value, value: Value) -> Events:
    """What a terminal reveals whose text a stop holds: what is read of it otherwise, and its end."""
    if terminal.role is Role.FUNCTION_OPEN:
        return (FunctionOpen(str(label)),)
    if terminal.role is Role.JSON and not terminal.says and isinstance(terminal.definition, Literal):
        return (Json(terminal.definition.text.encode()),)
    return _completion(terminal, label, value)


def _common(alternatives: list[Events]) -> Events:
    """The events with which all alternatives begin."""
    shared: list[ParseEvent] = []
    for events in zip(*alternatives, strict=False):
        if any(event != events[0] for event in events):
            break
        shared.append(events[0])
    return tuple(shared)
