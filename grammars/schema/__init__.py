"""JSON Schema → shapes, from which a grammar's rules are written."""

from larksong.grammars.schema.limits import DEFAULT_LIMITS, Limits
from larksong.grammars.schema.options import DEFAULT_OPTIONS, Options
from larksong.grammars.schema.reader import Schema, Widened, read_parameters, read_schema

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_OPTIONS",
    "Limits",
    "Options",
    "Schema",
    "Widened",
    "read_parameters",
    "read_schema",
]
