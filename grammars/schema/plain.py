"""Shapes of the schemas that most documents consist of: plain objects, arrays and unions.

They say nothing but what is inside, so they need no draft; the shapes are the same as with one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from larksong.engine.automata.languages import Language
from larksong.grammars.schema.document import ANY, TYPES
from larksong.grammars.schema.limits import Limits
from larksong.grammars.schema.node_graph import NodeGraph
from larksong.grammars.schema.shapes import ANYTHING, ArrayShape, FreeMembers, ItemClass, ObjectShape, Shape

Keywords = Mapping[str, Any]
_OBJECT = {"type", "properties", "required", "additionalProperties"}
_ARRAY = {"type", "items"}


def plain_shapes(
    keywords: Keywords, limits: Limits
) -> Callable[[NodeGraph, Keywords], tuple[Shape, ...]] | None:
    """What gives the shapes of a schema with these keywords; None if it is not plain."""
    if keywords.keys() == {"anyOf"}:
        return _union if len(keywords["anyOf"]) <= limits.alternatives else None
    types = keywords.get("type")
    if types == TYPES["object"]:
        return _object if keywords.keys() <= _OBJECT else None
    if types == TYPES["array"]:
        return _array if keywords.keys() <= _ARRAY else None
    return None


def _object(graph: NodeGraph, keywords: Keywords) -> tuple[Shape, ...]:
    additional = keywords.get("additionalProperties", ANY)
    required = keywords.get("required", ())
    names: dict[str, int] = dict(keywords.get("properties", ()))
    for name in required:
        names.setdefault(name, additional)
    properties = [(name, graph.node((schema,))) for name, schema in names.items()]
    kept = tuple(each for each in properties if not graph.is_empty(each[1]))
    if len(kept) < len(properties) and not {name for name, _ in kept}.issuperset(required):
        return ()
    others = graph.node((additional,))
    free = () if graph.is_empty(others) else (FreeMembers(Language(excluded=tuple(names)), others),)
    return (ObjectShape(kept, frozenset(required), free),)


def _array(graph: NodeGraph, keywords: Keywords) -> tuple[Shape, ...]:
    node = graph.node((keywords.get("items", ANY),))
    if graph.is_empty(node):
        return (ArrayShape(items=(), maximum=0),)
    return (ArrayShape(items=(ItemClass(0, node),)),)


def _union(graph: NodeGraph, keywords: Keywords) -> tuple[Shape, ...]:
    if ANY in keywords["anyOf"]:
        return graph.shapes(ANYTHING)
    return graph.union(graph.node((schema,)) for schema in keywords["anyOf"])
