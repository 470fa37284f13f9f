"""The shortest way to finish: from every stack and every configuration to the end of the turn.

A search over stacks (Dijkstra, 1959), by bytes. An edge is one terminal in its fewest bytes; a special token
counts as one byte. Equal stacks are one object, so alternatives merge behind each value, and four rules keep
the search linear without losing a shortest way:

- where something may be closed, nothing else is tried;
- of the members that are still owed the first declared one comes next: in any order they take the same bytes;
- how an array or object is closed does not depend on where it stands, so from its beginning to its end it is
  one edge, found once;
- a tool's grammar is never built for it: its arguments have a shortest text in closed form (`Sub.shortest`).

    {" ─▶ a": ─▶ 0 ─▶ } ─▶ } ─▶ </tool_call> ─▶ end        each place on the way knows its rest from then on

Of ways with the same size the first one by its bytes is taken. So the way from a place on a way is the rest
of that way, whoever asks first, and cost falls along it (see `larksong.engine.path`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from larksong.engine.attributes import Close, Key, Member, Seen, Value
from larksong.engine.outline import Outline
from larksong.engine.path import ENDED, UNREACHABLE, Path, Piece, spelled
from larksong.engine.shortest import farthest, shortest_ends
from larksong.engine.stack import Bound, Configuration, Return, Scope, Stack, Thread
from larksong.engine.tables import END
from larksong.engine.terminals import Sub

if TYPE_CHECKING:
    from larksong.engine.automaton import Automaton

log = logging.getLogger(__name__)

_DEEPLY = 20  # searches within searches, long before Python's stack ends


class _End(NamedTuple):
    """Where a special token has ended the turn."""


_END = _End()
Node = Stack | Thread | _End
"""A place in a turn: between two terminals, or within one."""
Lead = tuple[Piece, Node]
"""A piece that may be written, and where that leads."""


class Closing:
    """Shortest ways to finish the turns of one automaton; found when asked for, and kept.

    Safe under threads: what is found twice is the same.
    """

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._root = automaton._trie.root
        self._paths: dict[Node, Path | None] = {_END: ENDED}
        self._rests: dict[tuple[Scope, int], bytes] = {}
        self._sought: set[tuple[Scope, int]] = set()
        self._outlines: dict[Scope, Outline] = {}

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
        bound, stack, lexeme = thread.bound, thread.stack, thread.bound.lexeme
        if self._is_owed(bound, stack):
            return self.size(stack)  # the owed names take the same bytes in any order
        longest = farthest(lexeme, thread.state)
        if longest is None:
            return UNREACHABLE
        return longest + max((self.size(node) for _, node, _ in self._all_ends(thread)), default=UNREACHABLE)

    def most_behind(self, thread: Thread, after: Stack) -> int:
        """An upper bound on the cost at `after`, where the terminal of `thread` is complete."""
        return self.size(thread.stack if self._is_owed(thread.bound, thread.stack) else after)

    # -- the search

    def path(self, start: Node) -> Path | None:
        """The shortest way from a place; None for a dead end."""
        if start in self._paths:
            return self._paths[start]
        found = self._search(start, self._paths.get)
        if found is None:
            log.error("no way to the end in the grammar %r", self._automaton.grammar.title)
            return self._paths.setdefault(start, None)
        steps, end = found
        path = self._paths[end]
        for node, piece in reversed(steps):
            path = self._paths.setdefault(node, Path(piece, path))
        return path

    def _search(
        self, start: Node, known: Callable[[Node], Path | None]
    ) -> tuple[list[tuple[Node, Piece]], Node] | None:
        """The shortest way to a place from which the rest is known: each place with what is written there."""
        origins: dict[Node, tuple[Node, Piece] | None] = {}
        count = 0  # of equal ways the one found first
        heap: list[tuple[int, bytes, int, Node, tuple[Node, Piece] | None, bool]] = []
        heappush(heap, (0, b"", count, start, None, False))
        while heap:
            size, text, _, node, origin, arrived = heappop(heap)
            if arrived:
                return _way(origins, node), node
            if node in origins:
                continue
            origins[node] = origin
            rest = known(node)
            if rest is not None:
                count += 1
                whole = text + b"".join(map(spelled, rest))
                heappush(heap, (size + rest.size, whole, count, node, None, True))
                continue
            for piece, following in self._leads(node):
                if following not in origins:
                    count += 1
                    longer = text + spelled(piece)
                    heappush(heap, (len(longer), longer, count, following, (node, piece), False))
        return None

    def _leads(self, node: Node) -> Iterator[Lead]:
        """What may be written next, as far as the rules above let it."""
        if isinstance(node, Stack):
            yield from self._begin(node)
        elif isinstance(node, Thread):
            for piece, following in self.ends(node):
                if piece:
                    yield piece, following
                else:
                    yield from self._behind(node)

    def _behind(self, thread: Thread) -> Iterator[Lead]:
        """What may be written where only the next byte tells that the terminal of `thread` is over."""
        lexeme = thread.bound.lexeme
        stack = self.complete(thread.bound, thread.stack, lexeme.outcome(thread.state))
        row = lexeme.row(thread.state)
        for piece, following in self._begin(stack) if stack is not None else ():
            if isinstance(piece, int) or not piece or row[piece[0]] < 0:
                yield piece, following

    def ends(self, thread: Thread) -> list[Lead]:
        """The shortest rests of a terminal."""
        ends = self._all_ends(thread)
        closing = any(closes for _, _, closes in ends)
        return [(text, node) for text, node, closes in ends if closes or not closing]

    def _all_ends(self, thread: Thread) -> list[tuple[Piece, Node, bool]]:
        """For each outcome the shortest rest, where it leads, and whether it closes something."""
        bound, stack, lexeme = thread.bound, thread.stack, thread.bound.lexeme
        if lexeme.special:
            after = self.complete(bound, stack, None)
            if after is None:
                return []
            return [(min(lexeme.special), _END if self._is_over(after) else after, False)]
        found: list[tuple[Piece, Node, bool]] = []
        for text, state in shortest_ends(lexeme, thread.state):
            outcome = lexeme.outcome(state)
            after = self.complete(bound, stack, outcome)
            if after is not None:
                node = _plain(after) if lexeme.final(state) else stack.thread(bound, state)
                found.append((text, node, _closes(bound, stack, outcome)))
        return found

    def _begin(self, stack: Stack) -> list[Lead]:
        """What may be written on a stack."""
        automaton = self._automaton
        found: list[Lead] = []
        closed: list[Lead] = []
        for number in stack.state.actions:
            if number == END:
                caller = self._return(stack)
                found += self._begin(caller) if caller is not None else ()
                continue
            terminal = stack.scope.terminals[number]
            if isinstance(terminal.definition, Sub):
                after = automaton._shift(stack, number)
                if after is not None:
                    found.append((terminal.definition.shortest(stack.value).encode(), after))
                continue
            kind = closed if isinstance(terminal.predicate, Close) else found
            live = automaton._live_terminal(stack, number).terminals
            if live and isinstance(terminal.predicate, Key):
                owed = self._owed(*live[0])
                # Nothing may be owed although a separator was written: then any member must follow.
                live = tuple(each for each in live if not owed or _bit(each[0]) == owed & -owed)
            for bound, where in live:
                kind += self._whole(where.thread(bound, bound.lexeme.start))
        return closed or found

    def _whole(self, thread: Thread) -> list[Lead]:
        """A terminal, or all of an array or object that it begins."""
        leads = self.ends(thread)
        origin = self._outline(thread.stack.scope).units.get(thread.bound.number)
        if origin is None or len(leads) != 1:
            return leads
        ((opener, opened),) = leads
        if not isinstance(opened, Stack) or not isinstance(opener, bytes):
            return leads
        rest, base = self._rest(opened, origin), opened.parent
        if rest is None or base is None:
            return leads
        return [(opener + rest, self._settled(base.push(base.state.gotos[origin], None)))]

    def _rest(self, opened: Stack, origin: int) -> bytes | None:
        """The shortest text from the beginning of an array or object to its end."""
        key = (opened.scope, origin)
        # One inside itself, and what is nested deeply, is written out by the search that asks.
        if key in self._rests or key in self._sought or len(self._sought) > _DEEPLY:
            return self._rests.get(key)

        def complete(node: Node) -> Path | None:
            return ENDED if isinstance(node, Stack) and not _stands_on(node, opened) else None

        self._sought.add(key)
        found = self._search(opened, complete)
        self._sought.discard(key)
        if found is not None:
            self._rests[key] = b"".join(spelled(piece) for _, piece in found[0])
        return self._rests.get(key)

    # -- members

    def _is_owed(self, bound: Bound, stack: Stack) -> bool:
        """Whether this is the name of a member that is still owed."""
        return isinstance(bound.terminal.predicate, Key) and bool(_bit(bound) & self._owed(bound, stack))

    def _owed(self, bound: Bound, stack: Stack) -> int:
        """The members that are owed where a name is written."""
        after = self._automaton._shift(stack, bound.number, bound.label)
        if after is None or after.parent is None or after.parent.parent is None:
            return 0
        seen = after.parent.parent.value
        if isinstance(seen, Seen):
            return seen.members.required & ~seen.mask
        return self._outline(after.scope).members_begun(after.parent).required

    def _outline(self, scope: Scope) -> Outline:
        found = self._outlines.get(scope)
        if found is None:
            grammar = next(each for each, its in list(self._automaton._scopes.items()) if its is scope)
            found = self._outlines.setdefault(scope, Outline(grammar, scope))
        return found

    # -- the parser

    def complete(self, bound: Bound, stack: Stack, outcome: Value) -> Stack | None:
        """The stack after a terminal with this outcome, and after what its text has committed."""
        text = bound.lexeme.text
        label = outcome if text is None and bound.label is None else bound.label
        after = self._automaton._shift(stack, bound.number, label)
        if text is not None and isinstance(outcome, int):
            after = self._automaton._shift_all(after, text.stops[outcome])
        return after

    def _settled(self, stack: Stack) -> Stack:
        """The stack after the reductions that come whatever follows."""
        while stack.state.only is not None:
            stack = self._automaton._reduce(stack, stack.state.only)
        return stack

    def _return(self, stack: Stack) -> Stack | None:
        """The caller's stack behind a sub-grammar that is complete."""
        bottom = self._automaton._leave(stack)
        if bottom is None or bottom.parent is None:
            return None
        assert isinstance(bottom.value, Return)
        return self._automaton._shift(bottom.parent, bottom.value.terminal)

    def _is_over(self, stack: Stack) -> bool:
        bottom = self._automaton._leave(stack) if END in stack.state.actions else None
        return bottom is not None and bottom.parent is None


def _bit(bound: Bound) -> int:
    return bound.label.bit if isinstance(bound.label, Member) else 0


def _way(origins: dict[Node, tuple[Node, Piece] | None], node: Node) -> list[tuple[Node, Piece]]:
    steps: list[tuple[Node, Piece]] = []
    while (origin := origins[node]) is not None:
        steps.append(origin)
        node = origin[0]
    return steps[::-1]


def _plain(stack: Stack) -> Stack:
    """The stack without the optional members that were written: behind a separator they make no difference.

    Where no member is owed, they do: then some other one must follow.
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


def _closes(bound: Bound, stack: Stack, outcome: Value) -> bool:
    """Whether the terminals that a text's stop completes close something."""
    text, scope = bound.lexeme.text, stack.scope
    names = text.stops[outcome].terminals if text is not None and isinstance(outcome, int) else ()
    return any(isinstance(scope.terminals[scope.number[name]].predicate, Close) for name in names)
