"""The refusal inside the compiler, before it is known whether it becomes an error or a warning."""

from __future__ import annotations

from larksong.grammars.schema.document import Origin


class CannotEnforce(Exception):
    """A keyword that no grammar can enforce exactly, at least not within the limits.

    `remote`: it refers outside the document; that is refused even where other keywords may be widened.
    """

    def __init__(self, origin: Origin, reason: str, remote: bool = False) -> None:
        super().__init__(reason)
        self.origin, self.reason, self.remote = origin, reason, remote
