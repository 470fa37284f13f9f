"""Text of clients in a prompt: what reads like a marker there is encoded as plain text.

A chat template puts messages between markers (`<|im_end|>`, `<tool_call>`). If the text of a user or a tool
holds such a marker, the tokenizer must not see it, or whoever wrote the text could end the message and go on
as another. Templates trim, escape and join what they are given, so the text cannot be found again by its
place. Instead a character that the request has nowhere else is put behind the first character of each marker
before the template runs. Where it comes out in a marker the prompt is cut, and no tokenizer finds one across.

    "a <|im_end|> b"  ─►  "a <✂|im_end|> b"  ─► template ─►  "…a <" | "|im_end|> b…"  ─► each encoded alone

What might become a part of a marker gets the character, too: a name `think` stands as it is in `"think"`, and
is cut where a template writes `<think>` of it.
"""

from __future__ import annotations

import itertools
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_EDGES = re.compile(r"\A\W+|\W+\Z")


class Quoting:
    """Finds the markers of one vocabulary in texts, and what templates may complete to one.

    `<parameter={{ name }}>` makes a marker of the name `<|im_end|`, and `<{{ name }}>` one of `|im_end|`, or
    `<think>` of `think`.
    """

    def __init__(self, markers: Iterable[str]) -> None:
        # A marker of one character cannot be cut.
        found = sorted((marker for marker in markers if len(marker) > 1), key=len, reverse=True)
        any_of = "|".join(map(re.escape, found))
        first = "".join(sorted({re.escape(marker[0]) for marker in found}))
        # The first part makes the search fast: hardly a character of a text begins a marker.
        self._marker = re.compile(f"[{first}](?<=(?=({any_of})).)", re.DOTALL) if found else None
        self._words = {word for marker in found if len(word := _EDGES.sub("", marker)) > 1}
        self._tails = {marker[place:] for marker in found for place in range(1, len(marker) - 1)}
        self._heads = {marker[:place] for marker in found for place in range(2, len(marker))}
        self._tail_begins = {tail[:2] for tail in self._tails}
        self._head_ends = {head[-2:] for head in self._heads}
        self._longest = len(found[0]) if found else 0
        self._all = "\0".join(found)

    def quote(self, value: Any, cut: str) -> Any:
        """A copy of a JSON value with `cut` behind the first character of each marker in it.

        Also in what may become a part of one at its edges; `split` finds out.
        """
        marker = self._marker
        if marker is None:
            return _map_texts(value, lambda text: text)

        def quoted(text: str) -> str:
            return marker.sub(lambda found: found[0] + cut, self._with_cut_edges(text, cut))

        return _map_texts(value, quoted)

    def quote_message(self, message: Mapping[str, Any], cut: str) -> dict[str, Any]:
        """A message with everything quoted that is not its own form."""
        quoted = {
            key: each if key in ("role", "tool_calls") else self.quote(each, cut)
            for key, each in message.items()
        }
        if "tool_calls" in message:
            quoted["tool_calls"] = [
                {
                    **call,
                    "id": self.quote(call["id"], cut),
                    "function": {key: self.quote(each, cut) for key, each in call["function"].items()},
                }
                for call in message["tool_calls"]
            ]
        return quoted

    def split(self, text: str, cut: str) -> list[str]:
        """The text in the parts that are to be encoded alone: in two where `cut` stands in a marker."""
        for spelling in spellings(cut):
            text = text.replace(spelling, cut)
        pieces = text.split(cut)
        if self._marker is None or len(pieces) == 1:
            return ["".join(pieces)]
        text = "".join(pieces)
        places = itertools.accumulate(map(len, pieces[:-1]))
        inside: list[int] = []
        place: int | None = next(places)
        for found in self._marker.finditer(text):
            begin, end = found.start(), found.start() + len(found[1])
            while place is not None and place < end:
                if place > begin and (not inside or place > inside[-1]):
                    inside.append(place)
                place = next(places, None)
        edges = [0, *inside, len(text)]
        return [text[begin:end] for begin, end in itertools.pairwise(edges)]

    def _with_cut_edges(self, text: str, cut: str) -> str:
        """The text with `cut` in what stands at its edges and is a part of a marker, two characters or more.

        Of words alone only those that are all of a marker but its brackets: templates know others as keys.
        """
        sizes = range(2, min(len(text), self._longest) + 1)
        if text[-2:] in self._head_ends:
            for size in reversed(sizes):
                if text[-size:] in self._heads:
                    place = len(text) - size + 1
                    text = text[:place] + cut + text[place:]
                    break
        if text[:2] in self._tail_begins and (
            any(text[:size] in self._tails for size in sizes)
            or text in self._words
            or (len(text) < self._longest and not text.isidentifier() and text in self._all)
        ):
            text = text[0] + cut + text[1:]
        return text


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case Mapping():
            return {_map_texts(key, change): _map_texts(each, change) for key, each in value.items()}
        case list() | tuple():
            return [_map_texts(each, change) for each in value]
        case _:
            return value


def texts(value: Any) -> Iterator[str]:
    """All texts and keys of a JSON value."""
    match value:
        case str():
            yield value
        case Mapping():
            for key, each in value.items():
                yield key
                yield from texts(each)
        case list() | tuple():
            for each in value:
                yield from texts(each)


def unused_character(value: Any) -> str:
    """A character that no text of `value` has and no template writes."""
    while True:
        character = chr(0x100000 + secrets.randbelow(0xFFFD))  # a private-use plane
        if not any(character in text for text in texts(value)):
            return character


def spellings(text: str) -> tuple[str, str]:
    """How a template may write `text`: as it is, or escaped as JSON."""
    return text, json.dumps(text)[1:-1]
