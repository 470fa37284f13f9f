"""How a schema is to be compiled."""

from __future__ import annotations

from dataclasses import dataclass

from larksong.grammars.schema.limits import DEFAULT_LIMITS, Limits


@dataclass(frozen=True)
class Options:
    """`widen`: drop, and list, what cannot be enforced, instead of refusing the schema.

    `formats`: whether `format` is asserted.
    """

    widen: bool = False
    formats: bool = True
    limits: Limits = DEFAULT_LIMITS


DEFAULT_OPTIONS = Options()
