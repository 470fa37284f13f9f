"""The server's settings: command-line flags, then `LARKSONG_…` environment variables, then defaults."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from larksong.api.exllamav3_settings import ExllamaV3Fields
from larksong.api.schema_policy import OnUnenforceable
from larksong.engine.backends.model_store import DEFAULT_MODEL


class Settings(ExllamaV3Fields):
    """Every field can be set by a flag of `larksong serve` or by `LARKSONG_` and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="LARKSONG_", frozen=True, extra="ignore")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    backend: Literal["transformers", "exllamav3"] = Field(
        "transformers", description="transformers or exllamav3: what runs the model."
    )
    model: str = Field(DEFAULT_MODEL, description="Folder or GGUF file of a model.")
    served_name: str | None = Field(
        None, description="Name of the model in requests; without it the model's own."
    )
    format: str = Field(
        "qwen3_coder", description="Wire format of tool calls; tool_format in a request overrides it."
    )
    finish_within_budget: bool = Field(
        False,
        description="Lead calls to a valid end before max_tokens, where a request does not say whether to.",
    )
    forced_tokens: bool = Field(
        True, description="Take text that must come without asking the model for it, token by token."
    )
    unenforceable: OnUnenforceable | None = Field(
        None,
        description="refuse or widen: what happens to keywords of a schema that nothing can enforce. "
        "Without it strict: true refuses and anything else widens.",
    )
    schema_formats: bool = Field(True, description="Assert format in schemas.")
    compat: Literal["tabbyapi"] | None = Field(
        None, description="tabbyapi: the bytes of tabbyAPI's end parse; compat in a request overrides it."
    )
    log_level: Literal["critical", "error", "warning", "info", "debug"] = Field(
        "info", description="critical, error, warning, info or debug."
    )
