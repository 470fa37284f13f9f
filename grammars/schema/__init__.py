"""JSON Schema → shapes, from which a grammar's rules are written."""

from larksong.grammars.schema.reader import Schema, Widened, read_parameters, read_schema

__all__ = ["Schema", "Widened", "read_parameters", "read_schema"]
