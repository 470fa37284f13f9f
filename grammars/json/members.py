"""The members of objects: their keys, the values that each may have, and the attribute that keeps count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from larksong.engine.automata.languages import Language
from larksong.engine.grammar.attributes import (
    Action,
    Alternative,
    AlternativeKey,
    Alternatives,
    CollectAlternatives,
    CollectMembers,
    Key,
    Member,
    Members,
    Predicate,
)
from larksong.engine.grammar.grammar import Definition, Terminal
from larksong.engine.grammar.terminals import JsonKey, JsonText, Keys, Role
from larksong.grammars.json.symbol_names import SymbolNames
from larksong.grammars.schema import Schema
from larksong.grammars.schema.shapes import Node, ObjectShape, Shape
from larksong.grammars.schema.values import json_text

Shapes = tuple[Shape, ...]


def shared_name(names: Sequence[str]) -> str:
    """What a terminal of these names is called after."""
    return names[0] if len(names) == 1 else ""


class MemberRules:
    """The members of objects that have one of some shapes: their keys, values and attributes."""

    def __init__(
        self, schema: Schema, symbols: SymbolNames, shapes: tuple[ObjectShape, ...], name: str
    ) -> None:
        self._schema, self._symbols, self._shapes, self._name = schema, symbols, shapes, name
        names = dict.fromkeys(each for shape in shapes for each, _ in shape.properties)
        self._bits = {each: 1 << i for i, each in enumerate(names)}
        self._nodes = {each: [self._node(shape, each) for shape in shapes] for each in names}
        self.others = self._read_others()
        single = shapes[0]
        plain = len(shapes) == 1 and not (single.minimum or single.maximum is not None or single.dependents)
        self._alternatives = None if plain else self._read_alternatives()
        self.action: Action = (
            CollectMembers(self.seen)
            if self._alternatives is None
            else CollectAlternatives(self._alternatives)
        )

    @property
    def seen(self) -> Members:
        """The attribute of an object that can have one shape only, with nothing to count."""
        shape = self._shapes[0]
        return Members(
            required=self._mask(shape.required),
            declared=sum(self._bits.values()),
            open=self._is_open(0),
            names=tuple(self._bits),
        )

    @property
    def may_be_empty(self) -> bool:
        if self._alternatives is None:
            return not self._shapes[0].required
        return self._alternatives.nothing.may_end()

    def _mask(self, names: frozenset[str]) -> int:
        return sum(self._bits[name] for name in names)

    def _node(self, shape: ObjectShape, name: str) -> Node | None:
        """The node of a member in a shape; None if it may not be there."""
        found = shape.nodes.get(name)
        if found is None:
            found = next((free.node for free in shape.free if free.names.matches(name)), None)
        return found

    def _read_alternatives(self) -> Alternatives:
        options = []
        for i, shape in enumerate(self._shapes):
            allowed = sum(self._bits[name] for name, nodes in self._nodes.items() if nodes[i] is not None)
            dependents = tuple((self._bits[name], self._mask(others)) for name, others in shape.dependents)
            options.append(
                Alternative(
                    self._mask(shape.required),
                    allowed,
                    self._is_open(i),
                    shape.minimum,
                    shape.maximum,
                    dependents,
                )
            )
        return Alternatives(tuple(options), tuple(self._bits))

    def keys(self) -> list[tuple[Terminal, Shapes]]:
        """The terminals of names in JSON, each with the union of its values."""
        found: list[tuple[Terminal, Shapes]] = []
        for (having, shapes), names in self.names().items():
            words = tuple((json_text(name), self.member(name)) for name in names)
            found.append((self.key(f"{self._name}_{shared_name(names)}_key", Keys(words), having), shapes))
        for (language, node), having in self.others.items():
            plain = language == Language(excluded=language.excluded)
            definition = JsonKey(language.excluded) if plain else JsonText(language)
            key = self.key(f"{self._name}_other_key", definition, having)
            found.append((key, self._schema.shapes_of(node)))
        return found

    def names(self) -> Mapping[tuple[int, Shapes], list[str]]:
        """The declared names by their values, and by the bit mask of the shapes that allow these."""
        found: dict[tuple[int, Shapes], list[str]] = {}
        for name, nodes in self._nodes.items():
            for key in self._values(nodes):
                found.setdefault(key, []).append(name)
        return found

    def member(self, name: str) -> Member:
        return Member(name, self._bits[name])

    def key(self, wanted: str, definition: Definition, having: int) -> Terminal:
        """A terminal of names, which refuses those that may not come."""
        return Terminal(self._symbols.terminal(wanted), definition, Role.JSON, self.predicate(having))

    def predicate(self, having: int) -> Predicate:
        """Refuses names that may not come, with a value that the shapes of the bit mask `having` allow."""
        return Key() if self._alternatives is None else AlternativeKey(self._alternatives, having)

    def _values(self, nodes: Sequence[Node | None]) -> list[tuple[int, Shapes]]:
        """The values of one name, each with the bit mask of the shapes that allow it there."""
        different = {node for node in nodes if node is not None}
        if len(different) == 1:
            (only,) = different
            having = sum(1 << i for i, each in enumerate(nodes) if each is not None)
            return [(having, self._schema.shapes_of(only))]
        masks: dict[Shape, int] = {}
        for i, node in enumerate(nodes):
            for shape in self._schema.shapes_of(node) if node is not None else ():
                masks[shape] = masks.get(shape, 0) | 1 << i
        grouped: dict[int, list[Shape]] = {}
        for shape, having in masks.items():
            grouped.setdefault(having, []).append(shape)
        return [(having, tuple(shapes)) for having, shapes in grouped.items()]

    def _read_others(self) -> Mapping[tuple[Language, Node], int]:
        """The names that are not declared, each with the bit mask of the shapes that allow it.

        None of them may be a name that any shape declares.
        """
        masks: dict[tuple[Language, Node], int] = {}
        for i, shape in enumerate(self._shapes):
            for free in shape.free:
                excluded = tuple(dict.fromkeys((*self._bits, *free.names.excluded)))
                language = replace(free.names, excluded=excluded)
                if not language.is_empty():
                    key = language, free.node
                    masks[key] = masks.get(key, 0) | 1 << i
        return masks

    def _is_open(self, index: int) -> bool:
        return any(having >> index & 1 for having in self.others.values())
