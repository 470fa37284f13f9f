"""The page and its files."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from larksong.api.errors import ApiError

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_HEADERS = {
    # Nothing from anywhere else, no markup made from text, in no other page's frame.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_FILES = {
    each.name: each.read_bytes() for each in (files(__package__) / "static").iterdir() if each.is_file()
}

OPEN_PATHS = ("/inspector", "/inspector/", *(f"/inspector/static/{name}" for name in _FILES))
"""what needs no API key: the page is the same for everybody, and a browser cannot send one for it"""

router = APIRouter(prefix="/inspector", include_in_schema=False)


@router.get("")
async def to_page() -> Response:
    """The page lies in a folder, so that its links hold behind any prefix."""
    return RedirectResponse("inspector/", 307)


@router.get("/")
async def page() -> Response:
    """The page."""
    return _file("index.html")


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """One of its files."""
    return _file(name)


def _file(name: str) -> Response:
    if name not in _FILES:
        raise ApiError(f"There is no file {name}.", status=404, param=None, code=None)
    kind: Any = _TYPES[name.rpartition(".")[2]]
    return Response(_FILES[name], media_type=kind, headers=_HEADERS)
