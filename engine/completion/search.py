"""The shortest way to finish: from every stack and every configuration to the end of the turn.

A search over stacks (Dijkstra, 1959), by bytes. An edge is one terminal in its fewest bytes; a special token
counts as one byte. Equal stacks are one object, so alternatives merge behind each value, and four rules keep
the search linear without losing a shortest way:

- where something may be closed, nothing else is tried;
- of the required members that are missing the first declared one comes next: in any order they take the
  same bytes; where more must come than are named, the one with the shortest text does;
- how an array or object is closed does not depend on where it stands, so from its beginning to its end it is
  one edge, found once;
- a grammar that is entered (a tool's) is never built for it: its shortest text is known in closed form
  (`Sub.shortest`), and once it is built that text is the way through it.

    {" ─▶ a": ─▶ 0 ─▶ } ─▶ } ─▶ </tool_call> ─▶ end        each place on the way knows its rest from then on

Of ways with the same size the first one by its bytes is taken. So the way from a place on a way is the rest
of that way, whoever asks first, and cost falls along it (see `larksong.engine.lexing.path`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from larksong.engine.completion.closed_form import ClosedForms, InnerNode
from larksong.engine.completion.required_members import RequiredMembers, bit_of, name_of
from larksong.engine.grammar.attributes import Close, Seen, Value
from larksong.engine.grammar.grammar import Sub
from larksong.engine.lexing.path import ENDED, LONGEST, UNREACHABLE, Path, Piece, spelled
from larksong.engine.lexing.trie import Position
from larksong.engine.parsing.parser import Parser
from larksong.engine.parsing.stack import BoundTerminal, CompiledGrammar, Configuration, Return, Stack, Thread
from larksong.engine.parsing.tables import END

log = logging.getLogger(__name__)

_FAR = 5_000  # places that a search goes through before it gives up: half a second
_DEEPLY = 20  # searches within searches, long before Python's stack ends


class _End(NamedTuple):
    """Where a special token has ended the turn."""


_END = _End()
Node = InnerNode | _End
"""A place in a turn: between two terminals, or within one."""
Lead = tuple[tuple[Piece, ...], Node]
"""What may be written, and where that leads."""
_Origin = tuple[Node, tuple[Piece, ...]]


class CompletionSearch:
    """Shortest ways to finish the turns of one grammar; found when asked for, and kept.

    `root`: the root of the vocabulary's trie. `special`: its special tokens by their text. `title`: the
    grammar's, for the log. Safe under threads.
    """

    def __init__(self, parser: Parser, root: Position, special: Mapping[str, int], title: str) -> None:
        self._parser = parser
        self._root = root
        self._title = title
        self._paths: dict[Node, Path | None] = {_END: ENDED}
        self._rests: dict[tuple[CompiledGrammar, Hashable], tuple[Piece, ...] | None] = {}
        self._sought: set[tuple[CompiledGrammar, Hashable]] = set()
        self._entered: set[Stack] = set()
        self._lock = threading.RLock()
        self._forms = ClosedForms(parser, special)
        self._members = RequiredMembers(parser)

    def __len__(self) -> int:
        """How many places are known."""
        return len(self._paths)

    def needed(self, configuration: Configuration) -> int:
        """The tokens in which the turn can be finished, the end-of-sequence token included."""
        if configuration.end:
            return 0
        return min(map(self.cost, configuration.threads), default=UNREACHABLE)

    def shortest(self, configuration: Configuration) -> tuple[Piece, ...]:
        """The bytes and special tokens that `needed` counts."""
        if configuration.end:
            return ()
        return tuple(self.path(min(configuration.threads, key=self.cost)) or ())

    def cost(self, node: Node) -> int:
        """The tokens to the end of the turn."""
        path = self.path(node)
        return path.cost(self._root) if path is not None else UNREACHABLE

    def size(self, node: Node) -> int:
        """An upper bound on the cost, quicker to have."""
        path = self.path(node)
        return path.size if path is not None else UNREACHABLE

    def most_inside(self, thread: Thread) -> int:
        """An upper bound on the cost anywhere in the terminal of `thread`, from where it is read on."""
        bound, stack, automaton = thread.bound, thread.stack, thread.bound.automaton
        if self._members.is_required(bound, stack):
            return self.size(stack)  # required members take the same bytes in any order
        longest = automaton.shortest.farthest(thread.state)
        if longest is None:
            return UNREACHABLE
        return longest + max((self.size(node) for _, node, _ in self._all_ends(thread)), default=UNREACHABLE)

    def most_behind(self, thread: Thread, after: Stack) -> int:
        """An upper bound on the cost at `after`, where the terminal of `thread` is complete."""
        return self.size(thread.stack if self._members.is_required(thread.bound, thread.stack) else after)

    # -- the search

    def path(self, start: Node) -> Path | None:
        """The shortest way from a place; None for a dead end."""
        if start in self._paths:
            return self._paths[start]
        # What is found depends on what was known before, and must stay the rest of it.
        with self._lock:
            return self._find_path(start)

    def _find_path(self, start: Node) -> Path | None:
        if not isinstance(start, _End):
            self._follow_closed_forms(start if isinstance(start, Stack) else start.stack)
        if start in self._paths:
            return self._paths[start]
        found = self._search(start)
        if found is None:
            log.debug("the end of %r is out of reach", self._title)
            return self._paths.setdefault(start, None)
        return self._keep(*found)

    def _keep(self, steps: Iterable[_Origin], end: Node) -> Path | None:
        path = self._paths[end]
        for node, pieces in reversed(list(steps)):
            if path is None:
                return None
            for piece in reversed(pieces):
                path = Path(piece, path)
            path = self._paths.setdefault(node, path)
        return path

    def _search(
        self, start: Node, is_end: Callable[[Node], bool] | None = None
    ) -> tuple[list[_Origin], Node] | None:
        """The shortest way to an end: each place with what is written there, and the end.

        Without `is_end` that is a place from which the rest is known, and the rest counts.
        """
        origins: dict[Node, _Origin | None] = {}
        count = 0  # of equal ways the one found first
        heap: list[tuple[int, bytes, int, Node, _Origin | None, bool]] = []
        heappush(heap, (0, b"", count, start, None, False))
        while heap:
            size, text, _, node, origin, arrived = heappop(heap)
            if size > LONGEST or len(origins) > _FAR:
                break
            if arrived:
                return _way(origins, node), node
            if node in origins:
                continue
            origins[node] = origin
            if is_end is not None:
                if is_end(node):
                    return _way(origins, node), node
            elif node in self._paths:
                rest = self._paths[node]
                if rest is None:
                    continue
                count += 1
                whole = text + b"".join(map(spelled, rest))
                heappush(heap, (size + rest.size, whole, count, node, None, True))
                continue
            for pieces, following in self._leads(node):
                if following not in origins:
                    count += 1
                    longer = text + b"".join(map(spelled, pieces))
                    heappush(heap, (len(longer), longer, count, following, (node, pieces), False))
        if is_end is None:
            # The next places on the way ask next: what is as far for them is not searched again.
            for node in origins:
                self._paths.setdefault(node, None)
        return None

    def _leads(self, node: Node) -> Iterator[Lead]:
        """What may be written next, as far as the rules above let it."""
        if isinstance(node, Stack):
            yield from self._begin(node)
        elif isinstance(node, Thread):
            for pieces, following in self.ends(node):
                if pieces:
                    yield pieces, following
                else:
                    yield from self._behind(node)

    def _behind(self, thread: Thread) -> Iterator[Lead]:
        """What may be written where only the next byte tells that the terminal of `thread` is over."""
        automaton = thread.bound.automaton
        stack = self._parser.complete(thread.stack, thread.bound, automaton.outcome(thread.state))
        row = automaton.row(thread.state)
        for pieces, following in self._written(stack) if stack is not None else ():
            if isinstance(pieces[0], int) or row[pieces[0][0]] < 0:
                yield pieces, following

    def _written(self, node: Node) -> Iterator[Lead]:
        """What may be written next, terminals that may be empty left out."""
        for pieces, following in self._leads(node):
            if pieces:
                yield pieces, following
            else:
                yield from self._written(following)

    def ends(self, thread: Thread) -> list[Lead]:
        """The shortest rests of a terminal."""
        ends = self._all_ends(thread)
        closing = any(closes for _, _, closes in ends)
        return [(pieces, node) for pieces, node, closes in ends if closes or not closing]

    def _all_ends(self, thread: Thread) -> list[tuple[tuple[Piece, ...], Node, bool]]:
        """For each outcome the shortest rest, where it leads, and whether it closes something."""
        bound, stack, automaton = thread.bound, thread.stack, thread.bound.automaton
        if automaton.special:
            after = self._parser.complete(stack, bound, None)
            if after is None:
                return []
            return [((min(automaton.special),), _END if self._is_over(after) else _plain(after), False)]
        found: list[tuple[tuple[Piece, ...], Node, bool]] = []
        for text, state in automaton.shortest.from_state(thread.state):
            outcome = automaton.outcome(state)
            after = self._parser.complete(stack, bound, outcome)
            if after is not None:
                node = _plain(after) if automaton.final(state) else stack.thread(bound, state)
                found.append(((text,) if text else (), node, _closes(bound, stack, outcome)))
        return found

    def _begin(self, stack: Stack) -> list[Lead]:
        """What may be written on a stack."""
        found: list[Lead] = []
        closed: list[Lead] = []
        names: list[tuple[BoundTerminal, Stack]] = []
        for number in stack.state.actions:
            if number == END:
                caller = self._return(stack)
                found += self._begin(caller) if caller is not None else ()
                continue
            terminal = stack.compiled.terminals[number]
            if isinstance(terminal.definition, Sub):
                after = self._parser.shift(stack, number)
                if after is not None:
                    found.append((self._forms.pieces(terminal.definition, stack.value), after))
                continue
            live = self._parser.live_terminal(stack, number).terminals
            if name_of(terminal.predicate) is not None:
                names += live
                continue
            kind = closed if isinstance(terminal.predicate, Close) else found
            for bound, where in live:
                kind += self._whole(_start(bound, where))
        if closed:
            return closed
        return found + [lead for each in self._next_names(names) for lead in self.ends(_start(*each))]

    # -- parts that are found once

    def _whole(self, thread: Thread) -> list[Lead]:
        """A terminal, or all of an array or object that it begins."""
        leads = self.ends(thread)
        origin = self._members.outline(thread.stack.compiled).containers.get(thread.bound.number)
        if origin is None or len(leads) != 1:
            return leads
        ((opener, opened),) = leads
        if not isinstance(opened, Stack) or opened.parent is None:
            return leads
        closed = self._settled(opened.parent.push(opened.parent.state.gotos[origin], None))
        rest = self._rest(opened, origin, closed)
        return [((*opener, *rest), closed)] if rest is not None else leads

    def _rest(self, opened: Stack, what: Hashable, closed: Stack | None = None) -> tuple[Piece, ...] | None:
        """What is written until all that the top of `opened` has begun is over; `what`: its name there.

        None if it does not lead to `closed`: a text inside may end together with what is around it.
        """
        key = (opened.compiled, what)
        # One inside itself, and what is nested deeply, is written out by the search that asks.
        if key in self._rests or key in self._sought or len(self._sought) > _DEEPLY:
            return self._rests.get(key)
        self._sought.add(key)
        found = self._search(opened, lambda node: self._is_behind(node, opened))
        self._sought.discard(key)
        if found is not None and (closed is None or found[1] is closed):
            self._rests[key] = tuple(piece for _, pieces in found[0] for piece in pieces)
        else:
            self._rests[key] = None
        return self._rests[key]

    def _is_behind(self, node: Node, opened: Stack) -> bool:
        if isinstance(node, Thread):
            automaton = node.bound.automaton
            if not automaton.accepts(node.state):
                return False
            after = self._parser.complete(node.stack, node.bound, automaton.outcome(node.state))
            return after is not None and not _stands_on(after, opened)
        return isinstance(node, Stack) and not _stands_on(node, opened)

    # -- grammars that are entered

    def _follow_closed_forms(self, stack: Stack) -> None:
        """Make the closed form of each grammar that `stack` is in the way through it, the outermost first.

        Whoever counted on that text before the grammar was built must find it there.
        """
        entered: list[tuple[Stack, Stack, Return]] = []
        below: Stack | None = stack
        while below is not None:
            value, caller = below.value, below.parent
            if isinstance(value, Return) and caller is not None and below not in self._entered:
                entered.append((below, caller, value))
            below = caller
        for bottom, caller, value in reversed(entered):
            self._entered.add(bottom)
            definition = caller.compiled.terminals[value.terminal].definition
            after = self._parser.shift(caller, value.terminal)
            path = self.path(after) if after is not None else None
            if path is not None and isinstance(definition, Sub):
                for node, way in self._forms.way(bottom, definition, caller.value, path):
                    self._paths.setdefault(node, way)

    # -- members

    def _next_names(self, names: list[tuple[BoundTerminal, Stack]]) -> list[tuple[BoundTerminal, Stack]]:
        """The members' names to try where one of `names` must be written."""
        if len(names) < 2:
            return names
        wanted = self._members.wanted(*names[0])
        chosen = [each for each in names if bit_of(each[0]) & wanted]
        # Where no certain one is, any member must follow: a separator was written, or so many are required.
        return chosen or [min(names, key=lambda each: self._member(*each))]

    def _member(self, bound: BoundTerminal, stack: Stack) -> tuple[int, bytes]:
        """The size and text of the shortest member with this name."""
        text = b""
        for pieces, after in self.ends(_start(bound, stack)):
            rest = self._rest(after, (bound.number, bound.label)) if isinstance(after, Stack) else None
            text = b"".join(map(spelled, (*pieces, *(rest or ()))))
        return len(text), text

    # -- the parser

    def _settled(self, stack: Stack) -> Stack:
        """The stack after the reductions that come whatever follows."""
        while stack.state.only is not None:
            stack = self._parser.reduce(stack, stack.state.only)
        return stack

    def _return(self, stack: Stack) -> Stack | None:
        """The caller's stack behind a sub-grammar that is complete."""
        bottom = self._parser.leave(stack)
        if bottom is None or bottom.parent is None:
            return None
        assert isinstance(bottom.value, Return)
        return self._parser.shift(bottom.parent, bottom.value.terminal)

    def _is_over(self, stack: Stack) -> bool:
        bottom = self._parser.leave(stack) if END in stack.state.actions else None
        return bottom is not None and bottom.parent is None


def _start(bound: BoundTerminal, stack: Stack) -> Thread:
    return stack.thread(bound, bound.automaton.start)


def _way(origins: dict[Node, _Origin | None], node: Node) -> list[_Origin]:
    steps: list[_Origin] = []
    while (origin := origins[node]) is not None:
        steps.append(origin)
        node = origin[0]
    return steps[::-1]


def _plain(stack: Stack) -> Stack:
    """The stack without the optional members that were written: behind a separator they make no difference.

    Where no required one is missing, they do: then some other one must follow.
    """
    below = stack.parent
    if below is None or below.parent is None or not isinstance(below.value, Seen):
        return stack
    members, mask = below.value
    if not members.required & ~mask or not mask & ~members.required:
        return stack
    return below.parent.push(below.state, Seen(members, mask & members.required)).push(
        stack.state, stack.value
    )


def _stands_on(stack: Stack | None, below: Stack) -> bool:
    while stack is not None and stack is not below:
        stack = stack.parent
    return stack is not None


def _closes(bound: BoundTerminal, stack: Stack, outcome: Value) -> bool:
    """Whether the terminals that a text's stop completes close something."""
    text, compiled = bound.automaton.text, stack.compiled
    names = text.stops[outcome].terminals if text is not None and isinstance(outcome, int) else ()
    numbers = (compiled.number[name] for name in names if name in compiled.number)
    return any(isinstance(compiled.terminals[number].predicate, Close) for number in numbers)
