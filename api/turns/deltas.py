"""Deltas: what a turn grew by, in terms that every API shape can render.

They are OpenAI's stream fragments without the envelope: a call's first delta carries its index, id and name,
later ones only a piece of its arguments. Pieces never split a code point or a JSON escape.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """A piece of the visible answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A call has begun. `index` counts the calls of the turn from 0."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of the JSON text of the arguments of call `index`."""

    index: int
    fragment: str


Delta = ContentDelta | ReasoningDelta | CallDelta | ArgumentsDelta
