"""The messages of a request, in all shapes that clients send."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field

T = TypeVar("T")


class _FirstError(FailFast):
    """Entries behind a wrong one are not looked at: to report a million of them would take a minute."""

    __hash__ = object.__hash__  # or it could not stand in a union


ListOf = Annotated[list[T], _FirstError()]
DictOf = Annotated[dict[str, T], _FirstError()]


class RequestPart(BaseModel):
    """A part of a request: what is not declared is ignored, what is has exactly its type."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


def _object(arguments: Any) -> Any:
    """Arguments in the history: JSON text as OpenAI has it, an object, or nothing."""
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the arguments are not JSON ({error})") from None
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")
    return arguments


class TextPart(RequestPart):
    """A part of a message's content that is text."""

    type: Literal["text"]
    text: str


class RefusalPart(RequestPart):
    """A part of an assistant's content that says why there is no other."""

    type: Literal["refusal"]
    refusal: str

    @property
    def text(self) -> str:
        """The refusal as text."""
        return self.refusal


ContentPart = TextPart | RefusalPart
"""Other kinds than text are refused: to leave out an image would change the answer."""


class HistoryFunction(RequestPart):
    """The function of an earlier call."""

    name: str
    arguments: Annotated[dict[str, Any], BeforeValidator(_object)] = Field(default_factory=dict)


class HistoryCall(RequestPart):
    """A call that the assistant made in an earlier turn."""

    id: str = ""
    type: Literal["function"] = "function"
    function: HistoryFunction


class Message(RequestPart):
    """A message of the conversation. `function_call` and the role `function` go with `functions`."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | ListOf[ContentPart] | None = None
    name: str | None = None
    tool_calls: ListOf[HistoryCall] | None = None
    tool_call_id: str | None = None
    function_call: HistoryFunction | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    @property
    def text(self) -> str:
        """The content as one text."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or self.refusal or ""
