"""Where in a JSON text one is: which members and items are open, which names an object has already."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

Step = str | int


@dataclass
class _Open:
    """An object or array that is not closed."""

    is_object: bool
    names: list[str] = field(default_factory=list)
    """the names read so far, the one whose value is being read among them"""
    index: int = 0
    in_name: bool = True
    """a name comes next or is being read, not a value"""


class JsonScan:
    """Reads bytes of JSON text, whole or not, and whether it is right or not: it only keeps count."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._string: bytearray | None = None
        self._escaped = False
        self._bare = ""
        """a name without quotation marks, as some formats write them"""
        self.began = False

    @property
    def ended(self) -> bool:
        """The outermost object or array is closed."""
        return self.began and not self._open

    @property
    def path(self) -> tuple[Step, ...]:
        """The names and indices that lead to the value that is being read, or to the object that is."""
        found: list[Step] = []
        for each in self._open:
            if not each.is_object:
                found.append(each.index)
            elif each.names and not each.in_name:
                found.append(each.names[-1])
        return tuple(found)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the innermost object has."""
        return tuple(self._open[-1].names) if self._open and self._open[-1].is_object else ()

    @property
    def in_object(self) -> bool:
        return bool(self._open) and self._open[-1].is_object

    @property
    def in_name(self) -> bool:
        """A member's name comes next, or is being read."""
        return self.in_object and self._open[-1].in_name

    @property
    def in_string(self) -> bool:
        return self._string is not None

    @property
    def name(self) -> str:
        """As much of the name as has been read."""
        return self._bare or _decoded(bytes(self._string or b""))

    def feed(self, data: bytes) -> None:
        """Reads some bytes."""
        for byte in data:
            if self._string is not None:
                self._in_string(byte)
            else:
                self._between(chr(byte))

    def _in_string(self, byte: int) -> None:
        assert self._string is not None
        if self._escaped:
            self._escaped = False
        elif byte == 0x5C:
            self._escaped = True
        elif byte == 0x22:
            if self.in_name:
                self._open[-1].names.append(self.name)
                self._open[-1].in_name = False
            self._string = None
            return
        self._string.append(byte)

    def _between(self, character: str) -> None:
        if character in "{[":
            self._open.append(_Open(character == "{"))
            self.began = True
        elif character in "}]" and self._open:
            self._open.pop()
        elif character == '"':
            self._string = bytearray()
        elif character == "," and self._open:
            self._open[-1].index += 1
            self._open[-1].in_name = True
        elif character == ":" and self.in_name and self._bare:
            self._open[-1].names.append(self._bare)
            self._open[-1].in_name = False
            self._bare = ""
        elif self.in_name and not character.isspace():
            self._bare += character


def _decoded(raw: bytes) -> str:
    text = raw.decode(errors="replace")
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text
