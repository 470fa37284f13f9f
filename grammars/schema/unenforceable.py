"""The refusal inside the compiler, before it is known whether it becomes an error or a warning."""

from __future__ import annotations

from larksong.grammars.schema.document import Origin, shown


class CannotEnforce(Exception):
    """A keyword that no grammar can enforce exactly, at least not within the limits.

    `remote`: it refers outside the document; that is refused even where other keywords may be widened.
    """

    def __init__(self, origin: Origin, reason: str, remote: bool = False) -> None:
        super().__init__(reason)
        self.origin, self.reason, self.remote = origin, reason, remote


def unresolved(origin: Origin, reference: str) -> CannotEnforce:
    """What `reference` stands for is not in the document, or not the same for all ways to it."""
    if origin.keyword == "$dynamicRef":
        return CannotEnforce(
            origin, f"{shown(reference)} may lead to several places, or to none of this document"
        )
    if reference.startswith(("#", "/")):
        reason = f"{shown(reference)} leads nowhere in this document"
    else:
        reason = f"{shown(reference)} is not in this document, and no other is fetched"
    return CannotEnforce(origin, reason, remote=True)
