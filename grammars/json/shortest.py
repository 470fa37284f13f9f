"""The shortest text of a schema's values: what it takes to finish a call whose grammar was never built.

Values may contain themselves, so the texts of all nodes are found together: each round uses what the round
before found, and texts only become shorter (Knuth, "A generalization of Dijkstra's algorithm", 1977, with
rounds instead of a queue).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain, repeat

from larksong.engine.automata.dfa import DEAD, DFA
from larksong.engine.automata.languages import Language
from larksong.engine.grammar.terminals import Number
from larksong.engine.lexing.path import LONGEST
from larksong.grammars.schema import Schema
from larksong.grammars.schema.shapes import (
    ANYTHING,
    ArrayShape,
    EnumShape,
    Node,
    NumberShape,
    ObjectShape,
    Shape,
    StringShape,
)
from larksong.grammars.schema.values import json_text

OVERLONG = " " * (LONGEST + 1)
"""Stands for every text that is longer than is worth knowing."""
_CACHED = 1024
_SEARCHED = 20_000


def shorter(*texts: str) -> str:
    """The shortest text in bytes, of equal ones the first by its bytes."""
    return min(texts, key=_size)


def joined(texts: Iterable[str], separator: str = "") -> str:
    """Texts one behind the other, `OVERLONG` where they are."""
    found, size = [], 0
    for text in texts:
        size += len(text) + len(separator)
        if size > LONGEST:
            return OVERLONG
        found.append(text)
    return separator.join(found)


def _size(text: str) -> tuple[int, bytes]:
    data = text.encode()
    return len(data), data


class Notation:
    """How values are written: as JSON, unless a subclass says otherwise."""

    def string(self, language: Language) -> str:
        """The shortest string of a language."""
        if language.wanted or language.unwanted or language.excluded:
            return f'"{_shortest_text(language.json_dfa())}"'
        return f'"{shortest_string(language)}"'

    def scalar(self, text: str) -> str:
        """A scalar that is `text` in JSON."""
        return text

    def key(self, name: str) -> str:
        """A member's name, up to its value."""
        return json_text(name) + ":"

    def other_key(self, names: Language) -> str:
        """The shortest of some names."""
        return self.string(names) + ":"


JSON = Notation()


def shortest_json(schema: Schema, shapes: tuple[Shape, ...]) -> str:
    """The shortest JSON text of a union of shapes of `schema`."""
    return shortest_text(schema, shapes, JSON)


def shortest_text(schema: Schema, shapes: tuple[Shape, ...], notation: Notation) -> str:
    """The shortest text of a union of shapes of `schema`."""
    known = _of_nodes(schema, notation)
    found = [text for text in (_of_shape(shape, known, notation) for shape in shapes) if text is not None]
    return shorter(*found)


@lru_cache(maxsize=_CACHED)
def shortest_string(language: Language) -> str:
    """The shortest string of a language."""
    if not language.wanted and not language.unwanted and not language.excluded:
        return " " * language.minimum if language.minimum <= LONGEST else OVERLONG
    return _shortest_text(language.bytes_dfa())


@lru_cache(maxsize=_CACHED)
def _shortest_number(number: Number) -> str:
    return _shortest_text(number.dfa())


@lru_cache(maxsize=_CACHED)
def _of_nodes(schema: Schema, notation: Notation) -> Mapping[Node, str]:
    found: dict[Node, str] = {ANYTHING: "0"}
    changed = True
    while changed:
        changed = False
        for node in reversed(list(schema.nodes)):
            if node == ANYTHING:
                continue
            shapes = schema.nodes[node]
            texts = [t for t in (_of_shape(shape, found, notation) for shape in shapes) if t is not None]
            if texts:
                text = shorter(*texts)
                if node not in found or _size(text) < _size(found[node]):
                    found[node], changed = text, True
    return found


def _of_shape(shape: Shape, known: Mapping[Node, str], notation: Notation) -> str | None:
    """The shortest text of a shape from those of its nodes; None while one of them is not known."""
    match shape:
        case EnumShape(texts):
            return shorter(*map(notation.scalar, texts))
        case StringShape(language):
            return notation.string(language)
        case NumberShape(number):
            return "0" if number in (Number(), Number(integer=True)) else _shortest_number(number)
        case ArrayShape():
            return _of_array(shape, known)
        case ObjectShape():
            return _of_object(shape, known, notation)


def _of_array(shape: ArrayShape, known: Mapping[Node, str]) -> str | None:
    count = max([shape.minimum, *(low for low, _ in shape.kinds)])
    # Where kinds are counted the first class counts for most of them.
    places = [*shape.prefix[:count], *([shape.items] if count > len(shape.prefix) else [])]
    texts: list[str] = []
    for place in places:
        text = known.get(place[0].node) if place else None
        if text is None:
            return None
        texts.append(text)
    more = repeat(texts[-1], count - len(texts)) if texts else ()
    return f"[{joined(chain(texts, more), ',')}]"


def _of_object(shape: ObjectShape, known: Mapping[Node, str], notation: Notation) -> str | None:
    nodes = shape.nodes
    names = [name for name in nodes if name in shape.required]
    texts = [known.get(nodes[name]) for name in names]
    if None in texts:
        return None
    members = [f"{notation.key(name)}{text}" for name, text in zip(names, texts, strict=True)]
    missing = shape.minimum - len(members)
    if missing > 0:
        others = [notation.key(n) + known[v] for n, v in nodes.items() if n not in names and v in known]
        for free in shape.free:
            if free.node in known:
                others.append(notation.other_key(free.names) + known[free.node])
        others.sort(key=_size)
        if len(others) < missing:
            return None
        members += others[:missing]
    return f"{{{joined(members, ',')}}}"


def _shortest_text(dfa: DFA) -> str:
    """The shortest text that an automaton accepts, by breadth-first search."""
    reached: dict[int, bytes] = {dfa.start: b""}
    pending = [dfa.start]
    for state in pending:
        if dfa.accepts(state):
            return reached[state].decode()
        row = dfa.row(state)
        for byte in range(256):
            following = row[byte]
            if following != DEAD and following not in reached:
                reached[following] = reached[state] + bytes([byte])
                pending.append(following)
        if len(pending) > _SEARCHED:
            break
    return ""
