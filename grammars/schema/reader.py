"""A JSON Schema, read: its nodes and shapes, and what had to be widened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from larksong.grammars.errors import InvalidSchema
from larksong.grammars.schema.compiler import Compiler
from larksong.grammars.schema.document import Document, kind
from larksong.grammars.schema.options import DEFAULT_OPTIONS, Options
from larksong.grammars.schema.productive import without_dead_ends
from larksong.grammars.schema.shapes import ArrayShape, Node, ObjectShape, Shape


@dataclass(frozen=True)
class Widened:
    """A keyword that is not enforced; the complete value is to be checked."""

    pointer: str
    keyword: str
    reason: str


@dataclass(frozen=True, eq=False)
class Schema:
    """What a schema means: the shapes of its root, and of the nodes that they refer to."""

    shapes: tuple[Shape, ...]
    nodes: Mapping[Node, tuple[Shape, ...]]
    widened: tuple[Widened, ...] = ()

    def shapes_of(self, node: Node) -> tuple[Shape, ...]:
        """What a node means; nothing where no value can be there."""
        return self.nodes.get(node, ())


_ELSEWHERE = {
    *("additionalProperties", "unevaluatedProperties", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"),
    *("not", "if", "dependentSchemas", "dependencies"),
}
"""Keywords by which members may be declared elsewhere than in the schema's own `properties`."""


def read_schema(schema: Any, options: Options = DEFAULT_OPTIONS) -> Schema:
    """Reads a schema as the standard has it. Raises `InvalidSchema` or `Unenforceable`."""
    return _read(schema, options, None, _unchanged)


def read_parameters(schema: Any, tool: str, options: Options = DEFAULT_OPTIONS) -> Schema:
    """A tool's parameters: an object, closed to the declared names unless the schema says otherwise."""
    if schema is None:
        schema = {}
    if not isinstance(schema, Mapping):
        raise InvalidSchema(
            f"tool {tool!r}: its parameters must be a JSON Schema object, not {kind(schema)}",
            tool=tool,
            pointer="",
        )
    if _ELSEWHERE.isdisjoint(schema):
        schema = {**schema, "additionalProperties": False}  # so counts of members can be kept, too
    return _read(schema, options, tool, _closed)


def _unchanged(shapes: tuple[Shape, ...], compiler: Compiler) -> tuple[Shape, ...]:
    return shapes


def _closed(shapes: tuple[Shape, ...], compiler: Compiler) -> tuple[Shape, ...]:
    """The objects among `shapes`, without members that nobody declared."""
    document = compiler.document
    open_ = _says_what_else_may_come(document, document.root, set())
    found: list[Shape] = [
        shape if open_ else replace(shape, free=tuple(each for each in shape.free if each.names.wanted))
        for shape in shapes
        if isinstance(shape, ObjectShape)
    ]
    if not shapes:
        document.invalid("", None, "nothing can satisfy it")
    if not found and "type" in document.records[document.root].keywords:
        document.invalid("/type", "type", "a tool's parameters must have the type object")
    if not found:
        document.invalid("", None, "no object can satisfy it")
    return tuple(found)


def _says_what_else_may_come(document: Document, number: int, seen: set[int]) -> bool:
    """Whether a schema, or one that holds in the same place, has `additionalProperties` or the like."""
    if number in seen:
        return False
    seen.add(number)
    keywords = document.records[number].keywords
    if "additionalProperties" in keywords or "unevaluatedProperties" in keywords:
        return True
    inside = [sub for keyword in ("allOf", "anyOf", "oneOf") for sub in keywords.get(keyword, ())]
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in keywords:
            target = document.target(number, keyword, keywords[keyword])
            inside += [] if target is None else [target]
    return any(_says_what_else_may_come(document, sub, seen) for sub in inside)


def _read(schema: Any, options: Options, tool: str | None, root: Any) -> Schema:
    try:
        document = Document(schema, options.limits, tool)
        compiler = Compiler(document, options)
        start = compiler.node((document.root,))
        shapes = root(compiler.shapes(start), compiler)
        nodes = {start: shapes}
        pending = list(_inside(shapes))
        while pending:
            node = pending.pop()
            if node not in nodes:
                nodes[node] = found = compiler.shapes(node)
                pending += _inside(found)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply", tool=tool, pointer="") from None
    widened = tuple(Widened(*key, reason) for key, reason in compiler.widened.items())
    nodes = without_dead_ends(nodes)
    if not nodes[start]:
        document.invalid("", None, "nothing can satisfy it")
    return Schema(nodes[start], nodes, widened)


def _inside(shapes: tuple[Shape, ...]) -> list[Node]:
    found: list[Node] = []
    for shape in shapes:
        if isinstance(shape, ObjectShape):
            found += [node for _, node in shape.properties]
            found += [free.node for free in shape.free]
        elif isinstance(shape, ArrayShape):
            found += [item.node for place in (*shape.prefix, shape.items) for item in place]
    return found
