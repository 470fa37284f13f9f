"""What the shapes of one node ask of all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from larksong.grammars.schema.document import Document, Origin
from larksong.grammars.schema.shapes import Node, Shape


class NodeGraph(Protocol):
    """The nodes of one document; `Compiler` is it."""

    @property
    def document(self) -> Document: ...

    def node(self, schemas: Iterable[int]) -> Node:
        """The node of a conjunction."""

    def shapes(self, node: Node) -> tuple[Shape, ...]:
        """What a node means."""

    def union(self, nodes: Iterable[Node]) -> tuple[Shape, ...]:
        """What one of some nodes means."""

    def is_empty(self, node: Node) -> bool:
        """Whether it is plain that no value satisfies a node. False may also mean: not found out yet."""

    def negated(self, schema: int, origin: Origin) -> int:
        """The schema that holds where another does not."""

    def rooted(self, origin: Origin) -> Origin:
        """The keyword of the document that `origin` goes back to."""
