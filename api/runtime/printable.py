"""Text from anywhere as a terminal may have it."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text without anything that a terminal would obey: control characters as pictures of them.

    Line ends and tabs stay. Marks that turn the direction of writing are replaced: they hide what is there.
    """
    return text.translate(_PICTURES)


_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_PICTURES |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}
_PICTURES |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
