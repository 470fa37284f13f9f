"""Random walks over the tokens that masks allow."""

from collections.abc import Callable, Sequence
from random import Random

from larksong.engine.matcher import Matcher
from larksong.engine.vocabulary import Vocabulary
from tests.support.masks import allowed
from tests.support.vocabularies import text_of

# What ends things in the formats: a walk that has to come to an end goes towards these.
CLOSERS = (
    b'"',
    b"}",
    b"]",
    b"}\n</tool_call>",
    b"</tool_call>",
    b"\n</parameter>\n</function>\n</tool_call>",
    b"\n</parameter>\n<parameter=",
)
_SEEN = 48  # tokens looked at a step, to keep walks over large vocabularies quick


class Walker:
    """Walks over a vocabulary: at random for a while, then towards the end."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        pieces = {closer[i:j] for closer in CLOSERS for i in range(len(closer)) for j in range(i + 1, len(closer) + 1)}
        self._closing = {i for i, token in enumerate(vocabulary.tokens) if token in pieces}
        self._markers = set(vocabulary.special.values()) - vocabulary.eos_ids

    def walk(
        self,
        matcher: Matcher,
        rng: Random,
        *,
        wander: int,
        limit: int = 400,
        visit: Callable[[Matcher, set[int]], None] = lambda matcher, choices: None,
    ) -> list[int]:
        """Advance `matcher` until it is finished, or `limit` tokens long; returns the tokens.

        The first `wander` tokens are any that are allowed. `visit` sees each mask as a set, before the step.
        """
        taken: list[int] = []
        while not matcher.finished and len(taken) < limit:
            choices = allowed(matcher.mask())
            assert choices, "an empty mask"
            visit(matcher, choices)
            if len(taken) < wander:
                token = self._any(choices, rng)
            else:
                token = self._towards_the_end(choices, taken, rng)
            matcher.advance(token)
            assert matcher.fault is None, (matcher.fault, text_of(self.vocabulary, [*taken, token]))
            taken.append(token)
        return taken

    def _any(self, choices: set[int], rng: Random) -> int:
        # Markers and ends would drown among the text tokens.
        rare = sorted(choices & (self._markers | self.vocabulary.eos_ids))
        if rare and rng.random() < 0.2:
            return rng.choice(rare)
        closing = sorted(choices & self._closing)
        return rng.choice(closing if closing and rng.random() < 0.3 else sorted(choices))

    def _towards_the_end(self, choices: set[int], taken: Sequence[int], rng: Random) -> int:
        ends = choices & self.vocabulary.eos_ids
        if ends:
            return min(ends)
        tail = text_of(self.vocabulary, taken[-40:])
        candidates = list(choices & (self._closing | self._markers))
        others = list(choices - self._closing)
        candidates += rng.sample(others, min(_SEEN, len(others)))
        return max(candidates, key=lambda token: (self._progress(tail, token), rng.random()))

    def _progress(self, tail: bytes, token: int) -> int:
        """How many bytes of a closer have been written after `token`; a whole one counts double."""
        text = tail + text_of(self.vocabulary, [token])
        best = 0
        for closer in CLOSERS:
            for size in range(min(len(closer), len(text)), best, -1):
                if text.endswith(closer[:size]):
                    best = max(best, 2 * size if size == len(closer) else size)
                    break
        return best
