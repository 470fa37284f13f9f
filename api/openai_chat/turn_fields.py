"""The fields that all APIs share beyond their own documents: how tokens are drawn, and Larksong's own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasChoices, Field

from larksong.api.openai_chat.sampler_fields import SamplerFields


class TurnFields(SamplerFields):
    """What every API takes and hands on to chat completions unchanged."""

    tool_format: str | None = None
    compat: Literal["tabbyapi", "none"] | None = None
    finish_within_budget: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = Field(
        None, validation_alias=AliasChoices("chat_template_kwargs", "template_vars")
    )

    def shared(self) -> dict[str, Any]:
        """These fields as the body of a chat completion has them."""
        given = TurnFields.model_fields.keys() & self.model_fields_set
        return {name: getattr(self, name) for name in given}
