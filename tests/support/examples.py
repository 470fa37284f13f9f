"""How much a test tries: its own number times LARKSONG_EXAMPLES (1 where that is not set)."""

import os

from hypothesis import HealthCheck, settings

_FACTOR = int(os.environ.get("LARKSONG_EXAMPLES", "1"))


def times(count: int) -> int:
    """How often a test with a loop of its own goes round."""
    return count * _FACTOR


def examples(count: int) -> settings:
    """Settings for `count` examples: no deadline, and long examples are no reason to complain."""
    return settings(
        max_examples=times(count),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
