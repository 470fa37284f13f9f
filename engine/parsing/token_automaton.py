"""The token automaton of one grammar: configurations, masks and edges, found lazily and kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from larksong.engine.events import Events, FunctionOpen
from larksong.engine.grammar.grammar import Grammar, Sub
from larksong.engine.lexing.terminal_automata import TerminalAutomata
from larksong.engine.lexing.trie import TokenSet
from larksong.engine.parsing.emitted_events import common
from larksong.engine.parsing.masks import Masks
from larksong.engine.parsing.parser import Parser
from larksong.engine.parsing.stack import Configuration, Edge, Stack
from larksong.engine.parsing.transitions import Transitions
from larksong.engine.vocabulary import Vocabulary

# Measured with tracemalloc on coding tools, rounded up: what one entry of each kind takes with all it holds.
_CONFIGURATION_BYTES = 3000
_EDGE_BYTES = 300


class TokenAutomaton:
    """The token automaton of `grammar` over `vocabulary`.

    Safe under threads: what is found twice at the same time is the same, and the first to store it wins.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, terminal_automata: TerminalAutomata) -> None:
        self.vocabulary = vocabulary
        self.grammar = grammar
        self.trie = terminal_automata.trie
        self.parser = Parser(terminal_automata)
        self.transitions = Transitions(self.parser, vocabulary.tokens)
        ends = TokenSet([i for i in vocabulary.eos_ids if i < vocabulary.width], None)
        self.masks = Masks(self.parser, self.trie, ends, grammar.title)
        self.end_mask = self.masks.end
        self._edge_count = 0
        compiled = self.parser.compile(grammar)
        beginning = self.transitions.fresh(Stack(None, compiled, compiled.tables.start, None))
        self.start = self.transitions.configuration([thread for thread, _ in beginning])
        self.start_events: Events = common([events for _, events in beginning])

    def size(self) -> int:
        """Roughly how many bytes the automaton takes by now."""
        configurations = len(self.transitions.configurations) * _CONFIGURATION_BYTES
        return configurations + self._edge_count * _EDGE_BYTES + self.masks.size()

    def mask(self, configuration: Configuration) -> NDArray[np.int32]:
        """The tokens that may follow: packed words, read-only, the same object for the same set."""
        return self.masks.of(configuration)

    def edge(self, configuration: Configuration, token: int) -> Edge | None:
        """Where a token leads, or None where it is refused."""
        try:
            return configuration.edges[token]
        except KeyError:
            self._edge_count += 1
            edge = self.transitions.find(configuration, token)
            for event in edge.events if edge is not None else ():
                if isinstance(event, FunctionOpen):
                    self._prepare(event.name)
            return configuration.edges.setdefault(token, edge)

    def _prepare(self, function: str) -> None:
        """Make a function's grammar as soon as its name is certain: no mask has to wait for it then."""
        for terminal in self.grammar.terminals.values():
            if isinstance(terminal.definition, Sub):
                self.parser.compile(terminal.definition.choose(function))
