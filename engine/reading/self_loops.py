"""Self-loops: bytes of a value that lead a terminal back to its state, found with one regular expression."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from larksong.engine.events import ParseEvent
from larksong.engine.lexing.terminal_dfa import TerminalDFA

# A terminal that stays where it is on fewer bytes is no long value.
_FEWEST = 32

# Well-formed UTF-8 beyond ASCII (Unicode 15, table 3-7): for each length the ranges of its bytes.
_CHARACTERS = (
    ((0xC2, 0xDF), (0x80, 0xBF)),
    ((0xE0, 0xE0), (0xA0, 0xBF), (0x80, 0xBF)),
    ((0xE1, 0xEC), (0x80, 0xBF), (0x80, 0xBF)),
    ((0xED, 0xED), (0x80, 0x9F), (0x80, 0xBF)),
    ((0xEE, 0xEF), (0x80, 0xBF), (0x80, 0xBF)),
    ((0xF0, 0xF0), (0x90, 0xBF), (0x80, 0xBF), (0x80, 0xBF)),
    ((0xF1, 0xF3), (0x80, 0xBF), (0x80, 0xBF), (0x80, 0xBF)),
    ((0xF4, 0xF4), (0x80, 0x8F), (0x80, 0xBF), (0x80, 0xBF)),
)


class SelfLoop(NamedTuple):
    """Bytes on which a terminal comes back to where it is, and the event that tells them."""

    pattern: re.Pattern[bytes]
    event: Callable[[bytes], ParseEvent]


def self_loop(terminal: TerminalDFA, state: int, event: Callable[[bytes], ParseEvent]) -> SelfLoop | None:
    """The self-loop of a terminal that stands in `state` with nothing held back; None where there is none."""
    row = terminal.row(state)
    same = [byte for byte in range(128) if row[byte] == state]
    if len(same) < _FEWEST or terminal.held(state) or terminal.final(state):
        return None
    ways = [_among(same) + b"+"]
    aside: defaultdict[int, list[int]] = defaultdict(list)
    for byte in range(128):
        if row[byte] >= 0 and row[byte] != state:
            aside[row[byte]].append(byte)
    for other, firsts in aside.items():
        # Two bytes that lead back: an escape in JSON, or what could have begun a marker and did not.
        back = [byte for byte in range(128) if terminal.row(other)[byte] == state]
        if back and not terminal.final(other):
            ways.append(_among(firsts) + _among(back))
    for ranges in _CHARACTERS:
        if _leads_back(terminal, state, ranges):
            ways.append(b"".join(_among((first, last), between=b"-") for first, last in ranges))
    return SelfLoop(re.compile(b"(?:" + b"|".join(ways) + b")+"), event)


def _leads_back(terminal: TerminalDFA, state: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Whether all characters of these bytes lead from `state` to itself and end no terminal on the way."""
    reached = {state}
    for first, last in ranges:
        if any(terminal.final(at) for at in reached):
            return False
        reached = {terminal.row(at)[byte] for at in reached for byte in range(first, last + 1)}
        if min(reached) < 0:
            return False
    return reached == {state}


def _among(values: Iterable[int], between: bytes = b"") -> bytes:
    """A character class of these bytes."""
    return b"[" + between.join(re.escape(bytes([value])) for value in values) + b"]"
