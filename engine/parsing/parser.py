"""The parser: Lark's LALR tables, stepped on interned, persistent stacks, and what may follow a stack.

A grammar may enter others (`Sub`): they stand on the same stack and are left where their start symbol is
complete, so the parser looks through their beginnings and ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from larksong.engine.automata.text_until import Stop
from larksong.engine.grammar.attributes import Value
from larksong.engine.grammar.grammar import Grammar, Sub, Terminal
from larksong.engine.grammar.terminals import Keys, Literal, TextUntil
from larksong.engine.lexing.terminal_automata import TerminalAutomata
from larksong.engine.parsing.stack import BoundTerminal, CompiledGrammar, Live, Return, Stack, Thread
from larksong.engine.parsing.tables import END, Production


class Parser:
    """Steps the tables of a grammar and of those that it enters.

    Safe under threads: what is found twice at the same time is the same, and the first to store it wins.
    """

    def __init__(self, terminal_automata: TerminalAutomata) -> None:
        self._terminal_automata = terminal_automata
        self.compiled: dict[Grammar, CompiledGrammar] = {}

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        """A grammar on the vocabulary, made when it is first needed."""
        compiled = self.compiled.get(grammar)
        if compiled is None:
            compiled = self.compiled.setdefault(grammar, CompiledGrammar(grammar))
        return compiled

    def shift(self, stack: Stack, terminal: int, label: Value = None) -> Stack | None:
        """The stack after a terminal, reductions first; None where the table or an attribute refuses it."""
        key = (terminal, label)
        try:
            return stack.shifts[key]
        except KeyError:
            return stack.shifts.setdefault(key, self._parse(stack, terminal, label))

    def complete(self, stack: Stack, bound: BoundTerminal, outcome: Value) -> Stack | None:
        """The stack after a terminal with this outcome, and after what its text has committed."""
        after = self.shift(stack, bound.number, bound.label_of(outcome))
        text = bound.automaton.text
        if text is not None and isinstance(outcome, int):
            after = self.shift_all(after, text.stops[outcome])
        return after

    def _parse(self, stack: Stack, terminal: int, label: Value) -> Stack | None:
        while True:
            action = stack.state.actions.get(terminal)
            if action is None:
                return None
            if isinstance(action, Production):
                stack = self.reduce(stack, action)
                continue
            predicate = stack.compiled.terminals[terminal].predicate
            value = label
            if predicate is not None:
                value = predicate(stack.value, stack.parent.value if stack.parent else None, label)
                if value is None:
                    return None
            stack = stack.push(action, value)
            while stack.state.only is not None:
                stack = self.reduce(stack, stack.state.only)
            return stack

    @staticmethod
    def reduce(stack: Stack, production: Production) -> Stack:
        """The stack after a reduction."""
        action = stack.compiled.actions[production.index]
        values = []
        for _ in range(production.size):
            values.append(stack.value)
            assert stack.parent is not None
            stack = stack.parent
        value = action(tuple(reversed(values))) if action else None
        return stack.push(stack.state.gotos[production.origin], value)

    def leave(self, stack: Stack) -> Stack | None:
        """The bottom entry of a grammar whose start symbol is complete, else None."""
        accept = stack.compiled.tables.accept
        while stack.state is not accept:
            action = stack.state.actions.get(END)
            if not isinstance(action, Production):
                return None
            stack = self.reduce(stack, action)
        return stack.parent

    def begin(self, stack: Stack) -> tuple[Thread, ...]:
        """The threads that begin on a stack."""
        if stack.begun is None:
            begun = [
                where.thread(bound, bound.automaton.start) for bound, where in self.live(stack).terminals
            ]
            # Readings as JSON come first: where two readings meet again, the typed one is kept.
            stack.begun = tuple(sorted(begun, key=lambda thread: thread.reading))
        return stack.begun

    def live(self, stack: Stack) -> Live:
        """What may follow, through the ends and the beginnings of sub-grammars."""
        if stack.live is None:
            found: list[tuple[BoundTerminal, Stack]] = []
            end = False
            for terminal in stack.state.actions:
                if terminal == END:
                    following = self._live_after_end(stack)
                else:
                    following = self.live_terminal(stack, terminal)
                found += following.terminals
                end = end or following.end
            stack.live = Live(tuple(found), end)
        return stack.live

    def _live_after_end(self, stack: Stack) -> Live:
        bottom = self.leave(stack)
        if bottom is None:
            return _NOTHING
        if bottom.parent is None:
            return Live((), end=True)
        assert isinstance(bottom.value, Return)
        caller = self.shift(bottom.parent, bottom.value.terminal)
        return self.live(caller) if caller is not None else _NOTHING

    def live_terminal(self, stack: Stack, number: int) -> Live:
        """What may follow, as far as it begins with one terminal of the stack's own grammar."""
        terminal = stack.compiled.terminals[number]
        definition = terminal.definition
        if isinstance(definition, Keys):
            return Live(tuple((word, stack) for word in self._live_words(stack, number, terminal)), end=False)
        shifted = self.shift(stack, number)
        if shifted is None:
            return _NOTHING
        if isinstance(definition, Sub):
            compiled = self.compile(definition.choose(stack.value))
            return Live(self.live(stack.enter(compiled, number)).terminals, end=False)
        refused: frozenset[int] = frozenset()
        if isinstance(definition, TextUntil) and definition.stops:
            refused = frozenset(
                index for index, stop in enumerate(definition.stops) if self.shift_all(shifted, stop) is None
            )
            if len(refused) == len(definition.stops) and not definition.open_end:
                return _NOTHING
        (bound,) = self.bind(stack.compiled, number, terminal, refused)
        return Live(((bound, stack),), end=False)

    def _live_words(self, stack: Stack, number: int, terminal: Terminal) -> Iterable[BoundTerminal]:
        """The names that may come: all wait for the same reductions; only the predicate tells them apart."""
        words = self.bind(stack.compiled, number, terminal)
        action = stack.state.actions[number]
        while isinstance(action, Production):
            stack = self.reduce(stack, action)
            following = stack.state.actions.get(number)
            if following is None:
                return ()
            action = following
        allowed = terminal.predicate
        if allowed is None:
            return words
        top, below = stack.value, stack.parent.value if stack.parent else None
        return [word for word in words if allowed(top, below, word.label) is not None]

    def shift_all(self, stack: Stack | None, stop: Stop) -> Stack | None:
        """The stack after all terminals that a text's stop completes."""
        for name, label in stop.shifts():
            # A terminal that no rule has is refused like one that may not come here.
            number = stack.compiled.number.get(name) if stack is not None else None
            if stack is None or number is None:
                return None
            stack = self.shift(stack, number, label)
        return stack

    def bind(
        self,
        compiled: CompiledGrammar,
        number: int,
        terminal: Terminal,
        refused: frozenset[int] = frozenset(),
    ) -> tuple[BoundTerminal, ...]:
        """A terminal with its automaton; of `Keys`, each word. `refused`: stops that may not come."""
        key = (number, refused)
        bound = compiled.bound.get(key)
        if bound is None:
            definition = terminal.definition
            assert not isinstance(definition, Sub)
            if isinstance(definition, Keys):
                made = tuple(
                    BoundTerminal(number, terminal, self._terminal_automata.get(Literal(text)), label)
                    for text, label in definition.words
                )
            else:
                if refused and isinstance(definition, TextUntil):
                    definition = definition.without(refused)
                made = (BoundTerminal(number, terminal, self._terminal_automata.get(definition)),)
            bound = compiled.bound.setdefault(key, made)
        return bound


_NOTHING = Live((), end=False)
