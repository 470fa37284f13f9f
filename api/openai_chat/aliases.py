"""Fields that have several names: errors say the one which the client has given."""

from __future__ import annotations

import re
from collections.abc import Collection

from pydantic import AliasChoices

from larksong.api.openai_chat.schemas import ChatRequest

_NAMES = {
    field: [str(choice) for choice in info.validation_alias.choices]
    for field, info in ChatRequest.model_fields.items()
    if isinstance(info.validation_alias, AliasChoices)
}
"""the other names of a chat completion's fields, which completions have as well"""


def given_name(param: str | None, given: Collection[str]) -> str | None:
    """A field's path under that of its names which is among the `given` ones."""
    name = "" if param is None else re.split(r"\W", param, maxsplit=1)[0]
    if param is None or name in given or name not in _NAMES:
        return param
    return next((other for other in _NAMES[name] if other in given), name) + param.removeprefix(name)
