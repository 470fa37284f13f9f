"""The fields that form the answer: OpenAI's `response_format` and the forms of vLLM and tabbyAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError, from_json

from larksong.api.openai_chat.messages import ListOf, RequestPart


class TextFormat(RequestPart):
    """The answer is text."""

    type: Literal["text"]


class JsonObjectFormat(RequestPart):
    """The answer is one JSON object."""

    type: Literal["json_object"]


class JsonSchemaSpec(RequestPart):
    """The schema of the answer."""

    name: str | None = None
    body: dict[str, Any] | bool = Field(alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(RequestPart):
    """The answer is one JSON text of a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchemaSpec


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")]


def _schema(value: Any) -> Any:
    """A schema, or its JSON text."""
    if isinstance(value, str):
        try:
            return from_json(value)
        except ValueError as error:
            raise PydanticCustomError(
                "invalid_schema", "the schema is not JSON ({reason})", {"reason": str(error)}
            ) from None
    return value


Schema = Annotated[dict[str, Any] | bool, BeforeValidator(_schema)]


class StructuredOutputs(RequestPart):
    """vLLM's: one of its members is given."""

    json_schema: Schema | None = Field(None, alias="json")
    regex: str | None = None
    choice: ListOf[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
