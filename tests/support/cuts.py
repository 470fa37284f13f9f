"""The same turn cut into tokens in every way: vocabularies made to hold just these pieces."""

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from larksong.engine.engine import Engine
from larksong.engine.events import Events
from larksong.grammars import CallPolicy, GrammarsError, Tool, WireFormat, wire_format
from larksong.grammars.formats.gemma4 import OTHER_NAME
from tests.support.schemas import instances, meaning, parameters
from tests.support.vocabularies import split_markers, vocabulary

Steps = list[Events]
LETTERS = vocabulary()
CONTENTS = ("", "Hi <tool", "a\n<tool_call<", "é😀 “x”\n\n", "<tool_call ", "</tool_cal>")


@st.composite
def turns(draw: st.DrawFn, name: str) -> tuple[list[Tool], str]:
    """Tools, and the text of a turn with some of their calls."""
    tools = [Tool(("f", "get_weather")[i], "", draw(parameters())) for i in range(draw(st.integers(1, 2)))]
    called = draw(st.lists(st.sampled_from(tools), max_size=2))
    wire = wire_format(name)
    try:
        wire.grammar(tools, CallPolicy(), LETTERS)
    except GrammarsError:
        assume(False)  # the format cannot carry such names
    calls = [(tool.name, draw(instances(meaning(tool.parameters, closed=True)))) for tool in called]
    if name == "gemma4":  # names stand there without quotes
        assume(all(re.fullmatch(OTHER_NAME, key) for _, arguments in calls for key in _keys(arguments)))
    text = wire.render_calls(calls) if calls else ""
    return tools, with_content(wire, draw(st.sampled_from(CONTENTS)), text)


def _keys(value: Any) -> Iterator[str]:
    """The names of all members in a value."""
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(inner)


def with_content(wire: WireFormat, content: str, calls: str) -> str:
    """A turn of visible text and of calls, either of which may be empty."""
    if wire.name != "harmony":
        return content + calls
    if not calls:
        return f"<|channel|>final<|message|>{content}"
    said = f"<|channel|>commentary<|message|>{content}<|end|><|start|>assistant" if content else ""
    return said + calls


def pieces(text: bytes, rng: Random, mean: float) -> list[bytes]:
    """`text` cut at random places, into pieces of `mean` bytes on average."""
    places = [at for at in range(1, len(text)) if rng.random() < 1 / mean]
    return [text[i:j] for i, j in zip([0, *places], [*places, len(text)], strict=True) if i < j]


def run(
    name: str, tools: Sequence[Tool], cuts: Sequence[Sequence[bytes]], markers: tuple[str, ...] = ()
) -> list[Steps]:
    """For each cut the events of each step when its pieces are the tokens, and of the end."""
    known = {marker.encode() for marker in markers}
    of = vocabulary(tuple(dict.fromkeys(piece for cut_up in cuts for piece in cut_up)), markers)
    ids = {token: number for number, token in enumerate(of.tokens) if token}
    start = Engine(of).matcher(wire_format(name).grammar(tools, CallPolicy(), of))
    (end,) = of.eos_ids
    found = []
    for cut_up in cuts:
        matcher = start.fork()
        tokens = [of.special[piece.decode()] if piece in known else ids[piece] for piece in cut_up]
        steps = [matcher.advance(token) for token in tokens]
        assert matcher.fault is None
        assert matcher.complete
        found.append([*steps, matcher.advance(end), matcher.finish()])
    return found


def every_cut(text: bytes, rng: Random, markers: tuple[str, ...] = ()) -> list[list[bytes]]:
    """One byte a piece, some random cuts, and (between the markers) whole."""
    parts = list(split_markers(text, [marker.encode() for marker in markers]))
    known = {marker.encode() for marker in markers}
    found = []
    for mean in (1, 2, 10, 1e9):
        found.append([p for part in parts for p in ([part] if part in known else pieces(part, rng, mean))])
    return found
