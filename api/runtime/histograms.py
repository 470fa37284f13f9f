"""Histograms that are cheap enough for every token of every stream.

prometheus-client's own take a lock for each value; these belong to the event loop's thread and are
read by the registry when it is asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class Histogram:
    """The values of one set of labels: how many in each bucket, and their sum."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value


class Histograms(Collector):
    """A histogram in Prometheus's sense, with labels."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], labels: Sequence[str]) -> None:
        self._name = name
        self._text = text
        self._bounds = tuple(bounds)
        self._names = tuple(labels)
        self._histograms: dict[tuple[str, ...], Histogram] = {}

    def labels(self, *values: str) -> Histogram:
        """The histogram of these labels."""
        found = self._histograms.get(values)
        if found is None:
            found = self._histograms[values] = Histogram(self._bounds)
        return found

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._names)
        for values, histogram in self._histograms.items():
            total = 0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip((*self._bounds, float("inf")), histogram.counts, strict=True):
                total += count
                buckets.append(("+Inf" if bound == float("inf") else repr(float(bound)), total))
            family.add_metric(values, buckets, histogram.sum)
        yield family
