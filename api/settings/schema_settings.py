"""The settings of what is made of schemas, as flags and environment variables."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings

from larksong.api.turns.schema_policy import OnUnenforceable, SchemaPolicy
from larksong.grammars.schema import DEFAULT_LIMITS, Limits


class SchemaFields(BaseSettings):
    """What `serve`, `grammar`, `check` and `explain` read: one schema is the same to all of them."""

    unenforceable: OnUnenforceable | None = Field(
        None,
        description="refuse or widen: what happens to keywords of a schema that nothing can enforce. "
        "Without it strict: true refuses and anything else widens.",
    )
    schema_formats: bool = Field(True, description="Assert format in schemas.")
    max_schema_depth: int = Field(
        DEFAULT_LIMITS.depth, ge=1, description="Most levels of schemas inside a schema."
    )
    max_schema_parts: int = Field(
        DEFAULT_LIMITS.schemas, ge=1, description="Most different schemas inside a schema."
    )
    max_schema_places: int = Field(
        DEFAULT_LIMITS.nodes, ge=1, description="Most places of a value that a schema tells apart."
    )
    max_schema_names: int = Field(
        DEFAULT_LIMITS.keys, ge=1, description="Most names that one object of a schema declares."
    )
    max_tuple_items: int = Field(
        DEFAULT_LIMITS.tuple_items, ge=1, description="Most items of an array with schemas of their own."
    )
    max_text_characters: int = Field(
        DEFAULT_LIMITS.text_characters,
        ge=1,
        description="Longest name or text in enum and const of a schema.",
    )
    max_enum_values: int = Field(
        DEFAULT_LIMITS.enum_values, ge=1, description="Most values of one enum of a schema."
    )
    max_alternatives: int = Field(
        DEFAULT_LIMITS.alternatives,
        ge=1,
        description="Most alternatives of one place, after anyOf, oneOf, if, not … are multiplied out.",
    )
    max_pattern_characters: int = Field(
        DEFAULT_LIMITS.pattern_characters, ge=1, description="Longest regular expression of a schema."
    )
    max_schema_seconds: float = Field(
        DEFAULT_LIMITS.seconds, gt=0, description="Most processor time for reading one schema."
    )

    def schema_policy(self) -> SchemaPolicy:
        """What is made of schemas."""
        limits = Limits(
            depth=self.max_schema_depth,
            schemas=self.max_schema_parts,
            enum_values=self.max_enum_values,
            alternatives=self.max_alternatives,
            nodes=self.max_schema_places,
            keys=self.max_schema_names,
            tuple_items=self.max_tuple_items,
            text_characters=self.max_text_characters,
            pattern_characters=self.max_pattern_characters,
            seconds=self.max_schema_seconds,
        )
        return SchemaPolicy(self.unenforceable, self.schema_formats, limits)
