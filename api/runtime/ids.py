"""Ids of answers and of what is in them."""

from __future__ import annotations

import secrets


def new_id(prefix: str) -> str:
    """A fresh id."""
    return prefix + secrets.token_hex(12)
