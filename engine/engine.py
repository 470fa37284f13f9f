"""The engine: everything that is shared by all requests over one vocabulary."""

from __future__ import annotations

import threading
from collections import OrderedDict

from larksong.engine.automaton import Automaton, Lexemes
from larksong.engine.errors import NoEndToken
from larksong.engine.grammar import Grammar
from larksong.engine.matcher import Matcher
from larksong.engine.trie import Trie
from larksong.engine.vocabulary import Vocabulary


class Engine:
    """Makes matchers; one engine serves all requests over a vocabulary, from any thread.

    The automata of the last `automata` grammars are kept. Grammars are compared by identity: whoever makes
    them keeps equal ones as one object.
    """

    def __init__(self, vocabulary: Vocabulary, automata: int = 64) -> None:
        if not vocabulary.eos_ids:
            raise NoEndToken
        self.vocabulary = vocabulary
        self.trie = Trie(vocabulary.tokens, vocabulary.width)
        self._lexemes = Lexemes(self.trie)
        self._automata: OrderedDict[int, Automaton] = OrderedDict()
        self._limit = automata
        self._lock = threading.Lock()

    def automaton(self, grammar: Grammar) -> Automaton:
        """The token automaton of a grammar: the same one as long as it is kept."""
        with self._lock:
            found = self._automata.get(id(grammar))
            if found is None:
                found = self._automata[id(grammar)] = Automaton(grammar, self.vocabulary, self._lexemes)
                if len(self._automata) > self._limit:
                    self._automata.popitem(last=False)
            self._automata.move_to_end(id(grammar))
        return found

    def matcher(self, grammar: Grammar) -> Matcher:
        """A matcher at the beginning of a turn."""
        return Matcher(self.automaton(grammar))
