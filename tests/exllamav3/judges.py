"""Two engines of other people as judges of our masks: kbnf as exllamav3 loads it, and llguidance.

Both get the grammar in their own language (`larksong.engine.grammar.export`), ours runs the same in fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import llguidance
import llguidance.numpy
import numpy as np
from exllamav3.generator.filter import formatron

from larksong.engine.engine import Engine
from larksong.engine.grammar.export import export
from larksong.engine.grammar.fixed_order import fixed_order
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.packed import ids_of
from larksong.engine.vocabulary import Vocabulary


class Judge(Protocol):
    """An engine at the beginning of a text."""

    name: str

    def allowed(self) -> set[int]:
        """The text tokens that may come."""

    def may_end(self) -> bool | None:
        """Whether the text may end here; None where it does not say."""

    def is_done(self) -> bool:
        """It has ended the text, and says no more."""

    def advance(self, token: int) -> None: ...


class KbnfJudge:
    name = "kbnf"

    def __init__(self, grammar: Grammar, tokenizer: Any, vocabulary: Vocabulary) -> None:
        assert formatron._load_formatron(), "formatron is not installed"
        from formatron.integrations.utils import update_vocab_dot_G

        # What it finds out by itself in large vocabularies: that bytes are spelled as GPT-2 does.
        known = formatron.create_engine_vocabulary(tokenizer, [update_vocab_dot_G])
        self._engine = formatron.kbnf.Engine(export(grammar, "kbnf"), known)
        self._text = {token for token, data in enumerate(vocabulary.tokens) if data}

    def allowed(self) -> set[int]:
        self._engine.compute_allowed_token_ids()
        return set(self._engine.get_allowed_token_ids_from_last_computation()) & self._text

    def may_end(self) -> bool | None:
        return None

    def is_done(self) -> bool:
        return bool(self._engine.is_finished())

    def advance(self, token: int) -> None:
        self._engine.try_accept_new_token(token)


class LLGuidanceJudge:
    name = "llguidance"

    def __init__(self, grammar: Grammar, tokenizer: Any, vocabulary: Vocabulary) -> None:
        end = min(vocabulary.eos_ids)
        known = _llguidance_tokenizer(tokenizer.tokenizer.to_str(), tokenizer.config.vocab_size, end)
        self._matcher = llguidance.LLMatcher(
            known,
            # Else it offers one token alone where the text is forced.
            llguidance.LLMatcher.grammar_from_lark(
                '%llguidance {"no_forcing": true}\n' + export(grammar, "llguidance")
            ),
            log_level=0,
        )
        self._mask = llguidance.numpy.allocate_token_bitmask(1, tokenizer.config.vocab_size)
        self._text = {token for token, data in enumerate(vocabulary.tokens) if data}
        self._check()

    def _check(self) -> None:
        if error := self._matcher.get_error():
            raise AssertionError(f"llguidance: {error}")

    def allowed(self) -> set[int]:
        llguidance.numpy.fill_next_token_bitmask(self._matcher, self._mask, 0)
        self._check()
        return tokens_of(self._mask[0]) & self._text

    def may_end(self) -> bool | None:
        return bool(self._matcher.is_accepting())

    def is_done(self) -> bool:
        return bool(self._matcher.is_stopped())

    def advance(self, token: int) -> None:
        self._matcher.consume_token(token)
        self._check()


_KNOWN: dict[tuple[int, int], Any] = {}


def _llguidance_tokenizer(text: str, width: int, end: int) -> Any:
    key = (hash(text), width)
    if key not in _KNOWN:
        _KNOWN[key] = llguidance.LLTokenizer(text, n_vocab=width, eos_token=end)
    return _KNOWN[key]


def tokens_of(mask: np.ndarray) -> set[int]:
    return set(ids_of(mask))


@dataclass(frozen=True)
class Difference:
    """A place where a judge does not agree: the text so far, what only we and what only it would allow."""

    judge: str
    text: bytes
    ours: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    end: str = ""


def differences(
    grammar: Grammar, tokenizer: Any, engine: Engine, judges: list[type[Any]], rng: Random, steps: int
) -> Iterator[Difference | int]:
    """Walk through a grammar; what the judges do not agree with, and after each step the step's number."""
    vocabulary = engine.vocabulary
    fixed = fixed_order(grammar).grammar
    matcher = engine.matcher(fixed)
    sitting = [judge(grammar, tokenizer, vocabulary) for judge in judges]
    written = b""
    for step in range(steps):
        mask = tokens_of(matcher.mask())
        ends = bool(mask & vocabulary.eos_ids)
        ours = {token for token in mask if token < len(vocabulary.tokens) and vocabulary.tokens[token]}
        for judge in [judge for judge in sitting if not judge.is_done()]:
            theirs = judge.allowed()
            if theirs != ours:
                only = _texts(vocabulary, ours - theirs), _texts(vocabulary, theirs - ours)
                yield Difference(judge.name, written, *only)
            may_end = judge.may_end()
            if may_end is not None and may_end != ends:
                yield Difference(judge.name, written, (), (), f"we {'may' if ends else 'may not'} end here")
        if not ours:
            break
        # Longer tokens are rare in a mask of many: half of the steps take one of the longest.
        choices = sorted(ours, key=lambda token: -len(vocabulary.tokens[token]))
        token = rng.choice(choices[:5]) if rng.random() < 0.5 else rng.choice(choices)
        matcher.advance(token)
        assert matcher.fault is None
        for judge in sitting:
            if not judge.is_done():
                judge.advance(token)
        written += vocabulary.tokens[token]
        yield step


def _texts(vocabulary: Vocabulary, tokens: set[int]) -> tuple[bytes, ...]:
    return tuple(sorted(vocabulary.tokens[token] for token in tokens)[:8])
