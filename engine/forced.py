"""Forced tokens: what must come next, in the tokens that the model's own tokenizer would write it with.

    ⟨parameter=⟩⟨file⟩ ─▶ forced text "Path>\\n" ─▶ ⟨Path⟩⟨>\\n⟩ ─▶ ⟨Path⟩
                          one byte can follow       encoded with    a value may begin with a line break
                          at every place            what is before  and ⟨>\\n\\n⟩ is a token: ⟨>\\n⟩ is open

llguidance calls them fast-forward tokens, and SGLang the method jump-forward decoding. Likely tokens, which
are not certain, are draft tokens as in speculative decoding: a model checks them.

A model that is fed other tokens than its tokenizer makes of a text answers worse. So of the forced text only
those tokens are given that stay the same whatever legal text comes behind it:

1. No token of the vocabulary may begin inside a given one and reach over the end of the forced text into
   something legal (the straddle test). Within a word of the pre-tokenizer nothing else can change a token.
2. Where words end may depend on the text behind too. So the text is encoded with each kind of character that
   may come next (the probes), and only the tokens that all these encodings share are given.

Text before a special token is cut off from what follows and needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import takewhile

import numpy as np

from larksong.engine.automata.dfa import DEAD
from larksong.engine.lexing.terminal_automaton import TerminalAutomaton
from larksong.engine.lexing.trie import Position, Trie
from larksong.engine.packed import allows_each
from larksong.engine.parsing.plan import Plan, Tokens
from larksong.engine.parsing.stack import Configuration
from larksong.engine.parsing.token_automaton import TokenAutomaton
from larksong.engine.vocabulary import Vocabulary

Encode = Callable[[str], Sequence[int]]
"""Text in the middle of a turn → token ids, nothing added before or behind it."""

_NOTHING = Plan((), 0, (), (), {})


class ForcedTokens:
    """Finds forced tokens for all grammars of a vocabulary.

    Without `encode` only special tokens are found: they are what they are without a tokenizer.
    """

    WINDOW = 6
    """Sampled tokens that are encoded in front of the forced text. Words of a pre-tokenizer begin anew
    whatever is before them, so a few tokens show how the forced text is cut."""
    LONGEST = 4096
    """Bytes of forced text that are followed at once."""
    _KNOWN = 64
    _ENDINGS = 4096

    def __init__(self, vocabulary: Vocabulary, trie: Trie, encode: Encode | None) -> None:
        self._tokens = vocabulary.tokens
        self._special_ids = np.array(sorted({*vocabulary.special.values(), *vocabulary.eos_ids}))
        first = {byte: trie.root.child(byte) for byte in range(0x100)}
        single = {byte: int(at.ids[0]) for byte, at in first.items() if at is not None and len(at.ids)}
        self._bytes, self._byte_ids = np.array(list(single)), np.array(list(single.values()))
        self._trie = trie
        self._encode = encode
        # The same texts are forced in many configurations and by many requests.
        self._ending = lru_cache(self._ENDINGS)(self._find_ending)

    def after(
        self, automaton: TokenAutomaton, configuration: Configuration, sampled: Sequence[int]
    ) -> Tokens:
        """The tokens that must come next; `sampled` are the tokens of the turn so far."""
        plan = configuration.plan
        if plan is None:
            plan = configuration.plan = self._plan(automaton, configuration)
        if not plan.parts:
            return ()
        before = self._window(sampled)
        tokens = plan.known.get(before)
        if tokens is None:
            tokens = self._written(plan, before)
            if len(plan.known) >= self._KNOWN:
                plan.known.clear()
            plan.known[before] = tokens
        return tokens

    def likely(
        self, automaton: TokenAutomaton, configuration: Configuration, sampled: Sequence[int]
    ) -> Tokens:
        """Tokens that will probably come next, the forced ones first: to be checked, never to be taken.

        Behind what is certain: the rest of the forced text as it is cut if nothing changes its end, and the
        rest of a marker of which a few letters stand at the end of a raw text.
        """
        plan = configuration.plan
        if plan is None:
            plan = configuration.plan = self._plan(automaton, configuration)
        if not plan.likely:
            return ()
        before = self._window(sampled)
        tokens = plan.guessed.get(before)
        if tokens is None:
            last = plan.likely[-1]
            whole = Plan(plan.likely, len(last) if isinstance(last, bytes) else 0, ("",), (), {})
            tokens = self._written(whole, before)
            certain = self.after(automaton, configuration, sampled)
            tokens = tokens if tokens[: len(certain)] == certain else certain
            if len(plan.guessed) >= self._KNOWN:
                plan.guessed.clear()
            plan.guessed[before] = tokens
        return tokens

    def _window(self, sampled: Sequence[int]) -> Tokens:
        """The last few tokens since the last special one."""
        recent = takewhile(self._tokens.__getitem__, reversed(sampled[-self.WINDOW :]))
        return tuple(recent)[::-1]

    # -- in which tokens

    def _written(self, plan: Plan, before: Tokens) -> Tokens:
        tokens: list[int] = []
        for part in plan.parts[:-1]:
            if isinstance(part, int):
                tokens.append(part)
            else:
                written = self._encoded(before, part, len(part), ("",))
                tokens += written
                if sum(len(self._tokens[token]) for token in written) < len(part):
                    return tuple(tokens)
            before = ()
        last = plan.parts[-1]
        if isinstance(last, int):
            return (*tokens, last)
        return (*tokens, *self._encoded(before, last, plan.fixed, plan.probes, plan.cuts))

    def _encoded(
        self, before: Tokens, text: bytes, fixed: int, probes: Iterable[str], cuts: Iterable[int] = ()
    ) -> Tokens:
        """The tokens of the first `fixed` bytes of `text` that are the same with all of `probes` behind it.

        And the same where `text` ends at each of `cuts`: what stands before a token that reaches over its end
        is encoded by itself.

        None of them where the tokenizer would not begin a token with `text`, or changes the text.
        """
        assert self._encode is not None
        context = b"".join([self._tokens[token] for token in before]).lstrip(_CONTINUATION)
        data = context + text
        shared: Tokens | None = None
        try:
            known = data.decode()
            texts = [known + probe for probe in probes]
            texts += [data[: len(context) + cut].decode() for cut in cuts]
            for each in texts:
                found = self._within(self._encode(each), data, len(context), len(context) + fixed)
                shared = found if shared is None else _shared(shared, found)
                if not shared:
                    break
        except ValueError:  # half a character was sampled, or the tokenizer cannot write this
            return ()
        return shared or ()

    def _within(self, ids: Iterable[int], data: bytes, begin: int, end: int) -> Tokens:
        """Those of `ids` that stand for `data[begin:end]`, as far as they fit; none if none begins there."""
        found = []
        at = 0
        for id in ids:
            token = self._tokens[id]
            following = at + len(token)
            if not token or following > end or data[at:following] != token or at < begin < following:
                break
            if at >= begin:
                found.append(id)
            at = following
        return tuple(found)

    # -- what is forced

    def _plan(self, automaton: TokenAutomaton, configuration: Configuration) -> Plan:
        parts: list[bytes | int] = []
        while not configuration.end:
            special = _only_special(configuration)
            if special is not None:
                edge = automaton.edge(configuration, special)
                if edge is None:
                    break
                parts.append(special)
                configuration = edge.target
                continue
            if self._encode is None or (parts and isinstance(parts[-1], bytes)):
                break
            text, configuration = self._forced_text(automaton, configuration)
            if not text:
                break
            parts.append(text)
        if not parts:
            begun = _rest_of_marker(configuration)
            return Plan((), 0, (), (), {}, (begun,), {}) if begun and self._encode is not None else _NOTHING
        likely = tuple(parts)
        last = parts.pop()
        if isinstance(last, int):
            return Plan(likely, 0, (), (), {}, likely, {})
        fixed, probes, cuts = self._ending(last, *self._next(automaton, configuration))
        if fixed:
            return Plan(likely, fixed, probes, cuts, {}, likely, {})
        return Plan(tuple(parts), 0, (), (), {}, likely, {})

    def _forced_text(self, automaton: TokenAutomaton, begin: Configuration) -> tuple[bytes, Configuration]:
        """The forced text up to a choice, an end or a special token, and where it leads."""
        configuration = begin
        text = b""
        while len(text) < self.LONGEST and (more := _forced_bytes(configuration)):
            following = self._read(automaton, configuration, more)
            if following is None:  # a byte that no token has
                break
            text += more
            configuration = following
        whole = _whole(text)
        shorter = self._read(automaton, begin, whole) if len(whole) < len(text) else configuration
        return (whole, shorter) if shorter is not None else (b"", begin)

    def _read(
        self, automaton: TokenAutomaton, configuration: Configuration, data: bytes
    ) -> Configuration | None:
        """Where `data` leads, in the longest tokens that there are; None where it is refused."""
        at = 0
        while at < len(data):
            position: Position | None = self._trie.root
            longest, token = at, -1
            for end in range(at, len(data)):
                position = position.child(data[end]) if position is not None else None
                if position is None:
                    break
                if len(position.ids):
                    longest, token = end + 1, int(position.ids[0])
            edge = automaton.edge(configuration, token) if token >= 0 else None
            if edge is None:
                return None
            at, configuration = longest, edge.target
        return configuration

    # -- what may come behind it

    def _next(self, automaton: TokenAutomaton, configuration: Configuration) -> tuple[frozenset[int], bool]:
        """The bytes that may come next, and whether a special token may."""
        legal: set[int] = set()
        ends = configuration.end
        for thread in configuration.threads:
            terminal, state = thread.bound.automaton, thread.state
            if terminal.special:
                ends = True
            elif terminal.accepts(state):
                # What follows a terminal that may end here is not told by its own automaton.
                mask = automaton.mask(configuration)
                allowed = self._bytes[allows_each(mask, self._byte_ids)].tolist()
                return frozenset(allowed), bool(allows_each(mask, self._special_ids).any())
            else:
                legal.update(_legal(terminal, state))
        return frozenset(legal), ends

    def _find_ending(
        self, text: bytes, legal: frozenset[int], ends: bool
    ) -> tuple[int, tuple[str, ...], tuple[int, ...]]:
        """How many bytes of a last text may be given, and the probes and cuts that can make a difference."""
        begins = tuple(self._straddling(text, legal))
        fixed = begins[0] if begins else len(text)
        cuts = (*begins, len(text)) if begins else ()
        probes = _probes(legal, ends)
        tokens = self._encoded((), text, fixed, probes, cuts)
        if len(tokens) < 2:
            # All in one word perhaps, which begins in the context.
            return fixed, probes, cuts
        return sum(len(self._tokens[token]) for token in tokens), probes[:1], ()

    def _straddling(self, text: bytes, legal: frozenset[int]) -> Iterator[int]:
        """The places in `text` where a token can begin that reaches over its end."""
        for begin in range(max(0, len(text) + 1 - self._trie.longest), len(text)):
            position: Position | None = self._trie.root
            for byte in text[begin:]:
                position = position.child(byte) if position is not None else None
            if position is not None and not legal.isdisjoint(self._trie.byte[position.nodes].tolist()):
                yield begin


def _only_special(configuration: Configuration) -> int | None:
    """The one special token that can come, where nothing else can."""
    ids: frozenset[int] = frozenset()
    for thread in configuration.threads:
        if not thread.bound.automaton.special:
            return None
        ids |= thread.bound.automaton.special
    return next(iter(ids)) if len(ids) == 1 else None


def _rest_of_marker(configuration: Configuration) -> bytes:
    """What is left of a marker that a raw text seems to have begun, as far as all its ends have it."""
    if len(configuration.threads) != 1:
        return b""
    (thread,) = configuration.threads
    automaton = thread.bound.automaton
    if automaton.text is None or len(automaton.held(thread.state)) < _BEGUN:
        return b""
    paths = [tuple(path) for path in automaton.text.paths(automaton.base(thread.state))]
    return bytes(reduce(_shared, paths)) if paths else b""


def _forced_bytes(configuration: Configuration) -> bytes:
    """The next bytes where there is no choice and no terminal that may end; b"" where there is."""
    if len(configuration.threads) == 1:
        # Inside one terminal its own automaton tells all.
        (thread,) = configuration.threads
        automaton, state = thread.bound.automaton, thread.state
        text = bytearray()
        while (byte := _forced_byte(automaton, state)) is not None:
            text.append(byte)
            state = automaton.row(state)[byte]
            if automaton.final(state):
                break
        return bytes(text)
    found = {_forced_byte(thread.bound.automaton, thread.state) for thread in configuration.threads}
    byte = found.pop() if len(found) == 1 else None
    return b"" if byte is None else bytes([byte])


def _forced_byte(automaton: TerminalAutomaton, state: int) -> int | None:
    if automaton.special or automaton.accepts(state):
        return None
    if automaton.words is None and automaton.row(state).count(DEAD) != 255:
        return None
    legal = _legal(automaton, state)
    return next(iter(legal)) if len(legal) == 1 else None


def _legal(automaton: TerminalAutomaton, state: int) -> Collection[int]:
    """The bytes that may come next inside a terminal."""
    if automaton.words is not None:
        return automaton.words.edges[state]
    return [byte for byte, following in enumerate(automaton.row(state)) if following != DEAD]


def _shared(one: Tokens, other: Tokens) -> Tokens:
    """The ids with which both begin."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(id for id, _ in same)


def _probes(legal: frozenset[int], ends: bool) -> tuple[str, ...]:
    """Texts that may come next: one for each byte of few, else one of each kind; "" for an end."""
    begins: Iterable[int] = sorted(legal)
    if len(legal) > _FEW:
        kinds = [kind for kind in _KINDS if not legal.isdisjoint(kind)]
        begins = [next(byte for byte in kind if byte in legal) for kind in kinds]
    return (*([""] if ends else []), *(_PROBES[byte] for byte in begins if byte in _PROBES))


def _whole(text: bytes) -> bytes:
    """The text without a character at its end that is not complete; it may begin in the middle of one."""
    for back, byte in enumerate(reversed(text[-4:]), start=1):
        if byte >= 0xC0:
            return text if back >= _size(byte) else text[:-back]
        if byte < 0x80:
            break
    return text


def _size(lead: int) -> int:
    """The length in bytes of a character that begins with `lead`, which is no ASCII."""
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def _character(lead: int) -> str:
    """Some character whose UTF-8 begins with `lead`."""
    for second in (0xA9, 0x97, 0x84):  # not all of them may follow 0xED, 0xF0 and 0xF4
        data = bytes([lead, second, 0xA5, 0xA5][: _size(lead)])
        if text := data.decode(errors="ignore"):
            return text
    raise ValueError(f"no character begins with {lead:#x}")


_CONTINUATION = bytes(range(0x80, 0xC0))
_FEW = 8
_BEGUN = 3  # bytes of a marker that are seldom data: a line break and "</"
_LETTERS = b"xXabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWYZ"
_DIGITS = b"7012345689"
_APART = b" \n'"
_KINDS = (
    _LETTERS,
    _DIGITS,
    *(bytes([byte]) for byte in _APART),
    bytes(byte for byte in range(0x20) if byte not in _APART),
    bytes(byte for byte in range(0x20, 0x80) if byte not in _LETTERS + _DIGITS + _APART),
    b"\xc3" + bytes(range(0xC2, 0xE0)),
    b"\xe6" + bytes(range(0xE0, 0xF0)),
    bytes(range(0xF0, 0xF5)),
)
"""First bytes of what pre-tokenizers tell apart, the likeliest of each kind in front."""

# Behind a blank or an apostrophe pre-tokenizers look one character further.
_PROBES = {
    **{byte: chr(byte) for byte in range(0x80)},
    **{lead: _character(lead) for lead in range(0xC2, 0xF5)},
    **{text.encode()[0]: text for text in (" x", "'s", "日", "😀")},
}
