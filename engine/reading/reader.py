"""The reader: one pass over text that nobody constrained, by an open grammar.

It never raises and loses no text. Where the grammar refuses a byte, a call that has not told its name was
none: its text is visible text. A call that has is closed as it stands, with a warning, and the rest is
visible text. Then the grammar begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from larksong.engine.events import (
    CallClose,
    Content,
    Events,
    FunctionOpen,
    Json,
    Name,
    ParameterClose,
    ParameterOpen,
    ParseEvent,
    Reasoning,
    Text,
    coalesce,
)
from larksong.engine.grammar.terminals import Role
from larksong.engine.parsing.stack import Branch, Configuration, Reading
from larksong.engine.reading.byte_automaton import ByteAutomaton, ByteStep
from larksong.engine.reading.substitution import Substitution

_UNKNOWN: Final = cast(ByteStep, object())


class TextReader:
    """Reads one turn.

    `again`: the automaton of what may follow a turn that is whole; `on`: that of text in the middle of an
    answer, where one was broken off. `substitution`: a marker inside raw strings, and the text for it.
    """

    def __init__(
        self,
        first: ByteAutomaton,
        again: ByteAutomaton,
        on: ByteAutomaton,
        substitution: tuple[bytes, bytes] | None = None,
    ) -> None:
        self._substitution = Substitution(*substitution) if substitution is not None else None
        self._automaton, self._again, self._on = first, again, on
        self._at: Configuration = first.token_automaton.start
        self._open: dict[Reading, list[ParseEvent]] = {}
        """what each reading of a value holds whose type is still open"""
        self._name = b""
        self._function: str | None = None
        self._parameter: str | None = None
        self._raw = bytearray()
        """what was read since the last event: text, if it turns out to begin nothing"""
        self._behind_call = self._behind_turn = False
        """whether only markup was read since the last call's end, and whether the turn was whole then"""
        self.warnings: list[str] = []

    def feed(self, data: bytes) -> Events:
        """Read `data`; valid UTF-8 as a whole, cut anywhere."""
        found: list[ParseEvent] = []
        pending = [(data, 0)]
        while pending:
            data, at = pending.pop()
            while at < len(data):
                if self._function is not None:
                    at = self._inside(data, at, found)
                    if at == len(data):
                        break
                state = self._automaton.state(self._at)
                if state.loop is not None and (match := state.loop.pattern.match(data, at)) is not None:
                    at = match.end()
                    self._told(state.loop.event(match.group()), found)
                    continue
                edge = self._automaton.edge(state, data[at])
                if edge is None:
                    again = self._refused(data[at : at + 1], found)
                    pending += ((data, at + 1), (again, 0))
                    break
                self._raw.append(data[at])
                at += 1
                if edge.events or edge.branches or self._behind_call:
                    self._take(edge.target, edge.events, edge.branches, found)
                else:
                    self._at = edge.target
        return coalesce(found)

    def _inside(self, data: bytes, at: int, found: list[ParseEvent]) -> int:
        """Read on inside a call from `at`, as far as bytes only continue a value; where that ends."""
        state = self._automaton.state(self._at)
        json, text, size = bytearray(), bytearray(), len(data)
        told = at  # up to where all was told
        is_open = state.is_open
        while at < size:
            loop = state.loop
            if loop is not None and (match := loop.pattern.match(data, at)) is not None:
                at = match.end()
                if state.loop_is_text:
                    if json:
                        self._told(Json(bytes(json)), found)
                        json.clear()
                    text += match.group()
                else:
                    if text:
                        self._told(Text(bytes(text)), found)
                        text.clear()
                    json += match.group()
                told = at
                if at == size:
                    break
            step = state.steps.get(data[at], _UNKNOWN)
            if step is _UNKNOWN:
                step = self._automaton.step(state, data[at])
            if step is None:
                break
            state = step.state
            at += 1
            if step.json:
                if text and not is_open:
                    self._told(Text(bytes(text)), found)
                    text.clear()
                json += step.json
            if step.text:
                if json and not is_open:
                    self._told(Json(bytes(json)), found)
                    json.clear()
                text += step.text
            if step.tells and not is_open:
                told = at
        self._at = state.configuration
        # The value's type is open at both ends or at none: what settles it does more than continue it.
        for reading, event in ((Reading.JSON, Json(bytes(json))), (Reading.TEXT, Text(bytes(text)))):
            if event.data and is_open:
                self._open[reading].append(event)
            elif event.data:
                self._told(event, found)
        self._raw += data[told:at]
        return at

    def token(self, token: int) -> Events:
        """Read a marker that the vocabulary holds as a token of its own."""
        found: list[ParseEvent] = []
        edge = self._automaton.token_automaton.edge(self._at, token)
        if edge is None and (self._behind_turn or (self._function is not None and self._may_end())):
            self._end(found)
            self._begin(self._again)
            edge = self._automaton.token_automaton.edge(self._at, token)
        if edge is None:
            names = {id: text for text, id in self._automaton.token_automaton.vocabulary.special.items()}
            return coalesce([*found, *self.feed(names.get(token, "").encode())])
        self._take(edge.target, edge.events, edge.branches, found)
        return coalesce(found)

    def _take(
        self, target: Configuration, events: Events, branches: tuple[Branch, ...], found: list[ParseEvent]
    ) -> None:
        self._at = target
        if branches:
            events = (*events, *self._branched(branches))
        for event in events:
            self._told(event, found)
        if events and _is_answer(target):
            self._raw = bytearray(target.threads[0].bound.automaton.held(target.threads[0].state))
        if self._behind_call and self._may_end():
            # What came before was markup, whatever follows.
            self._behind_turn = True
            self._raw.clear()

    def _kept(self, branches: tuple[Branch, ...]) -> bool:
        """Let the two readings of a value go on side by side, if that is what the step is."""
        if not len(branches) == 2 == len(self._open):
            return False
        one, other = branches
        if not one.before == one.after != other.before == other.after:
            return False
        self._open[one.after] += one.events
        self._open[other.after] += other.events
        return True

    def _branched(self, branches: tuple[Branch, ...]) -> Sequence[ParseEvent]:
        """Go on with the readings of a value; what the one that is left has held.

        It does what `choose` does, in place: long values are read byte by byte.
        """
        if self._kept(branches):
            return ()
        following: dict[Reading, list[ParseEvent]] = {}
        for before, after, events in branches:
            if after in following:
                continue
            shared = sum(branch.before == before for branch in branches) > 1
            held = self._open.get(before, [])
            following[after] = held = [*held] if shared else held
            held += events
        if len(following) > 1:
            self._open = following
            return ()
        (left,) = following.values()
        self._open = {}
        return left

    def _told(self, event: ParseEvent, found: list[ParseEvent]) -> None:
        match event:
            case Name(data):
                self._name += data
                return
            case FunctionOpen(name):
                event = FunctionOpen(name or self._name.decode(errors="replace"))
                self._function = event.name
                self._behind_call = self._behind_turn = False
            case ParameterOpen(name):
                event = ParameterOpen(name or self._name.decode(errors="replace"))
                self._parameter = event.name
            case ParameterClose():
                self._parameter = None
            case CallClose():
                if self._parameter is not None:
                    self._parameter = None
                    found.append(ParameterClose())
                self._function = None
                self._behind_call = True
            case Content() | Reasoning():
                self._behind_call = self._behind_turn = False
        self._name = b""
        if self._substitution is not None:
            event = self._substitution.take(event, found)
        if isinstance(event, Content | Reasoning) and self._raw.startswith(event.data):
            # The marker that ended the text may still turn out to be text.
            del self._raw[: len(event.data)]
        else:
            self._raw.clear()
        found.append(event)

    def _refused(self, byte: bytes, found: list[ParseEvent]) -> bytes:
        """Begin anew at a byte that the grammar refuses; what of the text is to be read again."""
        whole = self._end(found)
        at_start = self._at is self._on.token_automaton.start
        text = bytes(self._raw) + byte
        if self._function is not None:
            self.warnings.append(
                f"the call of {self._function!r} was broken off: it is not as the format writes it"
            )
            if self._open:
                self._decide(found)
                text = byte
            self._close(found)
        elif whole:
            text = byte
        elif self._behind_turn:
            whole = True  # up to where the text of `_raw` begins
        elif at_start or not text[:-1].strip():
            # Not even text can begin so.
            found.append(Content(text))
            text = b""
        else:
            # What began nothing is text from its first character on; the rest may begin something.
            first = 1
            while first < len(text) and text[first] & 0xC0 == 0x80:
                first += 1
            found.append(Content(text[:first]))
            text = text[first:]
        self._begin(self._again if whole else self._on)
        return text

    def _begin(self, automaton: ByteAutomaton) -> None:
        self._automaton, self._at = automaton, automaton.token_automaton.start
        self._open, self._name = {}, b""
        self._raw.clear()
        self._behind_call = self._behind_turn = False

    def _close(self, found: list[ParseEvent]) -> None:
        if self._parameter is not None:
            found.append(ParameterClose())
        found.append(CallClose())
        self._function = self._parameter = None

    def _held(self) -> ParseEvent | None:
        """Visible text that was held back because it could have begun a marker."""
        for thread in self._at.threads:
            held = thread.bound.automaton.held(thread.state)
            if held and thread.bound.terminal.role is Role.CONTENT:
                return Content(held)
            if held and thread.bound.terminal.role is Role.REASONING:
                return Reasoning(held)
        return None

    def finish(self, *, cut: bool = False) -> Events:
        """The end of the text. `cut`: the generation was broken off, and nothing is invented to close a
        call.
        """
        found: list[ParseEvent] = []
        if self._end(found):
            return coalesce(found)
        self._decide(found)
        held = self._held()
        if held is not None:
            found.append(held)
        if self._function is not None:
            self.warnings.append(f"the call of {self._function!r} is not complete")
            if not cut:
                self._close(found)
        elif held is None and self._raw.strip() and (self._behind_turn or not self._behind_call):
            # Not the beginning of what would have ended the call: that is markup.
            found.append(Content(bytes(self._raw)))
        return coalesce(found)

    def _end(self, found: list[ParseEvent]) -> bool:
        """End the turn if it is whole; tells what its end reveals."""
        for token in self._automaton.token_automaton.vocabulary.eos_ids:
            edge = self._automaton.token_automaton.edge(self._at, token)
            if edge is not None:
                self._decide(found)
                self._take(edge.target, edge.events, edge.branches, found)
                return True
        return False

    def _may_end(self) -> bool:
        """Whether the turn is whole."""
        ends = self._automaton.token_automaton.vocabulary.eos_ids
        return any(self._automaton.token_automaton.edge(self._at, token) is not None for token in ends)

    def _decide(self, found: list[ParseEvent]) -> None:
        """Of several readings of a value keep the typed one."""
        if self._open:
            typed = min(self._open)
            for event in self._branched((Branch(typed, typed, ()),)):
                self._told(event, found)


def _is_answer(at: Configuration) -> bool:
    """Whether nothing but visible text or reasoning is being read."""
    roles = [thread.bound.terminal.role for thread in at.threads]
    return len(roles) == 1 and roles[0] in (Role.CONTENT, Role.REASONING)
