"""What a request asks for: its tools, and how many calls of which it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from larksong.grammars.schema import DEFAULT_OPTIONS, Options


@dataclass(frozen=True)
class Tool:
    """A function that the model may call; `parameters` is the JSON Schema of its arguments.

    `options`: how the schema is compiled, above all what happens to keywords that nothing can enforce.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options: Options = DEFAULT_OPTIONS

    def __post_init__(self) -> None:
        if isinstance(self.description, Mapping | bool):
            raise TypeError(
                f"a schema is given as the description of the tool {self.name!r}: "
                "write Tool(name, description, parameters), or Tool(name, parameters=…)"
            )


@dataclass(frozen=True)
class CallPolicy:
    """How many calls a turn may have, and whether other text may stand beside them.

    `required`: the turn consists of calls. `only`: the name of the one tool that may be called. `reasoning`:
    whether the model may reason first, in formats that have markers for it. `text_between_calls`: whether
    text may stand between and after calls, in formats that allow it and turns that need not consist of calls.
    """

    required: bool = False
    min_calls: int = 0
    max_calls: int | None = None
    only: str | None = None
    reasoning: bool = True
    text_between_calls: bool = True
