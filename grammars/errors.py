"""Errors about tools and schemas, each with the sentence that a user reads.

`tool` is the function's name, `pointer` a JSON pointer into its parameters, `keyword` the keyword there.
"""

from __future__ import annotations


class GrammarsError(ValueError):
    """Base of all errors that the caller's tools, schemas or format names cause."""

    def __init__(
        self, message: str, *, tool: str | None = None, pointer: str | None = None, keyword: str | None = None
    ) -> None:
        super().__init__(message)
        self.tool, self.pointer, self.keyword = tool, pointer, keyword


class UnknownFormat(GrammarsError):
    """No wire format has this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"unknown wire format {name!r}; known formats: {', '.join(known)}")


class BrokenFormat(UnknownFormat):
    """A wire format of a file or of an installed distribution that cannot be used; it says whose, and why."""

    def __init__(self, message: str) -> None:
        GrammarsError.__init__(self, message)


class InvalidSchema(GrammarsError):
    """The parameters are not JSON Schema, or nothing can satisfy them."""


class UnsupportedKeyword(GrammarsError):
    """A keyword that the grammar would have to ignore."""


class Unenforceable(UnsupportedKeyword):
    """A keyword that no grammar can enforce exactly, in the place where it stands."""


class InvalidToolName(GrammarsError):
    """A tool's or parameter's name that the wire format cannot carry."""


class DuplicateTool(GrammarsError):
    """Two tools of one name."""


class NoTools(GrammarsError):
    """A call is required, but there is no tool to call."""


class InvalidConstraint(GrammarsError):
    """A regular expression, list of texts or Lark grammar that no answer can be held to, or a schema whose
    answers nobody can tell from calls."""
