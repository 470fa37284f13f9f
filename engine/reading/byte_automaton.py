"""The automaton of an open grammar, read byte by byte: what a byte does is known once it was read.

Most bytes of a call reveal nothing yet, or a piece of JSON, or a piece for each of the two readings of a
value whose type is still open. Whatever the turn, they lead from one state to another and tell the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from larksong.engine.events import Content, Events, Json, ParseEvent, Reasoning, Text
from larksong.engine.grammar.terminals import Role
from larksong.engine.parsing.stack import Configuration, Edge, Reading
from larksong.engine.parsing.token_automaton import TokenAutomaton
from larksong.engine.reading.self_loops import SelfLoop, self_loop

_LOOPS: Mapping[Role, Callable[[bytes], ParseEvent]] = {
    Role.TEXT: Text, Role.JSON: Json, Role.CONTENT: Content, Role.REASONING: Reasoning,
}  # fmt: skip
# Measured with tracemalloc, rounded up: a state with its self-loop; what is known of a byte in a state.
_STATE_BYTES = 2000
_BYTE_BYTES = 500


class ByteStep:
    """A byte that only continues a value: the state behind it, and what it tells as JSON and as raw text.

    Where the value's type is open these are its two readings; else one of them is empty.
    """

    __slots__ = ("json", "state", "tells", "text")

    def __init__(self, state: ByteState, json: bytes, text: bytes) -> None:
        self.state, self.json, self.text = state, json, text
        self.tells = bool(json or text)


class ByteState:
    """A configuration, read byte by byte. `steps`: None for a byte that does more than continue a value."""

    __slots__ = ("configuration", "edges", "is_open", "loop", "loop_is_text", "steps")

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.is_open = configuration.ambiguous
        """whether the value could still be a raw string or JSON"""
        self.loop = _loop(configuration)
        self.loop_is_text = self.loop is not None and self.loop.event is Text
        self.edges: dict[int, Edge | None] = {}
        self.steps: dict[int, ByteStep | None] = {}


class ByteAutomaton:
    """What the token automaton of an open grammar does with single bytes, whether or not they are tokens.

    Safe under threads like the token automaton.
    """

    def __init__(self, token_automaton: TokenAutomaton) -> None:
        self.token_automaton = token_automaton
        self._states: dict[Configuration, ByteState] = {}
        self._byte_count = 0

    def size(self) -> int:
        """Roughly how many bytes are kept, beside the token automaton."""
        return len(self._states) * _STATE_BYTES + self._byte_count * _BYTE_BYTES

    def state(self, configuration: Configuration) -> ByteState:
        """The state of a configuration."""
        found = self._states.get(configuration)
        if found is None:
            found = self._states.setdefault(configuration, ByteState(configuration))
        return found

    def edge(self, state: ByteState, byte: int) -> Edge | None:
        """Where a byte leads, whether or not it is a token of the vocabulary."""
        try:
            return state.edges[byte]
        except KeyError:
            self._byte_count += 1
            edge = self.token_automaton.transitions.step(state.configuration, bytes((byte,)))
            return state.edges.setdefault(byte, edge)

    def step(self, state: ByteState, byte: int) -> ByteStep | None:
        """The step of a byte that only continues a value; it is found in `ByteState.steps` from then on."""
        edge = self.edge(state, byte)
        told = _continues(edge) if edge is not None else None
        if edge is None or told is None or edge.target.ambiguous != state.is_open:
            return state.steps.setdefault(byte, None)
        return state.steps.setdefault(byte, ByteStep(self.state(edge.target), *told))


def _loop(at: Configuration) -> SelfLoop | None:
    """The bytes that change nothing in a configuration: most bytes of a long value."""
    if len(at.threads) != 1:
        return None
    (thread,) = at.threads
    event = _LOOPS.get(thread.bound.terminal.role)
    if event is None or not thread.bound.streams:
        return None
    return self_loop(thread.bound.automaton, thread.state, event)


def _continues(edge: Edge) -> tuple[bytes, bytes] | None:
    """What an edge tells as JSON and as a string, if it does no more than continue a value; else None."""
    if not edge.branches:
        match edge.events:
            case ():
                return b"", b""
            # A string that opens inside JSON tells no more than its quote.
            case (Json(data),) | (Json(data), Text(b"")):
                return data, b""
            case (Text(data),) if data:
                return b"", data
        return None
    if edge.events or len(edge.branches) != 2:
        return None
    found: dict[Reading, bytes | None] = {}
    for before, after, events in edge.branches:
        if before is after and after in (Reading.JSON, Reading.TEXT):
            found[after] = _only(events, Text if after is Reading.TEXT else Json)
    json, text = found.get(Reading.JSON), found.get(Reading.TEXT)
    return None if json is None or text is None else (json, text)


def _only(events: Events, kind: type[Json] | type[Text]) -> bytes | None:
    """The bytes of at most one event, which must be of this kind."""
    if not events:
        return b""
    event, *more = events
    return event.data if isinstance(event, kind) and not more else None
