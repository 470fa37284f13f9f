"""The answer that deltas add up to."""

from __future__ import annotations

from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta


class Answer:
    """Gathers the deltas of one turn; long texts are joined once, when they are asked for."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[CallDelta] = []
        self._arguments: list[list[str]] = []

    def add(self, delta: Delta) -> None:
        """Add the next delta."""
        match delta:
            case ArgumentsDelta(index, fragment):
                self._arguments[index].append(fragment)
            case ContentDelta(text):
                self._content.append(text)
            case ReasoningDelta(text):
                self._reasoning.append(text)
            case CallDelta():
                self._calls.append(delta)
                self._arguments.append([])

    @property
    def content(self) -> str:
        """The visible text."""
        return "".join(self._content)

    @property
    def reasoning(self) -> str:
        """The reasoning."""
        return "".join(self._reasoning)

    @property
    def calls(self) -> list[tuple[CallDelta, str]]:
        """The calls, each with the JSON text of its arguments."""
        return [
            (call, "".join(arguments)) for call, arguments in zip(self._calls, self._arguments, strict=True)
        ]
