"""What in a request refused a piece of text: found by leaving out one thing after the other.

A keyword is to blame if the text goes on where the schema is the same but for that keyword. This asks the
grammar itself, so it holds for every format and every keyword, and nothing is said of keywords that merely
stand near. Where only several of them together refuse the text, all of those are named.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence

from larksong.engine.engine import Engine
from larksong.engine.explain import byte_vocabulary
from larksong.engine.vocabulary import Vocabulary
from larksong.grammars.caching import per_vocabulary
from larksong.grammars.explain.blame import Answer, Wanted, blamed, edits_of, refused_member, shown, wanted_by
from larksong.grammars.explain.edits import Edit, without
from larksong.grammars.explain.progress import Progress, Spot, json_spot, read_turn
from larksong.grammars.explain.request import Request, accepts
from larksong.grammars.explain.subschemas import Subschemas
from larksong.grammars.tools import Tool
from larksong.grammars.wire.element_format import ElementFormat

_CACHE_BYTES = 64 << 20
_NAME_CHARACTERS = frozenset((string.ascii_letters + string.digits + "_-.:/").encode())
_MAX_AHEAD = 2_000
"""units of the refused text that are tried by another schema"""


class Why:
    """Explains refusals of one request over one vocabulary."""

    def __init__(self, request: Request, vocabulary: Vocabulary) -> None:
        self._request = request
        self._engine, self._ids = _byte_engine(vocabulary)
        self._tokens = vocabulary.tokens
        self._markers = {token: name for name, token in self._engine.vocabulary.special.items()}

    def units(self, tokens: Iterable[int]) -> list[int]:
        """Tokens as bytes and markers' ids of the vocabulary of bytes."""
        found: list[int] = []
        for token in tokens:
            data = self._tokens[token] if 0 <= token < len(self._tokens) else b""
            found += data or ([self._ids[token]] if token in self._ids else [])
        return found

    def wanted(self, before: Sequence[int], refused: Sequence[int]) -> tuple[Wanted, ...]:
        """What refused `refused` (token ids, the text that follows among them) after `before`.

        Empty where nothing but the wire format, or JSON itself, refuses it.
        """
        units = self.units(before)
        rest = self.units(refused)
        if not self.units(refused[:1]):
            return ()  # a token that stands for nothing
        grammar = self._request.grammar(self._engine.vocabulary)
        taken = accepts(self._engine, grammar, [*units, *rest])
        units, rest = [*units, *rest][:taken], [*units, *rest][taken:]
        if not rest:
            return ()
        progress = read_turn(self._engine.matcher(grammar), grammar, units)
        if self._request.format is None:
            return self._in_part(None, units, rest, json_spot(self._bytes(units), self._bytes(rest)))
        tool = self._request.tool(progress.tool)
        found: tuple[Wanted, ...] = ()
        if progress.inside and tool is not None:
            begin = self._begin(progress, tool, units, rest)
            if begin is not None:
                spot = self._spot(progress, units, rest, begin)
                found = self._in_part(tool, units[begin:], rest, spot)
        return found or self._in_envelope(progress, units, rest)

    # -- the envelope

    def _in_envelope(self, progress: Progress, units: list[int], rest: list[int]) -> tuple[Wanted, ...]:
        for field, value, freer in self._request.freer():
            grammar = freer.grammar(self._engine.vocabulary)
            if accepts(self._engine, grammar, [*units, rest[0]]) > len(units):
                message = f"the request wants {field} {shown(value)}"
                return (Wanted(None, f"/{field}", field, value, message, in_request=True),)
        wire = self._request.format
        assert wire is not None
        before = self._bytes(units)
        # Where nothing closes a name, one that begins like a tool's is refused behind it.
        behind_name = (
            progress.tool is not None
            and before.endswith((wire.function_name_prefix + progress.tool).encode())
            and (not progress.inside or progress.begin >= len(units) - 1)
        )
        goes_on = behind_name and rest[0] in _NAME_CHARACTERS
        if goes_on or (progress.in_function_name and wire.function_name_prefix.encode() in before):
            names = [tool.name for tool in self._request.tools]
            message = f"the request has these tools: {', '.join(names)}"
            return (Wanted(None, "/tools", "name", names, message, in_request=True),)
        return ()

    # -- arguments and answers

    def _begin(self, progress: Progress, tool: Tool, units: list[int], rest: list[int]) -> int | None:
        """Where the arguments begin, if they are what refuses the text."""
        part = self._request.part(tool, tool.parameters, self._engine.vocabulary)
        for begin in (progress.begin, progress.begin - 1):
            if part is not None and begin >= 0:
                text = [*units[begin:], rest[0]]
                if accepts(self._engine, part.grammar, text) == len(text) - 1:
                    return begin
        return None

    def _spot(self, progress: Progress, units: list[int], rest: list[int], begin: int) -> Spot:
        wire = self._request.format
        if not isinstance(wire, ElementFormat):
            return json_spot(self._bytes(units[begin:]), self._bytes(rest))
        text, opened = self._bytes(units[begin:]), wire.arg_name_prefix.encode()
        whole = text + self._bytes(rest)
        # The marker of one more parameter may be refused itself, or in the middle of it.
        start = whole.find(opened, max(len(text) - len(opened) + 1, 0), len(text) + len(opened))
        in_value = progress.parameter is not None and progress.value is not None
        if in_value and not whole[: max(start, 0)].endswith("".join(wire.arg_value_suffix).encode()):
            start = -1  # the same letters are text where no value ends before them
        if start < 0 and progress.parameter is not None and progress.value is not None:
            above = (progress.parameter,)
            value = self._bytes(units[progress.value :])
            if value.lstrip()[:1] in (b"{", b"["):
                return json_spot(value, self._bytes(rest), above)
            return Spot(above, in_string=True)
        if start < 0 and len(progress.names) < text.count(opened):
            start = text.rfind(opened)
        named = whole[start:].partition(opened)[2] if start >= 0 else b""
        name, end, _ = named.partition(wire.arg_name_suffix[0][:1].encode())
        return Spot((), name.decode(errors="replace") or None, bool(end), progress.names)

    def _in_part(
        self, tool: Tool | None, units: list[int], rest: list[int], spot: Spot
    ) -> tuple[Wanted, ...]:
        schema = self._request.schema_of(tool)
        if not isinstance(schema, dict):
            return ()
        subschemas = Subschemas(schema)
        along = subschemas.along(spot.path)
        member = refused_member(tool, along[-1], spot)
        if member is not None:
            return (member,)

        part = self._request.part(tool, schema, self._engine.vocabulary)
        widened = part.widened if part else frozenset()

        # An answer may well end where its text does; a call's arguments have text behind them.
        ahead = [*rest, *(self._engine.vocabulary.eos_ids if tool is None else ())][:_MAX_AHEAD]

        def goes_on(chosen: Iterable[Edit]) -> tuple[Answer, int]:
            part = self._request.part(tool, without(schema, chosen), self._engine.vocabulary)
            further = accepts(self._engine, part.grammar, [*units, *ahead]) - len(units) if part else 0
            if part is None or further <= 0:
                return Answer.NO, 0
            return (Answer.YES if part.widened <= widened else Answer.PERHAPS), further

        # A name is refused, too, where nothing can be its value.
        inside = subschemas.along((*spot.path, spot.name))[-1:] if spot.name is not None else []
        near = [edits_of(level, tool, spot.name) for level in (*inside, *reversed(along))]
        guilty = blamed(near, edits_of(subschemas.all(), tool, None), goes_on)
        marker = rest[0] in self._markers and rest[0] not in self._engine.vocabulary.eos_ids
        if not guilty and marker and spot.in_string:
            # No letter of a string: whatever the schema says, only a string without it is one.
            guilty = [edit for edit in edits_of(along[-1], tool, None) if edit.keyword == "type"][:1]
        return tuple(wanted_by(tool, schema, edit, spot, along[0]) for edit in guilty)

    def _bytes(self, units: Iterable[int]) -> bytes:
        return b"".join(
            bytes([unit]) if unit < 256 else self._markers.get(unit, "").encode() for unit in units
        )


@per_vocabulary(1)
def _byte_engine(vocabulary: Vocabulary) -> tuple[Engine, dict[int, int]]:
    twin, renamed = byte_vocabulary(vocabulary)
    return Engine(twin, cache_bytes=_CACHE_BYTES), renamed
