"""Fields of another API's request under the names that its clients know.

Requests of the other APIs are written as chat requests; what is wrong with those must be told in the words of
the request that came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from larksong.api.errors import ApiError


class FieldNames:
    """Names of fields: `lists` says which entry of the request an entry of the chat request came from
    (`messages[3]` → `input[5]`), `rest` what the remaining path is called."""

    def __init__(self, lists: Mapping[str, Sequence[str]], rest: Sequence[tuple[str, str]]) -> None:
        self._lists = lists
        self._rest = [(re.compile(pattern), text) for pattern, text in rest]

    def translated(self, field: str) -> str:
        """The name of a field of the chat request."""
        path, pointer, inside = field.partition("#")
        if (found := re.match(r"(\w+)\[(\d+)\]", path)) and found[1] in self._lists:
            path = self._lists[found[1]][int(found[2])] + path[found.end() :]
        for pattern, text in self._rest:
            path = pattern.sub(text, path)
        return path + pointer + inside

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors from inside name the fields of the request that came."""
        try:
            yield
        except ApiError as error:
            if error.param is not None:
                error.rename(self.translated(error.param))
            raise
