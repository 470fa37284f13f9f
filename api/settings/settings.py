"""The server's settings: flags, then `LARKSONG_…` environment variables, then a TOML file, then defaults."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, SecretStr, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from larksong.api.settings.cors_settings import origins_of, origins_text
from larksong.api.settings.exllamav3_settings import ExllamaV3Fields
from larksong.api.settings.reasoning_field import ReasoningField
from larksong.api.settings.schema_settings import SchemaFields
from larksong.engine.backends.model_store import DEFAULT_MODEL

PREFIX = "LARKSONG_"
FILE_VARIABLE = "LARKSONG_CONFIG"
_DEFAULT_FILE = "larksong.toml"


class SettingsFileError(ValueError):
    """A file of settings that is not there, or is not TOML."""


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _paths(value: Any) -> Any:
    """Paths with commas between them, also in each of several flags."""
    given = value if isinstance(value, list | tuple) else [value]
    return [
        path for each in given for path in (_listed(str(each)) if isinstance(each, str | Path) else [each])
    ]


class Settings(ExllamaV3Fields, SchemaFields):
    """Each can be set by a flag of `larksong serve`, by `LARKSONG_` and its name in capitals, and in the TOML
    file that `LARKSONG_CONFIG` names, else in `larksong.toml` of the working directory."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

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
    format_file: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_paths)] = Field(
        (), description="Python file that defines a wire format; several with commas between them."
    )
    finish_within_budget: bool = Field(
        False,
        description="Lead calls to a valid end before max_tokens, where a request does not say whether to.",
    )
    forced_tokens: bool = Field(
        True, description="Take text that must come without asking the model for it, token by token."
    )
    reasoning_field: ReasoningField = Field(
        "reasoning_content", description="reasoning_content, reasoning or both: where answers have reasoning."
    )
    api_key: SecretStr | None = Field(
        None, description="Key that requests must have; several with commas between them."
    )
    api_key_file: Path | None = Field(
        None, description="File with one key a line; read again whenever it changes."
    )
    cors_origins: Annotated[str | None, BeforeValidator(origins_text)] = Field(
        None,
        description="Origins whose web pages may ask, with commas between them; * for all. Without it none.",
    )
    max_body_bytes: int = Field(32 << 20, ge=1024, description="Largest body of a request.")
    max_tools: int = Field(1024, ge=1, description="Most tools in a request.")
    max_schema_bytes: int = Field(1 << 20, ge=1024, description="Largest schema, as JSON.")
    max_running: int = Field(64, ge=1, description="Requests that run at once.")
    max_waiting: int = Field(256, ge=0, description="Requests that wait; more get 429 with Retry-After.")
    max_seconds: float | None = Field(
        None, gt=0, description="Longest time for an answer, waiting and prompt included."
    )
    ping_seconds: float = Field(
        5.0,
        ge=0,
        description="Streams have a comment so often, also before the first token; 0: none.",
    )
    shutdown_seconds: float = Field(
        30.0, ge=0, description="How long running answers may go on when the server ends."
    )
    low_mass: float = Field(
        0.01, ge=0, le=1, description="A mask that leaves less of the probability is counted as low mass."
    )
    compat: Literal["tabbyapi"] | None = Field(
        None, description="tabbyapi: the bytes of tabbyAPI's end parse; compat in a request overrides it."
    )
    inspector: bool = Field(
        False,
        description="Show how turns are read, those that run, too: a page at /inspector.",
    )
    log_level: Literal["critical", "error", "warning", "info", "debug"] = Field(
        "info", description="critical, error, warning, info or debug."
    )
    log_format: Literal["text", "json"] = Field("text", description="text or json: lines of the log.")
    log_prompts: bool = Field(False, description="Log what clients ask. Off, since it may be private.")

    @field_validator("api_key")
    @classmethod
    def _has_a_key(cls, value: SecretStr | None) -> SecretStr | None:
        # An empty variable would leave a server open whose owner thinks it asks for keys.
        if value is not None and not _listed(value.get_secret_value()):
            raise ValueError("no key is in it: leave it out for a server that asks for none")
        return value

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, value: str | None) -> str | None:
        origins_of(value)
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, environment, file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, config_file())

    @classmethod
    def load(cls, **flags: Any) -> Settings:
        """The settings with these flags. Raises SettingsFileError, pydantic's ValidationError."""
        try:
            return cls(**flags)
        except tomllib.TOMLDecodeError as error:
            raise SettingsFileError(f"{config_file()} is not TOML: {error}") from error

    @property
    def keys(self) -> list[str]:
        """The API keys that were given."""
        return _listed(self.api_key.get_secret_value()) if self.api_key is not None else []


def config_file() -> Path | None:
    """The TOML file that is read, if there is one."""
    named = os.environ.get(FILE_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise SettingsFileError(f"{FILE_VARIABLE} names {named}, and there is no such file")
        return Path(named)
    default = Path(_DEFAULT_FILE)
    return default if default.is_file() else None


class Setting(NamedTuple):
    """A setting with its value as people read it, and where that came from."""

    name: str
    value: str
    source: str


def sources(flags: Collection[str]) -> Callable[[str], str]:
    """What says where the value of a setting came from; `flags`: those that were given."""
    file = config_file()
    in_file = tomllib.loads(file.read_text(encoding="utf-8")) if file is not None else {}
    variables = {name.upper() for name in os.environ}

    def source(name: str) -> str:
        variable = PREFIX + name.upper()
        if name in flags:
            return f"flag --{name.replace('_', '-')}"
        if variable in variables:
            return f"environment {variable}"
        return f"file {file}" if name in in_file else "default"

    return source


def explained(settings: Settings, flags: Collection[str]) -> list[Setting]:
    """Every setting, its value and its source; `flags`: those that were given. Keys are not shown."""
    source = sources(flags)
    found = []
    for name in Settings.model_fields:
        value = getattr(settings, name)
        if isinstance(value, tuple):
            value = ", ".join(map(str, value))
        found.append(Setting(name, "" if value is None else str(value), source(name)))
    return found
