"""Which member of an object must be written next, so that no required one is left out."""

from __future__ import annotations

from larksong.engine.completion.outline import Outline
from larksong.engine.grammar.attributes import (
    AlternativeKey,
    Key,
    Living,
    Member,
    Predicate,
    Seen,
    Value,
)
from larksong.engine.parsing.parser import Parser
from larksong.engine.parsing.stack import BoundTerminal, CompiledGrammar, Stack


def name_of(predicate: Predicate | None) -> Key | AlternativeKey | None:
    """The predicate of a member's name, without what is wrapped around it."""
    predicate = getattr(predicate, "key", predicate)
    return predicate if isinstance(predicate, Key | AlternativeKey) else None


def bit_of(bound: BoundTerminal) -> int:
    """The bit of a member's name; 0 if it is not declared."""
    return bound.label.bit if isinstance(bound.label, Member) else 0


class RequiredMembers:
    """Looks at the members of objects on the stacks of a parser."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._outlines: dict[CompiledGrammar, Outline] = {}

    def wanted(self, bound: BoundTerminal, stack: Stack) -> int:
        """Bits of which one must come where a name is written; 0 where any name will do."""
        key, so_far = name_of(bound.terminal.predicate), self._so_far(bound, stack)
        if isinstance(key, AlternativeKey):
            living = so_far if isinstance(so_far, Living) else key.alternatives.nothing
            wanted = 0
            for option in living.options():
                missing = option.missing(living.mask)
                if not missing:
                    return 0
                wanted |= missing & -missing
            return wanted
        missing = self._missing(bound, stack)
        return missing & -missing

    def is_required(self, bound: BoundTerminal, stack: Stack) -> bool:
        """Whether this is the name of a member that must come, whatever else is written."""
        key = name_of(bound.terminal.predicate)
        return isinstance(key, Key) and bool(bit_of(bound) & self._missing(bound, stack))

    def _missing(self, bound: BoundTerminal, stack: Stack) -> int:
        """The required members that are missing where this name is written."""
        so_far = self._so_far(bound, stack)
        if isinstance(so_far, Seen):
            return so_far.members.required & ~so_far.mask
        after = self._parser.shift(stack, bound.number, bound.label)
        if after is None or after.parent is None:
            return 0
        return self.outline(after.compiled).members_begun(after.parent).required

    def _so_far(self, bound: BoundTerminal, stack: Stack) -> Value:
        """The value below the place where a name is written: that of the members before it."""
        after = self._parser.shift(stack, bound.number, bound.label)
        if after is None or after.parent is None or after.parent.parent is None:
            return None
        return after.parent.parent.value

    def outline(self, compiled: CompiledGrammar) -> Outline:
        """The outline of a grammar."""
        found = self._outlines.get(compiled)
        if found is None:
            found = self._outlines.setdefault(compiled, Outline(compiled))
        return found
