"""The engine: everything that is shared by all requests over one vocabulary."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from larksong.engine.completion.budget_masks import BudgetMasks
from larksong.engine.errors import NoEndToken
from larksong.engine.forced import Encode, ForcedTokens
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.lexing.disk_cache import content, load, path_for, restore_walks, save
from larksong.engine.lexing.terminal_automata import TerminalAutomata
from larksong.engine.lexing.trie import Trie
from larksong.engine.matcher import Matcher
from larksong.engine.parsing.token_automaton import TokenAutomaton
from larksong.engine.reading.byte_automaton import ByteAutomaton
from larksong.engine.vocabulary import Vocabulary

log = logging.getLogger(__name__)

DEFAULT_CACHE_BYTES = 256 << 20
_KEPT_AUTOMATA = 2048
"""at most: who makes grammars keeps fewer, and nobody asks again for the automaton of one that is gone"""
_MEASURED = 16
"""kept grammars that are measured anew, in turn, for each one that is asked for: to measure all takes long"""


class _Kept(NamedTuple):
    """What all sequences of one grammar share."""

    automaton: TokenAutomaton
    budget_masks: BudgetMasks
    byte_automaton: ByteAutomaton

    def size(self) -> int:
        """Roughly how many bytes it takes by now."""
        return sum(part.size() for part in self)


class Engine:
    """Makes matchers; one engine serves all requests over a vocabulary, from any thread.

    Automata of grammars are kept, least recently used out first, while all of them take less than
    `cache_bytes` and they are not too many; sequences that still run on one that was let go keep it. Grammars
    are compared by identity: whoever makes them keeps equal ones as one object. `disk_cache`: the folder for
    what `warm_up` makes, None for the user's cache folder. `encode`: how the model's tokenizer writes text in
    the middle of a turn; without it `Matcher.forced` knows special tokens alone.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        disk_cache: Path | None = None,
        encode: Encode | None = None,
    ) -> None:
        if not vocabulary.eos_ids:
            raise NoEndToken
        self.vocabulary = vocabulary
        self._path = path_for(vocabulary.fingerprint, disk_cache)
        arrays = load(self._path)
        self._loaded = arrays is not None
        self.trie = Trie(vocabulary.tokens, vocabulary.width, arrays)
        self._terminal_automata = TerminalAutomata(self.trie)
        self._forced = ForcedTokens(vocabulary, self.trie, encode)
        if arrays is not None:
            restore_walks(self._terminal_automata, arrays)
        self._grammars: OrderedDict[int, _Kept] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._due: list[int] = []
        """the grammars whose turn it is to be measured"""
        self._cache_bytes = cache_bytes
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Do now, and keep on disk, what does not depend on any request. Takes about a second once."""
        self._terminal_automata.warm_up()
        if not self._loaded:
            save(self._path, content(self._terminal_automata))
            self._loaded = True

    def automaton(self, grammar: Grammar) -> TokenAutomaton:
        """The token automaton of a grammar: the same one as long as it is kept."""
        return self._keep(grammar).automaton

    def byte_automaton(self, grammar: Grammar) -> ByteAutomaton:
        """The same for reading text that is not in tokens."""
        return self._keep(grammar).byte_automaton

    def matcher(self, grammar: Grammar) -> Matcher:
        """A matcher at the beginning of a turn."""
        kept = self._keep(grammar)
        return Matcher(kept.automaton, kept.budget_masks, self._forced)

    def _keep(self, grammar: Grammar) -> _Kept:
        with self._lock:
            found = self._grammars.pop(id(grammar), None)
            if found is None or found.size() > self._cache_bytes // 2:
                # An automaton grows with what is written; one that has grown too large is begun anew.
                found = self._make(grammar)
            self._sizes.pop(id(grammar), None)
            self._make_room()
            self._grammars[id(grammar)], self._sizes[id(grammar)] = found, found.size()
        return found

    def _make(self, grammar: Grammar) -> _Kept:
        automaton = TokenAutomaton(grammar, self.vocabulary, self._terminal_automata)
        special, title = self.vocabulary.special, grammar.title
        budget_masks = BudgetMasks(automaton.parser, automaton.masks, self.trie.root, special, title)
        return _Kept(automaton, budget_masks, ByteAutomaton(automaton))

    def _make_room(self) -> None:
        self._due = self._due or list(self._grammars)
        for key in self._due[-_MEASURED:]:
            if key in self._grammars:
                self._sizes[key] = self._grammars[key].size()
        del self._due[-_MEASURED:]
        total = sum(self._sizes.values())
        while self._grammars and (total > self._cache_bytes or len(self._grammars) >= _KEPT_AUTOMATA):
            oldest, _ = self._grammars.popitem(last=False)
            total -= self._sizes.pop(oldest)
        if self._terminal_automata.meter.bytes > self._cache_bytes // 2:
            self._terminal_automata.forget()
