"""Bytes that arrive in arbitrary pieces, given out as text that is whole at every moment."""

from __future__ import annotations

import codecs
import json
import re

# The longest start of a JSON text that ends neither inside an escape nor between the two escapes of a
# surrogate pair. A high surrogate counts as whole once something other than an escape follows it.
_WHOLE_ESCAPES = re.compile(
    r"""(?: [^\\]+
          | \\[^u]
          | \\u (?![dD][89abAB]) [0-9a-fA-F]{4}
          | \\u [dD][89abAB] [0-9a-fA-F]{2} (?: \\u [0-9a-fA-F]{4} | (?=\\[^u]|[^\\]) )
        )*""",
    re.VERBOSE,
)

# `json.dumps` with an argument makes an encoder for every text.
_quoted = json.JSONEncoder(ensure_ascii=False).encode


class PlainText:
    """Raw text: holds back at most the bytes of one unfinished code point; malformed bytes become U+FFFD."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> str:
        """The text that `data` completes."""
        if self._held:
            data = self._held + data
        text, used = codecs.utf_8_decode(data, "replace")
        self._held = data[used:]
        return text


class EscapedText:
    """Raw text given out as `json.dumps(…, ensure_ascii=False)` writes it between the quotes."""

    def __init__(self) -> None:
        self._text = PlainText()

    def feed(self, data: bytes) -> str:
        """The JSON-escaped text that `data` completes."""
        return _quoted(self._text.feed(data))[1:-1]


class JsonText:
    """JSON text passed on as written: holds back an unfinished code point, escape or surrogate pair.

    What is held is at most one escape or one surrogate pair, so time per piece depends on the piece alone.
    """

    def __init__(self) -> None:
        self._text = PlainText()
        self._held = ""

    def feed(self, data: bytes) -> str:
        """The JSON text that `data` completes."""
        text = self._held + self._text.feed(data)
        if "\\" not in text:
            self._held = ""
            return text
        whole = _WHOLE_ESCAPES.match(text)
        assert whole is not None  # the pattern matches the empty text
        self._held = text[whole.end() :]
        return whole.group()
