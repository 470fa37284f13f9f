"""What happens to the keywords of a schema that nothing can enforce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from larksong.grammars import Limits, Options
from larksong.grammars.schema import DEFAULT_LIMITS

OnUnenforceable = Literal["refuse", "widen"]


@dataclass(frozen=True)
class SchemaPolicy:
    """`unenforceable` holds for all schemas; without it `strict: true` refuses and anything else widens.

    `formats`: whether `format` is asserted. `limits`: beyond which a schema is refused.
    """

    unenforceable: OnUnenforceable | None = None
    formats: bool = True
    limits: Limits = DEFAULT_LIMITS

    def options(self, strict: bool | None) -> Options:
        """How a schema with this `strict` is compiled."""
        widen = not strict if self.unenforceable is None else self.unenforceable == "widen"
        return Options(widen=widen, formats=self.formats, limits=self.limits)


DEFAULT_POLICY = SchemaPolicy()
