"""How far a turn had come: which call, which parameter, which place of its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from larksong.engine.events import FunctionOpen, ParameterClose, ParameterOpen
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import Role
from larksong.engine.matcher import Matcher
from larksong.grammars.explain.scan import JsonScan, Step


@dataclass
class Progress:
    """A turn up to some unit (a byte, or a marker's id). Indices count units."""

    tool: str | None = None
    begin: int = 0
    """where the arguments of the call begin, or may begin with the unit before"""
    inside: bool = False
    """the arguments are being read"""
    in_function_name: bool = False
    parameters: list[str] = field(default_factory=list)
    """the parameters of the call, in formats that write one element each"""
    parameter: str | None = None
    """the one that is open"""
    value: int | None = None
    """where its value begins"""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters whose names are complete."""
        known = self.parameters
        return tuple(known[:-1] if self.parameter is not None and self.value is None else known)


def read_turn(matcher: Matcher, grammar: Grammar, units: Sequence[int]) -> Progress:
    """Reads units that the grammar allows, from the beginning on."""
    found = Progress()
    for at, unit in enumerate(units):
        for event in matcher.advance(unit):
            match event:
                case FunctionOpen(name):
                    found.tool, found.parameters, found.parameter = name, [], None
                case ParameterOpen(name):
                    found.parameter, found.value = name, None
                    found.parameters.append(name)
                case ParameterClose():
                    found.parameter = None
        threads = matcher.configuration.threads
        inside = any(thread.stack.compiled.grammar is not grammar for thread in threads)
        if inside and not found.inside:
            found.begin = at + 1
        found.inside = inside
        roles = {thread.bound.terminal.role for thread in threads}
        found.in_function_name = Role.FUNCTION_OPEN in roles
        if found.parameter is not None and found.value is None and roles & {Role.TEXT, Role.JSON}:
            found.value = at + 1
    return found


@dataclass(frozen=True)
class Spot:
    """A place inside arguments. `path`: to the value that is being read, or the object that is.

    `name`: the member's name that is being read (None: none is); `is_whole`: it does not go on.
    `names`: the members that the object has already. `in_string`: a string is being read.
    """

    path: tuple[Step, ...]
    name: str | None = None
    is_whole: bool = False
    names: tuple[str, ...] = ()
    in_string: bool = False


def json_spot(before: bytes, rest: bytes, above: tuple[Step, ...] = ()) -> Spot:
    """The place in JSON text after `before`; `rest` is what was written after it, refused."""
    scan = JsonScan()
    scan.feed(before)
    path, names, in_string = scan.path, scan.names, scan.in_string
    if not scan.in_name and not (scan.in_object and not in_string and rest[:1] == b","):
        return Spot((*above, *path), None, False, names, in_string)
    if not scan.in_name:
        path = path[:-1]
    depth = len(path)
    for at in range(len(rest)):
        scan.feed(rest[at : at + 1])
        if scan.in_object and len(scan.names) > len(names):
            return Spot((*above, *path), scan.names[-1], True, names)
        if (not scan.in_name and len(scan.path) < depth) or scan.ended:
            return Spot((*above, *path), None, False, names)
    return Spot((*above, *path), scan.name or None, False, names)
