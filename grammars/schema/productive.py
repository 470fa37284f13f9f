"""Which nodes have a value at all: a grammar with a rule that nothing completes would lead to dead ends.

A node that only requires itself, for instance, can never be finished. The least fixed point finds the nodes
that can; the others are taken out of what refers to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from larksong.engine.grammar.attributes import Contents
from larksong.grammars.schema.shapes import ArrayShape, ItemClass, Node, ObjectShape, Shape

Shapes = Mapping[Node, tuple[Shape, ...]]


def without_dead_ends(shapes: Shapes) -> dict[Node, tuple[Shape, ...]]:
    """The nodes with only such shapes, members and items as have a value."""
    live: set[Node] = set()
    # Nodes come after what refers to them, so that going backwards most are settled at once.
    pending = [node for node in reversed(list(shapes)) if shapes[node]]
    before = -1
    while len(pending) != before:
        before = len(pending)
        left = []
        for node in pending:
            if any(_has_value(shape, live) for shape in shapes[node]):
                live.add(node)
            else:
                left.append(node)
        pending = left
    # A node with one shape is live because of it.
    if len(live) == len(shapes) and all(
        _has_value(shape, live) for found in shapes.values() if len(found) > 1 for shape in found
    ):
        return dict(shapes)
    return {
        node: tuple(_cleaned(shape, live) for shape in found if _has_value(shape, live))
        for node, found in shapes.items()
    }


def _has_value(shape: Shape, live: set[Node]) -> bool:
    match shape:
        case ObjectShape():
            nodes = shape.nodes
            if not all(nodes[name] in live for name in shape.required):
                return False
            if not shape.minimum or any(free.node in live for free in shape.free):
                return True
            return len(_possible_names(shape, live)) >= shape.minimum
        case ArrayShape():
            cleaned = _cleaned_array(shape, live)
            if cleaned.maximum is not None and cleaned.maximum < shape.minimum:
                return False
            return not shape.kinds or contents(cleaned).fits(0, (0,) * len(shape.kinds))
    return True


def _possible_names(shape: ObjectShape, live: set[Node]) -> set[str]:
    """The declared names that may be there: their values exist, and so do the members that they need."""
    names = {name for name, node in shape.properties if node in live}
    dead = {name for name, others in shape.dependents if name in names and not others <= names}
    while dead:
        names -= dead
        dead = {name for name, others in shape.dependents if name in names and not others <= names}
    return names


def contents(shape: ArrayShape) -> Contents:
    """The counts of an array with kinds, as the engine keeps them."""
    places = (*shape.prefix, shape.items)
    classes = tuple(tuple(item.kinds for item in place) for place in places)
    return Contents(shape.minimum, shape.maximum, shape.kinds, classes)


def _cleaned(shape: Shape, live: set[Node]) -> Shape:
    match shape:
        case ObjectShape():
            names = _possible_names(shape, live)
            return replace(
                shape,
                properties=tuple((name, node) for name, node in shape.properties if name in names),
                free=tuple(free for free in shape.free if free.node in live),
                dependents=tuple((name, others) for name, others in shape.dependents if name in names),
            )
        case ArrayShape():
            return _cleaned_array(shape, live)
    return shape


def _cleaned_array(shape: ArrayShape, live: set[Node]) -> ArrayShape:
    prefix: list[tuple[ItemClass, ...]] = []
    for place in shape.prefix:
        kept = tuple(item for item in place if item.node in live)
        if not kept:
            return replace(shape, prefix=tuple(prefix), items=(), maximum=_least(shape.maximum, len(prefix)))
        prefix.append(kept)
    items = tuple(item for item in shape.items if item.node in live)
    maximum = shape.maximum if items else _least(shape.maximum, len(prefix))
    return replace(shape, prefix=tuple(prefix), items=items, maximum=maximum)


def _least(maximum: int | None, other: int) -> int:
    return other if maximum is None else min(maximum, other)
