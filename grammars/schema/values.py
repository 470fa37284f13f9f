"""JSON values: their canonical texts, and their equality as JSON Schema has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite
from typing import Any

_write = json.JSONEncoder(ensure_ascii=False).encode


def json_text(value: Any) -> str:
    """The canonical JSON text of a value: as `json.dumps` writes it, without ASCII escapes."""
    return _write(value)


def decimal(value: float) -> Decimal:
    """The number as it is written, not as it is stored: 0.1 is one tenth. There is one zero."""
    return Decimal(repr(value)) or Decimal(0)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Whether it is a number that JSON has."""
    return is_number(value) and (isinstance(value, int) or isfinite(value))


def scalar_texts(value: Any) -> Iterator[str]:
    """The texts that stand for a scalar: a whole number written with a point is also one without."""
    yield json_text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e18:
        yield json_text(int(value))


def canonical(value: Any) -> str:
    """A text that equal JSON values share: 1 equals 1.0 but not true, order of members plays no part."""
    if is_number(value):
        return f"{decimal(value).normalize():f}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    return json_text(value)
