"""Messages and tools → the tokens of the prompt.

The chat template writes text. Around it three things happen: markers in the clients' own text are quoted (see
`quoting`), turns that the model wrote itself come back as the tokens that it wrote (see `call_memory`), and
the pieces between are encoded.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from larksong.api.turns.call_memory import CallMemory, WrittenTurn
from larksong.api.turns.prompt import ChatMessage, ChatTemplate
from larksong.api.turns.quoting import Quoting, spellings, unused_character
from larksong.engine.backends.base import Backend
from larksong.engine.backends.encoding import encoded, text_ids
from larksong.grammars import Tool, WireFormat

Piece = str | tuple[int, ...]


@dataclass(frozen=True)
class Prompt:
    """`tokens` of the prompt. `header`: the text at its end with which the template begins the answer.

    `in_reasoning`: it ends inside reasoning.
    """

    tokens: tuple[int, ...]
    header: str
    in_reasoning: bool


@dataclass(frozen=True)
class _Place:
    """Marks of a remembered turn: `before` in the message before it, `calls` in the names of its calls."""

    turn: WrittenTurn
    before: str | None
    calls: tuple[str, ...]


class PromptWriter:
    """Writes the prompts of one model."""

    def __init__(self, backend: Backend, template: ChatTemplate, memory: CallMemory) -> None:
        self._backend = backend
        self._template = template
        self._memory = memory
        vocabulary = backend.vocabulary
        self._quoting = Quoting(vocabulary.special)
        self._ends = [text for text, token in vocabulary.special.items() if token in vocabulary.eos_ids]
        self._markers = vocabulary.special.keys() - set(self._ends)
        self._special = {token: text.encode() for text, token in vocabulary.special.items()}

    def write(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool],
        wire_format: WireFormat,
        variables: Mapping[str, Any],
    ) -> Prompt:
        """The prompt. Raises TemplateRefusal, RecursionError."""
        everything = [messages, [(tool.name, tool.description, tool.parameters) for tool in tools]]
        cut = unused_character(everything)
        place = unused_character([everything, cut])
        turns = [self._memory.find(message) for message in messages]
        ids = self._ids(messages, turns, wire_format)
        quoted = [_with_ids(message, ids) for message in messages]
        quoted = [self._quoting.quote_message(each, cut) for each in quoted]
        places = _mark(quoted, turns, place)
        shown = [
            replace(
                tool,
                name=self._quoting.quote(tool.name, cut),
                description=self._quoting.quote(tool.description, cut),
                parameters=self._quoting.quote(tool.parameters, cut),
            )
            for tool in tools
        ]
        text = self._template.render(quoted, shown, wire_format, variables)
        before = self._template.render(quoted, shown, wire_format, variables, answer=False)
        header = text.removeprefix(before) if text.startswith(before) else ""
        if not header:
            # Nothing says that an answer begins: the end of the last message is its header.
            header = text[max((text.rfind(marker) for marker in self._markers), default=0) :]
        in_reasoning = wire_format.ends_in_reasoning(text)
        pieces = self._with_turns(text, places, wire_format, cut)
        mark = "|".join(re.escape(each) + r"\d+" + re.escape(each) for each in spellings(place))

        def parts(written: str) -> list[str]:
            """What is encoded alone, without marks."""
            if places:
                written = re.sub(mark, "", written)
            return self._quoting.split(written, cut)

        tokens: list[int] = []
        for piece in pieces:
            if isinstance(piece, tuple):
                tokens += piece
                continue
            for part in parts(piece):
                tokens += self._encode(part, is_first=not tokens)
        return Prompt(tuple(tokens), "".join(parts(header)), in_reasoning)

    def encode(self, text: str) -> tuple[int, ...]:
        """A prompt that is text and nothing else, in which markers are markers."""
        return tuple(self._encode(text, is_first=True))

    def _encode(self, text: str, *, is_first: bool) -> list[int]:
        # JSON may carry lone surrogates (text cut in the middle of an emoji); no tokenizer takes them.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if not text:
            return []
        if is_first:
            return encoded(self._backend.tokenizer, text)
        return text_ids(self._backend.tokenizer, self._backend.vocabulary, text)

    def _with_turns(self, text: str, places: Sequence[_Place], wire: WireFormat, cut: str) -> list[Piece]:
        """The prompt's text with the remembered turns as tokens, where the text tells where they belong."""
        pieces: list[Piece] = []
        done = 0
        for place in places:
            found = self._region(text, place, wire, done)
            if found is None:
                continue
            begin, end = found
            region = text[begin:end].replace(cut, "")
            turn = place.turn
            opening = turn.header[len(_role_header(turn.header, wire)) :]
            tokens = turn.tokens
            last = self._special.get(tokens[-1], b"").decode()
            if tokens[-1] in self._backend.vocabulary.eos_ids and text.startswith(last, end):
                tokens = tokens[:-1]  # it ends a call, too, and stands in the text
            if turn.reasoning.strip() and turn.reasoning.strip() not in region:
                # The template has removed the reasoning: the answer alone comes back.
                if turn.answer_at is None:
                    continue
                tokens = tokens[turn.answer_at :]
                closer = wire.reasoning[1] if wire.reasoning else ""
                lead, closed, _ = region.partition(closer) if closer else ("", "", "")
                opening = lead + closed if closed else ""
                if not closed:
                    tokens = self._without(_role_header(turn.header, wire), tokens)
                    tokens = tuple(itertools.dropwhile(self._is_break, tokens))
            pieces += [text[done:begin], opening, tokens]
            done = end
        return [*pieces, text[done:]]

    def _region(self, text: str, place: _Place, wire: WireFormat, done: int) -> tuple[int, int] | None:
        """Where the turn stands in the text: from behind the role's header up to what ends a turn."""
        begin = done
        if place.before is not None and (before := text.find(place.before, done)) >= 0:
            begin = before
        names = [text.find(mark, begin) for mark in place.calls]
        header = _role_header(place.turn.header, wire)
        at = text.find(header, begin) if header else -1
        if at < 0 or min(names) < at:
            return None
        ends = [end for mark in self._ends if (end := text.find(mark, names[-1])) >= 0]
        return (at + len(header), min(ends)) if ends else None

    def _ids(
        self, messages: Sequence[ChatMessage], turns: Sequence[WrittenTurn | None], wire: WireFormat
    ) -> Mapping[str, str]:
        """The ids of calls in the history: what the model wrote for it, or what its family takes."""
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        ids = wire.history_ids([(call["id"], call["function"]["name"]) for call in calls])
        for turn in turns:
            if turn is not None:
                found = wire.written_ids(self._text(turn.tokens))
                if len(found) == len(turn.calls):
                    ids |= {call.id: id for call, id in zip(turn.calls, found, strict=True)}
        return ids

    def _text(self, tokens: Sequence[int]) -> str:
        text = self._backend.vocabulary.text
        spelled = (self._special.get(token) or text(token) for token in tokens)
        return b"".join(spelled).decode(errors="replace")

    def _without(self, header: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """The tokens without a header at their beginning: after reasoning some families write it again."""
        for size in range(1, min(len(tokens), len(header)) + 1):
            if self._text(tokens[:size]) == header:
                return tokens[size:]
        return tokens

    def _is_break(self, token: int) -> bool:
        text = self._backend.vocabulary.text(token)
        return bool(text) and not text.strip(b"\n")


def _role_header(header: str, wire: WireFormat) -> str:
    """A header without the marker that opens reasoning and what follows it."""
    return header.partition(wire.reasoning[0])[0] if wire.reasoning else header


def _mark(messages: list[dict[str, Any]], turns: Sequence[WrittenTurn | None], place: str) -> list[_Place]:
    """Mark the places of remembered turns: in the text before each, and in the names of its calls."""
    numbers = itertools.count()
    places: list[_Place] = []
    for index, turn in enumerate(turns):
        if turn is None:
            continue
        before = None
        if index and (content := messages[index - 1]["content"]):
            # In the middle, since templates trim texts, and look at how they begin and end.
            before = f"{place}{next(numbers)}{place}"
            middle = len(content) // 2
            messages[index - 1]["content"] = content[:middle] + before + content[middle:]
        calls = messages[index]["tool_calls"]
        names = tuple(f"{place}{next(numbers)}{place}" for _ in calls)
        for call, name in zip(calls, names, strict=True):
            call["function"]["name"] += name
        if turn.reasoning and not messages[index].get("reasoning_content"):
            messages[index]["reasoning_content"] = turn.reasoning
        places.append(_Place(turn, before, names))
    return places


def _with_ids(message: ChatMessage, ids: Mapping[str, str]) -> dict[str, Any]:
    """The message with ids of calls as the model family writes them."""
    changed = {**message}
    if "tool_call_id" in message:
        changed["tool_call_id"] = ids.get(message["tool_call_id"], message["tool_call_id"])
    if "tool_calls" in message:
        changed["tool_calls"] = [{**call, "id": ids[call["id"]]} for call in message["tool_calls"]]
    return changed
