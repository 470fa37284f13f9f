"""Reasoning as `encrypted_content`: what clients that keep no reasoning text give back (Codex does so).

It is not encrypted, it is the text in base64: its writer is the client's own server.
"""

from __future__ import annotations

import base64
import binascii

_MARK = "larksong:"


def hidden(text: str) -> str:
    """The text as clients carry it."""
    return _MARK + base64.b64encode(text.encode()).decode()


def shown(content: str | None) -> str:
    """The text again; empty where another server wrote it."""
    if content is None or not content.startswith(_MARK):
        return ""
    try:
        return base64.b64decode(content.removeprefix(_MARK), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
