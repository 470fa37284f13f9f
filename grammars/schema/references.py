"""Where `$ref` leads: resources by `$id`, anchors, JSON pointers. Nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

_DRAFTS = {
    "http://json-schema.org/draft-03/schema": 3,
    "http://json-schema.org/draft-04/schema": 4,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "https://json-schema.org/draft/2020-12/schema": 2020,
}
LATEST = 2020
_OPAQUE = ("enum", "const", "default", "examples")


@dataclass(frozen=True, eq=False)
class Resource:
    """A schema with an address of its own: the document, or a part of it with `$id`."""

    root: Any
    uri: str
    pointer: str
    draft: int
    declared: bool
    """the draft is said by `$schema`, not assumed"""
    anchors: dict[str, tuple[Any, str]] = field(default_factory=dict)
    dynamic: dict[str, tuple[Any, str]] = field(default_factory=dict)


class LocatedSchema(NamedTuple):
    """A schema in the document: its resource, and its JSON pointer from the document's root."""

    schema: Any
    resource: Resource
    pointer: str


class References:
    """The resources and anchors of one document; looked for when the first reference needs them."""

    def __init__(self, root: Any) -> None:
        draft, declared = _draft(root, LATEST)
        self.root = Resource(root, _identifier(root, draft) or "", "", draft, declared)
        self._resources: dict[int, Resource] = {id(root): self.root}
        self._scanned: dict[str, Resource] | None = None

    def enter(self, schema: Mapping[str, Any], resource: Resource, pointer: str) -> Resource:
        """The resource that `schema` belongs to: one of its own if it has an `$id`."""
        if ("$id" not in schema and "id" not in schema) or schema is resource.root:
            return resource
        identifier = _identifier(schema, resource.draft)
        if not identifier:
            return resource
        found = self._resources.get(id(schema))
        if found is None:
            draft, declared = _draft(schema, resource.draft)
            uri = urljoin(resource.uri, identifier)
            found = Resource(schema, uri, pointer, draft, declared or resource.declared)
            self._resources[id(schema)] = found
        return found

    def resolve(self, reference: str, resource: Resource) -> LocatedSchema | None:
        """What `reference`, written in `resource`, stands for; None if it is not in the document."""
        if reference.startswith("#"):
            return self._fragment(unquote(reference[1:]), resource)
        address, fragment = urldefrag(urljoin(resource.uri, reference))
        target = self._scan().get(address)
        if target is None and address == resource.uri:
            target = resource
        if target is not None:
            return self._fragment(unquote(fragment), target)
        if reference.startswith("/"):
            # Some client libraries leave out the number sign.
            return self._pointer(unquote(reference), self.root)
        return None

    def dynamic(self, reference: str, resource: Resource) -> LocatedSchema | None:
        """The one target that `$dynamicRef` can have, whatever the way to it; None if there are several."""
        _, _, name = reference.partition("#")
        static = self.resolve(reference, resource)
        if static is None or name.startswith("/") or not name:
            return static
        resources = {id(found): found for found in (*self._scan().values(), self.root)}.values()
        if name not in static.resource.dynamic:
            return static
        holders = [found for found in resources if name in found.dynamic]
        return static if len(holders) == 1 else None

    def _fragment(self, fragment: str, resource: Resource) -> LocatedSchema | None:
        if not fragment:
            return LocatedSchema(resource.root, resource, resource.pointer)
        if fragment.startswith("/"):
            return self._pointer(fragment, resource)
        self._scan()
        found = resource.anchors.get(fragment) or resource.dynamic.get(fragment)
        return None if found is None else LocatedSchema(found[0], resource, found[1])

    def _pointer(self, fragment: str, resource: Resource) -> LocatedSchema | None:
        schema, pointer = resource.root, resource.pointer
        for part in fragment[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(schema, list) and name.isdigit() and int(name) < len(schema):
                schema = schema[int(name)]
            elif isinstance(schema, Mapping) and name in schema:
                schema = schema[name]
            else:
                return None
            pointer = f"{pointer}/{part}"
            if isinstance(schema, Mapping):
                resource = self.enter(schema, resource, pointer)
        return LocatedSchema(schema, resource, pointer)

    def _scan(self) -> dict[str, Resource]:
        """All resources by address; their anchors are entered on the way."""
        if self._scanned is None:
            self._scanned = {}
            pending: list[LocatedSchema] = [LocatedSchema(self.root.root, self.root, "")]
            while pending:
                schema, resource, pointer = pending.pop()
                if isinstance(schema, Mapping):
                    resource = self.enter(schema, resource, pointer)
                    if schema is resource.root:
                        self._scanned.setdefault(resource.uri.removesuffix("#"), resource)
                    _enter_anchors(schema, resource, pointer)
                pending += [
                    LocatedSchema(sub, resource, f"{pointer}/{name}") for name, sub in _inside(schema)
                ]
        return self._scanned


def _inside(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, Mapping):
        for name, sub in schema.items():
            if isinstance(sub, dict | list) and name not in _OPAQUE:
                yield escape(name), sub
    elif isinstance(schema, list):
        for index, sub in enumerate(schema):
            if isinstance(sub, dict | list):
                yield str(index), sub


def _enter_anchors(schema: Mapping[str, Any], resource: Resource, pointer: str) -> None:
    for keyword, anchors in (("$anchor", resource.anchors), ("$dynamicAnchor", resource.dynamic)):
        name = schema.get(keyword)
        if isinstance(name, str):
            anchors.setdefault(name, (schema, pointer))
    old = schema.get("$id", schema.get("id"))
    if isinstance(old, str) and old.startswith("#") and len(old) > 1:
        resource.anchors.setdefault(old[1:], (schema, pointer))
    if schema.get("$recursiveAnchor") is True:
        resource.dynamic.setdefault("", (schema, pointer))


def _identifier(schema: Any, draft: int) -> str | None:
    """The address that a schema gives itself. Before draft 2019-09 a sibling of `$ref` means nothing."""
    if not isinstance(schema, Mapping):
        return None
    found = schema.get("$id")
    if found is None and draft <= 4:
        found = schema.get("id")
    if not isinstance(found, str) or found.startswith("#") or ("$ref" in schema and draft <= 7):
        return None
    return found.removesuffix("#")


def _draft(schema: Any, default: int) -> tuple[int, bool]:
    said = schema.get("$schema") if isinstance(schema, Mapping) else None
    if not isinstance(said, str):
        return default, False
    found = _DRAFTS.get(
        said.removesuffix("#").replace("https://json-schema.org/draft-", "http://json-schema.org/draft-")
    )
    return (default, False) if found is None else (found, True)


def escape(name: str) -> str:
    """A name as a step of a JSON pointer (RFC 6901)."""
    if "~" not in name and "/" not in name:
        return name
    return name.replace("~", "~0").replace("/", "~1")
