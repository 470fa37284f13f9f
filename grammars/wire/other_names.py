"""Names that no request declares: what they look like must leave out what ends them."""

from __future__ import annotations

import re
from collections.abc import Iterable


def ended_by(names: str, ends: Iterable[str]) -> str:
    """The pattern `names` (`[^…]{…}`) without the characters with which `ends` begin."""
    first = dict.fromkeys(end[0] for end in ends if end and re.fullmatch(names, end[0]))
    return "[^" + "".join(map(re.escape, first)) + names.removeprefix("[^")
