"""Shapes of the schemas that most documents consist of: plain objects, arrays and unions.

They say nothing but what is inside, so they need no draft; the shapes are the same as with one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from larksong.engine.automata.languages import Language
from larksong.grammars.schema.document import ANY, TYPES
from larksong.grammars.schema.limits import Limits
from larksong.grammars.schema.shapes import ANYTHING, ArrayShape, FreeMembers, ItemClass, ObjectShape, Shape

if TYPE_CHECKING:
    from larksong.grammars.schema.compiler import Compiler

Keywords = Mapping[str, Any]
_OBJECT = {"type", "properties", "required", "additionalProperties"}
_ARRAY = {"type", "items"}


def plain_shapes(
    keywords: Keywords, limits: Limits
) -> Callable[[Compiler, Keywords], tuple[Shape, ...]] | None:
    """What gives the shapes of a schema with these keywords; None if it is not plain."""
    if keywords.keys() == {"anyOf"}:
        return _union if len(keywords["anyOf"]) <= limits.alternatives else None
    types = keywords.get("type")
    if types == TYPES["object"]:
        return _object if keywords.keys() <= _OBJECT else None
    if types == TYPES["array"]:
        return _array if keywords.keys() <= _ARRAY else None
    return None


def _object(compiler: Compiler, keywords: Keywords) -> tuple[Shape, ...]:
    additional = keywords.get("additionalProperties", ANY)
    required = keywords.get("required", ())
    names: dict[str, int] = dict(keywords.get("properties", ()))
    for name in required:
        names.setdefault(name, additional)
    properties = [(name, compiler.node((schema,))) for name, schema in names.items()]
    kept = tuple(each for each in properties if not compiler.is_empty(each[1]))
    if len(kept) < len(properties) and not {name for name, _ in kept}.issuperset(required):
        return ()
    others = compiler.node((additional,))
    free = () if compiler.is_empty(others) else (FreeMembers(Language(excluded=tuple(names)), others),)
    return (ObjectShape(kept, frozenset(required), free),)


def _array(compiler: Compiler, keywords: Keywords) -> tuple[Shape, ...]:
    node = compiler.node((keywords.get("items", ANY),))
    if compiler.is_empty(node):
        return (ArrayShape(items=(), maximum=0),)
    return (ArrayShape(items=(ItemClass(0, node),)),)


def _union(compiler: Compiler, keywords: Keywords) -> tuple[Shape, ...]:
    if ANY in keywords["anyOf"]:
        return compiler.shapes(ANYTHING)
    return compiler.union(compiler.node((schema,)) for schema in keywords["anyOf"])
