"""Limits on what one request may ask for, beside those on its body and its time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from larksong.api.errors import ApiError
from larksong.api.http.sse import json_line
from larksong.api.openai_chat.requests import answer_form, tool_specs
from larksong.api.openai_chat.schemas import ChatRequest
from larksong.api.settings.settings import Settings
from larksong.api.turns.answer_form import AnswerSchema
from larksong.api.turns.schema_policy import DEFAULT_POLICY


def check_limits(request: ChatRequest, settings: Settings) -> None:
    """Refuse more tools, or a larger schema, than the server takes. Raises ApiError."""
    specs = tool_specs(request)
    name = "tools" if request.tools else "functions"
    if len(specs) > settings.max_tools:
        raise ApiError(
            f"'{name}' has {len(specs)} entries; this server takes {settings.max_tools}.",
            param=name,
            code="too_many_tools",
        )
    schemas: Iterable[tuple[str, Any]] = [
        (f"tools[{place}].function.parameters" if request.tools else f"functions[{place}].parameters", each)
        for place, each in enumerate(spec.function.parameters for spec in specs)
    ]
    form = answer_form(request, DEFAULT_POLICY)
    if isinstance(form, AnswerSchema):
        schemas = [*schemas, (form.field, form.schema)]
    for field, schema in schemas:
        try:
            size = len(json_line(schema))
        except RecursionError:
            raise ApiError("The request is nested too deeply.", param=field) from None
        if size > settings.max_schema_bytes:
            raise ApiError(
                f"The schema has {size} bytes; this server takes {settings.max_schema_bytes}.",
                param=field,
                code="schema_too_large",
            )
