"""API keys: given in the settings or in a file that is read again when it changes."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from larksong.api.errors import WrongKey
from larksong.api.http.error_response import ErrorResponses

_logger = logging.getLogger(__name__)


class ApiKeys:
    """The keys that the server knows; without any everybody may ask. A file has one key a line."""

    def __init__(self, keys: Sequence[str], file: Path | None = None) -> None:
        self._given = [_digest(key.encode()) for key in keys]
        self._file = file
        self._read: list[bytes] = []
        self._version: tuple[int, int] | None = None
        self._reload()

    @property
    def needed(self) -> bool:
        """Whether requests need a key."""
        return bool(self._given) or self._file is not None

    def accept(self, authorization: bytes) -> bool:
        """Whether the value of an Authorization header has a known key. Takes the same time for all."""
        self._reload()
        scheme, _, key = authorization.partition(b" ")
        digest = _digest(key.strip())
        known = False
        for each in (*self._given, *self._read):
            known |= hmac.compare_digest(each, digest)
        return known and scheme.lower() == b"bearer"

    def _reload(self) -> None:
        if self._file is None:
            return
        try:
            status = os.stat(self._file)
            version = (status.st_mtime_ns, status.st_size)
            if version == self._version:
                return
            lines = self._file.read_bytes().splitlines()
        except OSError as error:
            # Keys that were taken away must not work on: without the file there are none.
            if self._version is not None or not self._read:
                _logger.error("API keys cannot be read: %s", error)
            self._read, self._version = [], None
            return
        keys = [line.strip() for line in lines]
        self._read = [_digest(key) for key in keys if key and not key.startswith(b"#")]
        self._version = version
        _logger.info("%d API keys read", len(self._read))


def _digest(key: bytes) -> bytes:
    # Digests have one length: comparing them tells nothing about a key's.
    return hashlib.sha256(key).digest()


class KeyCheck:
    """Middleware: refuses requests without a known key, except those for `open_paths`."""

    def __init__(
        self, app: ASGIApp, keys: ApiKeys, open_paths: Collection[str], errors: ErrorResponses
    ) -> None:
        self._app = app
        self._open = frozenset(open_paths)
        self._keys = keys
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, or answer 401."""
        if scope["type"] == "http" and self._keys.needed and scope["path"] not in self._open:
            headers = dict(scope["headers"])
            given = headers.get(b"authorization", b"")
            if b"x-api-key" in headers and not given:  # Anthropic's clients
                given = b"Bearer " + headers[b"x-api-key"]
            if not self._keys.accept(given):
                await self._errors(WrongKey(), scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)
