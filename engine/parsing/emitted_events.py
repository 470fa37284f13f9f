"""What reading reveals: the parse events of a terminal's beginning, of bytes inside it and of its end."""

from __future__ import annotations

from larksong.engine.events import (
    CallClose,
    Content,
    Events,
    FunctionOpen,
    Json,
    Name,
    ParameterClose,
    ParameterOpen,
    ParseEvent,
    Reasoning,
    Text,
)
from larksong.engine.grammar.attributes import Member, Taken, Value
from larksong.engine.grammar.grammar import Terminal
from larksong.engine.grammar.terminals import Literal, Role
from larksong.engine.parsing.stack import BoundTerminal, Configuration, Reading, Thread

Reached = dict[Thread, tuple[Reading, Events]]
"""The threads to which a token leads, each with the reading before it and what it reveals."""


def name_parameters(before: Configuration, target: Configuration, reached: Reached) -> Reached:
    """Tell a parameter's name in the token that decides it, and not again where it is complete."""
    named, naming = before.parameter, target.parameter
    renamed: Reached = {}
    for thread, (reading, events) in reached.items():
        told = next((i for i, event in enumerate(events) if isinstance(event, ParameterOpen)), len(events))
        # Without its end the same name is still being read; behind it another one may have begun.
        goes_on = named is not None and told == len(events)
        if named is not None:
            events = events[:told] + events[told + 1 :]
        if naming is not None and not goes_on:
            events += closing(naming.bound.terminal, naming.bound.label, None)
        renamed[thread] = (reading, events)
    return renamed


def opening(bound: BoundTerminal) -> Events:
    """What is certain before a terminal's first byte: a name where there is no other, the type of a value."""
    if bound.terminal.role is Role.TEXT:
        return (Text(b""),)
    if bound.terminal.role is Role.FUNCTION_OPEN and bound.unique[bound.automaton.start] is not None:
        return (FunctionOpen(str(bound.unique[bound.automaton.start])),)
    return ()


def continuation(bound: BoundTerminal, state: int, data: bytes, following: int) -> Events:
    """What reading `data` inside a terminal reveals."""
    if bound.terminal.role is Role.FUNCTION_OPEN:
        before, after = bound.unique[state], bound.unique[following]
        return (FunctionOpen(str(after)),) if before is None and after is not None else ()
    if not bound.streams:
        return ()
    return piece(bound, bound.automaton.released(state, data, following))


def piece(bound: BoundTerminal, data: bytes) -> Events:
    if not data or not bound.streams:
        return ()
    role = bound.terminal.role
    if role is Role.JSON:
        return (Json(data),)
    if role is Role.TEXT:
        return (Text(data),)
    if role is Role.NAME:
        return (Name(data),)
    return (Content(data),) if role is Role.CONTENT else (Reasoning(data),)


def closing(terminal: Terminal, outcome: Value, value: Value) -> Events:
    """What the end of a terminal reveals; `value` is what it pushed."""
    role = terminal.role
    if role is Role.PARAMETER_OPEN:
        member = outcome if isinstance(outcome, Member) else value
        return (ParameterOpen(member.name if isinstance(member, Member | Taken) else ""),)
    if role is Role.NAME_END:
        return (FunctionOpen(""),)  # the pieces of the name came before
    if role is Role.PARAMETER_CLOSE:
        return (ParameterClose(),)
    if role is Role.CALL_CLOSE:
        return (CallClose(),)
    if role is Role.JSON:
        if isinstance(outcome, Member):
            return (Json(outcome.reported_as.encode()),) if outcome.reported_as else ()
        if isinstance(outcome, str) or terminal.reported_as:
            return (Json((terminal.reported_as or str(outcome)).encode()),)
    return ()


def stopped(terminal: Terminal, label: Value, value: Value) -> Events:
    """What a terminal reveals whose text a stop holds: what is read of it otherwise, and its end."""
    if terminal.role is Role.FUNCTION_OPEN:
        return (FunctionOpen(str(label)),)
    if terminal.role is Role.JSON and not terminal.reported_as and isinstance(terminal.definition, Literal):
        return (Json(terminal.definition.text.encode()),)
    return closing(terminal, label, value)


def common(alternatives: list[Events]) -> Events:
    """The events with which all alternatives begin."""
    shared: list[ParseEvent] = []
    for events in zip(*alternatives, strict=False):
        if any(event != events[0] for event in events):
            break
        shared.append(events[0])
    return tuple(shared)
