"""What happens to the keywords of a schema that nothing can enforce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from larksong.grammars import Options

OnUnenforceable = Literal["refuse", "widen"]


@dataclass(frozen=True)
class SchemaPolicy:
    """`unenforceable` holds for all schemas; without it `strict: true` refuses and anything else widens.

    `formats`: whether `format` is asserted.
    """

    unenforceable: OnUnenforceable | None = None
    formats: bool = True

    def options(self, strict: bool | None) -> Options:
        """How a schema with this `strict` is compiled."""
        widen = not strict if self.unenforceable is None else self.unenforceable == "widen"
        return Options(widen=widen, formats=self.formats)


DEFAULT_POLICY = SchemaPolicy()
