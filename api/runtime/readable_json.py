"""A value as one line of JSON that any file can hold."""

from __future__ import annotations

import json
from typing import Any


def readable_json(value: Any) -> str:
    """JSON for people: letters as they are. Halves of characters, which UTF-8 cannot write, stay escapes."""
    return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
