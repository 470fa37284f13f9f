"""A turn that is read token by token and can be looked at in any order afterwards."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from larksong.api.inspector.cutting import Cutting
from larksong.api.inspector.schemas import Assembled, CallTail, Page, StepShape, Terminal
from larksong.api.inspector.sources import Source
from larksong.api.openai_chat.schemas import EventInfo
from larksong.api.turns.deltas import ArgumentsDelta, CallDelta, ContentDelta, Delta, ReasoningDelta
from larksong.engine.backends.sampler import AllowedCounts
from larksong.engine.explain import LiveTerminal, live
from larksong.engine.matcher import Matcher
from larksong.engine.packed import ids_of
from larksong.engine.parsing.stack import Configuration

FEW = 12  # allowed tokens that are named
TAIL = 20_000  # characters of an assembled text that a page begins with


class Reading:
    """One turn. `case`: a line for `larksong parse`, whose text is spelled from the tokens where it has none.

    Thread-safe. Masks and terminals are looked up when a page is asked for, so a long text is read fast.
    """

    def __init__(self, source: Source, cutting: Cutting, case: dict[str, Any]) -> None:
        self._case = case
        self._cutting = cutting
        self.refusal: dict[str, Any] | None = None
        self._source = source
        self._tokens: list[int] = []
        self._events: list[Sequence[EventInfo]] = []
        self._deltas: list[Sequence[Delta]] = []
        self._unread = 0
        self._ended = False
        self._complete = False
        self._lock = threading.RLock()
        self._counts = AllowedCounts()

    def __len__(self) -> int:
        return len(self._tokens)

    def feed(self, tokens: Sequence[int]) -> None:
        """Read more; what follows a refused token is only counted."""
        with self._lock:
            for at, token in enumerate(tokens):
                if self._source.fault or self._ended:
                    self._unread += len(tokens) - at
                    return
                events, deltas = self._source.feed(token)
                self._tokens.append(token)
                self._events.append(events)
                self._deltas.append(deltas)

    def feed_up_to(self, tokens: Sequence[int]) -> None:
        """Read what is new of a list of tokens that grows."""
        with self._lock:
            self.feed(tokens[len(self._tokens) + self._unread :])

    def as_case(self) -> dict[str, Any]:
        """A line that `larksong parse` reads."""
        if "text" in self._case:
            return self._case
        with self._lock:
            return {**self._case, "text": self._cutting.spelled(self._tokens)}

    def end(self) -> None:
        """The turn is over: what was held back is given out at the place after the last token."""
        with self._lock:
            if not self._ended:
                self._complete = self._source.complete
                events, deltas = ((), ()) if self._source.fault else self._source.finish()
                self._ended = True
                self._events.append(events)
                self._deltas.append(deltas)

    def page(self, session: str, start: int, size: int) -> Page:
        """Steps from `start` on."""
        with self._lock:
            count = len(self._tokens) + 1
            start = max(0, min(start, count - 1))
            terminals: dict[LiveTerminal, int] = {}
            page: Page = {
                "session": session,
                "start": start,
                "count": count,
                "tokenizer": self._cutting.title,
                "tokens": self._cutting.vocabulary.width,
                "unread": self._unread,
                "complete": self._complete,
                "growing": not self._ended,
                "before": self._assembled(start),
                "terminals": [],
                "steps": self._steps(start, min(start + size, count), terminals),
            }
            page["terminals"] = [_terminal(each) for each in terminals]
            if self.refusal is not None:
                page["refusal"] = self.refusal
            return page

    def _steps(self, start: int, end: int, terminals: dict[LiveTerminal, int]) -> list[StepShape]:
        cursor = self._source.at(start)
        steps: list[StepShape] = []
        for place in range(start, end):
            last = place == len(self._tokens)
            token = None if last else self._tokens[place]
            step: StepShape = {
                "token": token,
                "text": "" if token is None else self._cutting.name(token),
                "special": token is not None and self._source.is_special(token),
                "refused": bool(self._source.fault) and place == len(self._tokens) - 1,
                "events": list(self._events[place]) if place < len(self._events) else [],
                "deltas": [_delta(each) for each in self._deltas[place]] if place < len(self._deltas) else [],
            }
            if cursor is not None and not (last and self._source.fault):
                self._look(step, cursor, terminals)
                if token is not None:
                    cursor.advance(token)
            steps.append(step)
        return steps

    def _look(self, step: StepShape, cursor: Matcher, terminals: dict[LiveTerminal, int]) -> None:
        mask = cursor.mask()
        here = cursor.configuration
        step["allowed"] = self._counts.of(mask)
        if step["allowed"] <= FEW:
            step["few"] = [self._cutting.name(token) for token in ids_of(mask)]
        step["live"] = [terminals.setdefault(each, len(terminals)) for each in live(here)]
        step["stack"] = _depth(here)

    def _assembled(self, end: int) -> Assembled:
        content: list[str] = []
        reasoning: list[str] = []
        calls: list[tuple[str, list[str]]] = []
        for deltas in self._deltas[:end]:
            for delta in deltas:
                match delta:
                    case ContentDelta(text):
                        content.append(text)
                    case ReasoningDelta(text):
                        reasoning.append(text)
                    case CallDelta(_, _, name):
                        calls.append((name, []))
                    case ArgumentsDelta(index, fragment):
                        calls[index][1].append(fragment)
        shown: list[CallTail] = []
        for name, pieces in calls:
            text = "".join(pieces)
            shown.append({"name": name, "text": text[-TAIL:], "length": len(text)})
        said, thought = "".join(content), "".join(reasoning)
        return {
            "content": {"text": said[-TAIL:], "length": len(said)},
            "reasoning": {"text": thought[-TAIL:], "length": len(thought)},
            "calls": shown,
        }


def _depth(configuration: Configuration) -> int:
    deepest = 0
    for thread in configuration.threads:
        depth, stack = 1, thread.stack
        while stack.parent is not None:
            depth, stack = depth + 1, stack.parent
        deepest = max(deepest, depth)
    return deepest


def _terminal(terminal: LiveTerminal) -> Terminal:
    return {"name": terminal.name, "role": terminal.role.value, "text": terminal.text}


def _delta(delta: Delta) -> dict[str, Any]:
    match delta:
        case ContentDelta(text):
            return {"kind": "content", "text": text}
        case ReasoningDelta(text):
            return {"kind": "reasoning", "text": text}
        case CallDelta(index, _, name):
            return {"kind": "call", "index": index, "name": name}
        case ArgumentsDelta(index, fragment):
            return {"kind": "arguments", "index": index, "text": fragment}
