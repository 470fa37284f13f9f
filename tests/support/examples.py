"""How many examples a property test tries: its own number times LARKSONG_EXAMPLES (1 where that is not set)."""

import os

from hypothesis import HealthCheck, settings

_FACTOR = int(os.environ.get("LARKSONG_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Settings for `count` examples: no deadline, and long examples are no reason to complain."""
    return settings(
        max_examples=count * _FACTOR,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
