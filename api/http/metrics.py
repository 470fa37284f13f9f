"""Prometheus figures of a server.

One registry a server, made here alone: another figure is one more attribute of `Metrics` and one call where
it changes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from larksong.api.runtime.histograms import Histograms
from larksong.api.turns.turn import Cut, Watch
from larksong.api.turns.widening import WidenedKeyword
from larksong.engine.backends.base import Finish, Step

_logger = logging.getLogger(__name__)

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_MASK_SECONDS = (1e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 2.5e-2, 0.1)
_SHARES = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999)


class Metrics:
    """The figures. `low_mass`: a mask that leaves less probability than this is counted as low mass."""

    def __init__(self, low_mass: float = 0.01) -> None:
        self.registry = CollectorRegistry()
        self._low_mass = low_mass

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"larksong_{name}", text, labels, registry=self.registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histograms:
            made = Histograms(f"larksong_{name}", text, buckets, labels)
            self.registry.register(made)
            return made

        self.requests = counter("requests", "Requests by path and HTTP status", "path", "status")
        self.finished = counter("turns", "Turns by why they ended", "model", "format", "reason")
        self.seconds = histogram("request_seconds", "From request to the end of its answer", _SECONDS, "path")
        self.prompt_tokens = counter("prompt_tokens", "Tokens of prompts", "model")
        self.cached_tokens = counter("cached_prompt_tokens", "Those of them that were read before", "model")
        self.cache_hits = counter("prefix_cache_hits", "Turns whose prompt was partly known", "model")
        self.written = counter("completion_tokens", "Tokens of answers", "model", "format")
        self.forced = counter("forced_tokens", "Those that the model was not asked for", "model", "format")
        self.first = histogram("time_to_first_token_seconds", "To the first token", _SECONDS, "model")
        self.between = histogram("time_between_tokens_seconds", "Between two tokens", _SECONDS, "model")
        self.mask = histogram("mask_seconds", "Finding the mask of a token", _MASK_SECONDS, "model", "format")
        self.removed = histogram(
            "mask_removed_probability",
            "Probability that the mask of a token removed; high where a format is wrong or a grammar "
            "fights the model",
            _SHARES,
            *("model", "format"),
        )
        self.low_mass = counter(
            "low_mass_tokens",
            f"Tokens whose mask left less than {low_mass:g} of the probability",
            *("model", "format"),
        )
        self.widened = counter(
            "widened_keywords",
            "Keywords that no grammar enforced, by whether the complete value kept them",
            *("model", "keyword", "result"),
        )
        self.running = Gauge("larksong_running_requests", "Requests that run", registry=self.registry)
        self.waiting = Gauge("larksong_waiting_requests", "Requests in the queue", registry=self.registry)
        self.refused = counter("queue_full", "Requests that found the queue full")

    def text(self) -> bytes:
        """All figures in Prometheus's text format."""
        return generate_latest(self.registry)

    def count_widened(self, model: str) -> Callable[[Sequence[WidenedKeyword]], None]:
        """What is called with the keywords that a turn's grammar did not enforce."""

        def count(found: Sequence[WidenedKeyword]) -> None:
            for each in found:
                self.widened.labels(model, each.keyword, "kept" if each.valid else "broken").inc()

        return count

    def watch(self, model: str, format: str, prompt_tokens: int) -> Watch:
        """What is called with each step of a turn and its end, or why it has none."""
        self.prompt_tokens.labels(model).inc(prompt_tokens)
        written = self.written.labels(model, format)
        forced = self.forced.labels(model, format)
        first, between = self.first.labels(model), self.between.labels(model)
        mask, removed = self.mask.labels(model, format), self.removed.labels(model, format)
        began = time.monotonic()
        last, seen, by_force, low, asked, cached = began, 0, 0, 0, 0, 0

        def watch(item: Step | Finish | Cut) -> None:
            nonlocal last, seen, by_force, low, asked, cached
            if not isinstance(item, Step):
                reason = item.reason if isinstance(item, Finish) else item
                self.finished.labels(model, format, reason).inc()
                written.inc(seen)
                forced.inc(by_force)
                if isinstance(item, Finish):
                    cached = item.cached_tokens
                self.cached_tokens.labels(model).inc(cached)
                self.cache_hits.labels(model).inc(cached > 0)
                self.low_mass.labels(model, format).inc(low)
                if asked and low * 4 > asked:
                    _logger.warning(
                        "low mass: at %d of %d tokens the mask left less than %g of the probability; "
                        "is %s the format of %s?",
                        *(low, asked, self._low_mass, format, model),
                    )
                return
            cached = item.cached_tokens
            now = time.monotonic()
            (between if seen else first).observe(now - last)
            last = now
            seen += 1
            if item.forced:
                by_force += 1
                return
            mask.observe(item.mask_seconds)
            if item.kept is not None:
                asked += 1
                low += item.kept < self._low_mass
                removed.observe(1 - item.kept)

        return watch
