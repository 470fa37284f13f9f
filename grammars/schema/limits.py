"""How much of a schema is worked on before it is refused: a schema comes from outside and may be hostile."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """All counts are of one schema. Beyond a limit the schema is refused, with the limit's name."""

    depth: int = 100
    """levels of schemas inside schemas"""
    schemas: int = 10_000
    """schemas in the document that are different and reachable"""
    enum_values: int = 20_000
    """values of one `enum`"""
    alternatives: int = 512
    """alternatives of one place, after anyOf, oneOf, if, dependentSchemas are multiplied out"""
    nodes: int = 20_000
    """places with different meanings"""
    keys: int = 5_000
    """declared names of one object"""
    tuple_items: int = 256
    """schemas for the first items of one array"""
    text_characters: int = 100_000
    """characters of one name or text in `enum` or `const`"""
    pattern_characters: int = 20_000
    """characters of one regular expression"""
    seconds: float = 0.9
    """processor time for reading one schema"""


DEFAULT_LIMITS = Limits()
