"""Objects: which names have which values, which must be there, and what other names there may be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from larksong.engine.automata.languages import Language
from larksong.engine.errors import UnsupportedPattern
from larksong.grammars.schema.document import ANY
from larksong.grammars.schema.drafts import Draft, Properties
from larksong.grammars.schema.node_graph import NodeGraph
from larksong.grammars.schema.shapes import EnumShape, FreeMembers, Node, ObjectShape, StringShape
from larksong.grammars.schema.unenforceable import CannotEnforce

_MAX_CELLS = 64
AllowedNames = tuple[Language, ...] | None
"""languages one of which a name has to be in; None: any name"""


def object_shape(graph: NodeGraph, draft: Draft) -> Iterator[ObjectShape]:
    """The shape of a draft's objects; nothing if there can be none."""
    objects = draft.objects
    if objects.size.impossible:
        return
    members = (*objects.members, *_unevaluated(draft))
    allowed, listed = _allowed_names(graph, draft)
    names = dict.fromkeys(name for each in members for name in each.names)
    names.update(dict.fromkeys(objects.required))
    names.update(dict.fromkeys(other for _, others in objects.dependents for other in others))
    names.update(dict.fromkeys(name for name, _ in objects.dependents))
    names.update(dict.fromkeys(listed))
    properties: dict[str, Node] = {}
    for name in names:
        if allowed is not None and name not in listed and not any(each.matches(name) for each in allowed):
            continue
        try:
            node = graph.node(schema for each in members for schema in _of_name(each, name))
        except UnsupportedPattern as error:
            raise CannotEnforce(draft.blame["patternProperties"], str(error)) from error
        if not graph.is_empty(node):
            properties[name] = node
    required, dependents = _dependencies(properties, draft)
    if required is None:
        return
    free = tuple(_free(graph, draft, members, tuple(names), allowed))
    minimum, maximum = objects.size.minimum, objects.size.maximum
    if not free:
        if minimum > len(properties):
            return
        if maximum is not None and maximum >= len(properties):
            maximum = None
    if maximum is not None and len(required) > maximum:
        return
    minimum = 0 if minimum <= len(required) else minimum
    if free and minimum > len(required) + 1:
        raise CannotEnforce(
            draft.blame["minProperties"], "it counts members whose names are not declared, which may repeat"
        )
    yield ObjectShape(tuple(properties.items()), required, free, minimum, maximum, dependents)


def _of_name(members: Properties, name: str) -> Iterator[int]:
    """The schemas of the member `name`."""
    evaluated = False
    if name in members.names:
        evaluated = True
        yield members.names[name]
    for pattern, schema in members.patterns:
        if Language((pattern,)).matches(name):
            evaluated = True
            yield schema
    if not evaluated and members.additional is not None:
        yield members.additional


def _unevaluated(draft: Draft) -> Iterator[Properties]:
    """`unevaluatedProperties` as `additionalProperties` of all that was evaluated."""
    for number, keyword, schema in draft.unevaluated:
        if keyword != "unevaluatedProperties":
            continue
        if draft.unevaluated_inside(number, keyword):
            continue
        inside = [each for each in draft.objects.members if number in each.scopes]
        if any(each.additional is not None for each in inside):
            continue
        names = {name: ANY for each in inside for name in each.names}
        patterns = tuple(dict.fromkeys((pattern, ANY) for each in inside for pattern, _ in each.patterns))
        yield Properties(names, patterns, schema, frozenset())


def _dependencies(
    properties: dict[str, Node], draft: Draft
) -> tuple[frozenset[str] | None, tuple[tuple[str, frozenset[str]], ...]]:
    """All required names (None: one of them cannot be there), and what is left of the dependencies.

    A name that needs another one which cannot be there is taken out of `properties`.
    """
    required = frozenset(draft.objects.required)
    if not draft.objects.dependents:
        return (required if required <= properties.keys() else None), ()
    needs: dict[str, frozenset[str]] = {}
    for name, others in draft.objects.dependents:
        needs[name] = needs.get(name, frozenset()) | frozenset(others)
    changed = True
    while changed:
        changed = False
        for name, wanted in list(needs.items()):
            whole = wanted.union(*(needs.get(other, frozenset()) for other in wanted)) - {name}
            if whole != wanted:
                needs[name], changed = whole, True
            if name in properties and not whole <= properties.keys():
                del properties[name]
                changed = True
    required = required.union(*(needs.get(name, frozenset()) for name in required))
    if not required <= properties.keys():
        return None, ()
    left = ((name, others - required) for name, others in needs.items() if name in properties)
    return required, tuple((name, others) for name, others in left if others and name not in required)


def _allowed_names(graph: NodeGraph, draft: Draft) -> tuple[AllowedNames, list[str]]:
    """What `propertyNames` allows: languages, and names one by one."""
    if all(schema == ANY for schema in draft.objects.names):
        return None, []
    string = graph.document.written(
        {"type": frozenset({"string"})}, graph.rooted(draft.blame["propertyNames"])
    )
    languages: list[Language] = []
    listed: list[str] = []
    for shape in graph.shapes(graph.node((*draft.objects.names, string))):
        if isinstance(shape, StringShape):
            languages.append(shape.language)
        elif isinstance(shape, EnumShape):
            listed += [json.loads(text) for text in shape.texts]
    return tuple(languages), listed


def _free(
    graph: NodeGraph,
    draft: Draft,
    members: Sequence[Properties],
    names: tuple[str, ...],
    allowed: AllowedNames,
) -> Iterator[FreeMembers]:
    """The names that are not declared, by which patterns they match."""
    patterns = tuple(dict.fromkeys(pattern for each in members for pattern, _ in each.patterns))
    cells: list[tuple[Language, Node]] = []
    possible = 0
    for wanted, unwanted in _cells(graph, draft, patterns):
        possible += 1
        node = graph.node(schema for each in members for schema in _of_cell(each, wanted))
        if not graph.is_empty(node):
            cells.append((Language(wanted, unwanted), node))
    nodes = {node for _, node in cells}
    if len(nodes) == 1 and len(cells) == possible > 1:
        cells = [(Language(), nodes.pop())]
    for language, node in cells:
        for limit in (Language(),) if allowed is None else allowed:
            merged = _both(language, limit, names)
            try:
                if not merged.is_empty():
                    yield FreeMembers(merged, node)
            except UnsupportedPattern as error:
                blame = draft.blame.get("patternProperties") or draft.blame["propertyNames"]
                raise CannotEnforce(blame, str(error)) from error


def _of_cell(members: Properties, wanted: tuple[str, ...]) -> Iterator[int]:
    """The schemas of members whose names match the patterns `wanted` and no others."""
    matching = [schema for pattern, schema in members.patterns if pattern in wanted]
    yield from matching
    if not matching and members.additional is not None:
        yield members.additional


def _cells(
    graph: NodeGraph, draft: Draft, patterns: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The ways to match some patterns and not the others that at least one text goes."""
    cells: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), ())]
    try:
        for pattern in patterns:
            split: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
            for wanted, unwanted in cells:
                graph.document.check_time()
                options = ((*wanted, pattern), unwanted), (wanted, (*unwanted, pattern))
                split += [each for each in options if not Language(*each).is_empty()]
            cells = split
            if len(cells) > _MAX_CELLS:
                raise CannotEnforce(
                    draft.blame["patternProperties"], f"its patterns overlap in more than {_MAX_CELLS} ways"
                )
    except UnsupportedPattern as error:
        raise CannotEnforce(draft.blame["patternProperties"], str(error)) from error
    return iter(cells)


def _both(first: Language, second: Language, excluded: tuple[str, ...]) -> Language:
    maximum = min((m for m in (first.maximum, second.maximum) if m is not None), default=None)
    return Language(
        tuple(dict.fromkeys((*first.wanted, *second.wanted))),
        tuple(dict.fromkeys((*first.unwanted, *second.unwanted))),
        tuple(dict.fromkeys((*second.excluded, *excluded))),
        max(first.minimum, second.minimum),
        maximum,
    )
