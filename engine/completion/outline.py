"""What the search for the end needs to know of a grammar's rules: where members and values begin."""

from __future__ import annotations

from larksong.engine.grammar.attributes import CollectMembers, Members
from larksong.engine.grammar.grammar import Grammar
from larksong.engine.grammar.terminals import Role
from larksong.engine.parsing.stack import CompiledGrammar, Stack

_NONE = Members(0, 0, open=True)


class Outline:
    """The outline of one grammar, by the numbers of its tables."""

    def __init__(self, compiled: CompiledGrammar) -> None:
        grammar, number = compiled.grammar, compiled.number
        self._members = {
            number[origin]: action.members
            for origin, action in grammar.actions.items()
            if isinstance(action, CollectMembers) and origin in number
        }
        self.containers = {number[name]: number[origin] for name, origin in _containers(grammar).items()}
        """terminals that begin an array or object, and the rule of that"""

    def members_begun(self, stack: Stack) -> Members:
        """The members of the object that has just been opened on top of `stack`."""
        return next((self._members[goto] for goto in stack.state.gotos if goto in self._members), _NONE)


def _containers(grammar: Grammar) -> dict[str, str]:
    """JSON terminals that begin each alternative of one rule and come nowhere else: brackets with a name."""
    origins: dict[str, set[str]] = {}
    begins: dict[str, set[str]] = {}
    for rule in grammar.rules:
        for at, name in enumerate(rule.expansion):
            terminal = grammar.terminals.get(name)
            if terminal is not None and terminal.role is Role.JSON:
                single = at == 0 and len(rule.expansion) > 1
                origins.setdefault(name, set()).add(rule.origin if single else "")
        begins.setdefault(rule.origin, set()).add(rule.expansion[0] if rule.expansion else "")
    return {
        name: origin
        for name, (origin, *others) in ((name, list(found)) for name, found in origins.items())
        if not others and origin and begins[origin] == {name} and origin not in grammar.actions
    }
