"""Arrays: the places of the first items, how many there are, kinds that must be contained."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from larksong.grammars.schema.document import ANY, NEVER, Origin
from larksong.grammars.schema.drafts import Contains, Draft, Scopes
from larksong.grammars.schema.node_graph import NodeGraph
from larksong.grammars.schema.shapes import ArrayShape, EnumShape, ItemClass
from larksong.grammars.schema.unenforceable import CannotEnforce

_MAX_COUNTED = 200
_MAX_KINDS = 3


def array_shape(graph: NodeGraph, draft: Draft) -> Iterator[ArrayShape]:
    """The shape of a draft's arrays; nothing if there can be none."""
    size = draft.arrays.size
    if size.impossible:
        return
    rest = _unevaluated(graph, draft)
    places = max((len(each.prefix) for each in draft.arrays.tuples), default=0)
    prefix = [_item(draft, i, rest) for i in range(places)]
    items = _item(draft, None, rest)
    maximum = size.maximum
    for i, schemas in enumerate([*prefix, items]):
        if graph.is_empty(graph.node(schemas)):
            maximum = i if maximum is None else min(maximum, i)
            prefix = prefix[:i]
            break
    if maximum is not None and maximum < size.minimum:
        return
    contains = draft.arrays.contains
    if contains:
        yield from _with_kinds(graph, draft, prefix, items, maximum)
        return
    nodes = [graph.node(schemas) for schemas in prefix]
    node = graph.node(items)
    distinct = draft.arrays.distinct and (maximum is None or maximum > 1)
    if distinct:
        shapes = graph.shapes(node) if node != NEVER else ()
        if nodes or not all(isinstance(shape, EnumShape) for shape in shapes):
            raise CannotEnforce(
                draft.blame["uniqueItems"], "the items are not scalars out of a finite set, all places alike"
            )
        values = sum(len(shape.texts) for shape in shapes if isinstance(shape, EnumShape))
        if size.minimum > values:
            return
    yield ArrayShape(
        prefix=tuple((ItemClass(0, each),) for each in nodes),
        items=() if maximum is not None and maximum <= len(nodes) else (ItemClass(0, node),),
        minimum=size.minimum,
        maximum=maximum,
        distinct=distinct,
    )


def _item(draft: Draft, place: int | None, rest: list[tuple[Scopes, int, int]]) -> list[int]:
    """The schemas of the item at a place, or of all others."""
    found = []
    for each in draft.arrays.tuples:
        if place is not None and place < len(each.prefix):
            found.append(each.prefix[place])
        elif each.items is not None:
            found.append(each.items)
    for _, after, schema in rest:
        if place is None or place >= after:
            found.append(schema)
    return found


def _unevaluated(graph: NodeGraph, draft: Draft) -> list[tuple[Scopes, int, int]]:
    """For each `unevaluatedItems`: from which place on it holds, and its schema."""
    found: list[tuple[Scopes, int, int]] = []
    for number, keyword, schema in draft.unevaluated:
        if keyword != "unevaluatedItems":
            continue
        if draft.unevaluated_inside(number, keyword):
            continue
        inside = [each for each in draft.arrays.tuples if number in each.scopes]
        if any(each.items is not None for each in inside):
            continue
        if schema != ANY and any(number in each.scopes for each in draft.arrays.contains):
            raise CannotEnforce(Origin(number, keyword), "contains beside it evaluates items one by one")
        found.append((frozenset(), max((len(each.prefix) for each in inside), default=0), schema))
    return found


def _with_kinds(
    graph: NodeGraph, draft: Draft, prefix: list[list[int]], items: list[int], maximum: int | None
) -> Iterator[ArrayShape]:
    contains = tuple(dict.fromkeys(draft.arrays.contains))
    blame = draft.blame["contains"]
    minimum = draft.arrays.size.minimum
    if draft.arrays.distinct and (maximum is None or maximum > 1):
        raise CannotEnforce(draft.blame["uniqueItems"], "contains beside it")
    bounds = [each.minimum for each in contains] + [each.maximum or 0 for each in contains]
    if len(contains) > _MAX_KINDS or max([minimum, maximum or 0, len(prefix), *bounds]) > _MAX_COUNTED:
        raise CannotEnforce(blame, f"more than {_MAX_KINDS} kinds or {_MAX_COUNTED} items to count")

    def classes(schemas: list[int]) -> tuple[ItemClass, ...]:
        found = []
        for size in range(len(contains), -1, -1):
            for chosen in combinations(range(len(contains)), size):
                node = graph.node([*schemas, *_of_kinds(graph, draft, contains, chosen)])
                if not graph.is_empty(node):
                    found.append(ItemClass(sum(1 << i for i in chosen), node))
        return tuple(found)

    at_prefix = tuple(classes(schemas) for schemas in prefix)
    others = () if maximum is not None and maximum <= len(prefix) else classes(items)
    yield ArrayShape(
        prefix=at_prefix,
        items=others,
        minimum=minimum,
        maximum=maximum,
        kinds=tuple((each.minimum, each.maximum) for each in contains),
    )


def _of_kinds(
    graph: NodeGraph, draft: Draft, contains: tuple[Contains, ...], chosen: tuple[int, ...]
) -> Iterator[int]:
    """Items that are of the chosen kinds, and of no other kind that has a maximum."""
    for i, each in enumerate(contains):
        if i in chosen:
            yield each.schema
        elif each.maximum is not None:
            yield graph.negated(each.schema, graph.rooted(draft.blame["contains"]))
