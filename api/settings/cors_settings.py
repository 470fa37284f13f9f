"""Which web pages may ask the server from a browser, as a setting."""

from __future__ import annotations

import re
from typing import Any

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*]+")


def origins_text(value: Any) -> Any:
    """A list of origins, as a TOML file may have it, as the one text that flags and variables have."""
    return (
        ",".join(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
    )


def origins_of(text: str | None) -> list[str]:
    """The origins of the setting, spelled as browsers send them. Raises ValueError for what is none."""
    origins = [each.strip().removesuffix("/").lower() for each in (text or "").split(",") if each.strip()]
    for origin in origins:
        if origin not in ("*", "null") and not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"'{origin}' is no origin: * is one, or scheme, host and port such as http://localhost:3000"
            )
    return origins
